"""The host side: self-contained TVM-FFI modules."""
