"""`LauncherMemory`: what a launcher allocates beyond what the tensor library promises of an allocation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trunnion.launcher.tensors import TensorChecks
from trunnion.model.interval import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.model.plan.slots import TensorSlot

__all__ = ["ALLOCATOR_ALIGNMENT", "LauncherMemory", "aligned_bytes"]

ALLOCATOR_ALIGNMENT = 256
"""Bytes, of whatever a device allocator returns (``cuMemAlloc``)."""


def aligned_bytes(allocate: Callable[[int], Any], nbytes: int, alignment: int) -> Any:
    """Return bytes that begin at a multiple of an alignment, within memory that has room for that.

    Parameters
    ----------
    allocate
        Allocates so many bytes: a tensor of ``uint8``.
    nbytes
        How many.
    alignment
        Bytes that the first one's address is to be a multiple of.
    """
    held = allocate(nbytes + alignment)
    offset = -held.data_ptr() % alignment
    return held[offset : offset + nbytes]


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

    def output(self, shape: tuple[int, ...], slot: TensorSlot, where: tuple[int, int]) -> Any:
        """Allocate an output.

        Parameters
        ----------
        shape
            Its extents.
        slot
            What it is.
        where
            The device and the stream.
        """
        dtype = self.dtype(slot.dtype.name)
        if slot.alignment <= ALLOCATOR_ALIGNMENT:
            return self.allocate(shape, dtype, *where)
        return self.aligned(shape, dtype, slot.dtype.itemsize, slot.alignment, where)

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
        if not nbytes or nbytes + alignment > INT64_MAX:  # no memory is that large: the allocator says so
            return self.allocate(shape, dtype, *where)
        found = aligned_bytes(lambda count: self.allocate((count,), self.byte, *where), nbytes, alignment)
        return found.view(dtype).view(shape)
