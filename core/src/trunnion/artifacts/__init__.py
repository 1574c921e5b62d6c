"""Artifacts: built programs as bytes and a manifest, published atomically, each built once."""
