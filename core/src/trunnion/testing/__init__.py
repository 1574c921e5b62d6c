"""The conformance suite: an oracle, random programs, the laws that every backend must hold, and saboteurs.

Nothing of the library imports this package. Only `trunnion.testing.strategies` and what is built on it need
hypothesis; the oracle needs nothing but the model's values.
"""
