"""What `benchmarks/cache.py` measures with: processes that find what another one kept, ours and others'."""
