"""Programs in CuTeDSL: what the demo runs and the documentation shows."""
