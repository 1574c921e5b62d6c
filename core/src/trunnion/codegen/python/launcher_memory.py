"""`LauncherMemory`: what a launcher allocates beyond what the tensor library promises of an allocation."""

from __future__ import annotations

import math
from typing import Any

from trunnion.codegen.python.tensors import TensorChecks

__all__ = ["ALLOCATOR_ALIGNMENT", "LauncherMemory"]

ALLOCATOR_ALIGNMENT = 256
"""Bytes, of whatever a device allocator returns (``cuMemAlloc``)."""


class LauncherMemory(TensorChecks):
    """Outputs and workspaces that begin where the program says."""

    def workspace(self, name: str, nbytes: int, alignment: int, where: tuple[int, int]) -> tuple[Any, int]:
        """Allocate bytes under a stream; return what holds them, and the address of the first aligned one.

        Parameters
        ----------
        name
            The workspace's name, for messages.
        nbytes
            How many: fewer than 2**63, whatever aligns them included.
        alignment
            Bytes that the address is a multiple of.
        where
            The device and the stream.
        """
        if not nbytes:
            return None, 0
        device, stream = where
        spare = alignment if alignment > ALLOCATOR_ALIGNMENT else 0
        held = self.allocate((nbytes + spare,), self.byte, device, stream)
        address = held.data_ptr()
        aligned = address + -address % alignment
        if aligned - address > spare:
            self.check_pointer(name, held, address, alignment)
        return held, aligned

    def aligned(
        self, shape: tuple[int, ...], dtype: Any, itemsize: int, alignment: int, where: tuple[int, int]
    ) -> Any:
        """Allocate an output within memory that has room for it to begin at a multiple of its alignment.

        Parameters
        ----------
        shape
            Its extents.
        dtype
            Its element type, the tensor library's.
        itemsize
            Bytes of an element.
        alignment
            Bytes that its address is a multiple of.
        where
            The device and the stream.
        """
        nbytes = math.prod(shape) * itemsize
        if not nbytes:
            return self.allocate(shape, dtype, *where)
        held = self.allocate((nbytes + alignment,), self.byte, *where)
        offset = -held.data_ptr() % alignment
        return held[offset : offset + nbytes].view(dtype).view(shape)
