"""What no device launches, whatever it is: limits of grids, blocks and shared memory that the model knows."""

from __future__ import annotations

__all__ = ["MAX_BLOCK", "MAX_GRID", "MAX_SMEM", "MAX_THREADS"]

MAX_GRID = (2**31 - 1, 65535, 65535)
"""The greatest grid, in blocks (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""

MAX_BLOCK = (1024, 1024, 64)
"""The greatest extents of a block, in threads (ibid.)."""

MAX_THREADS = 1024
"""The most threads of a block (ibid.)."""

MAX_SMEM = 2**31 - 1
"""The most bytes that ``cuKernelSetAttribute``, which takes an int, can allow; a device allows far less."""
