"""The laws, one module for each chapter; ``pytest --pyargs trunnion.testing.suite`` checks them on every backend."""
