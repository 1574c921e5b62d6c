"""The device compiler: CuTeDSL, in processes of its own."""
