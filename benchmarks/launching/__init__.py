"""The parts of ``benchmarks/launch.py`` and ``benchmarks/memory.py``."""
