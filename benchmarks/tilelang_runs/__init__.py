"""The parts of ``benchmarks/tilelang_kernels.py``."""
