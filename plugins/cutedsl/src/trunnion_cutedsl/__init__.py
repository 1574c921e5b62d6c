"""The CuTeDSL backend of trunnion."""
