"""Anybody's TVM-FFI functions, called with our checks."""
