"""The TVM-FFI backend of trunnion."""
