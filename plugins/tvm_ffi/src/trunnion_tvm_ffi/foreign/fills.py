"""Outputs that hold a value before a function sees them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

from trunnion.dlpack import CPU

if TYPE_CHECKING:
    from trunnion_tvm_ffi.foreign.arrays import Arrays

__all__ = ["fill"]

_CHUNK: Final = 1 << 16  # bytes that are written at once


def fill(arrays: Arrays, array: Any, pattern: bytes, device: tuple[int, int]) -> None:
    """Write one element's bytes to every element of a contiguous array, on the current stream of its device.

    Parameters
    ----------
    arrays
        How arrays are read in this process.
    array
        The array; on a CUDA device a torch tensor.
    pattern
        One element.
    device
        Where it lies.
    """
    count = array.numel()
    if not count:
        return
    if device[0] == CPU:
        _fill_host(array.data_ptr(), pattern, count)
        return
    # Its strides may be any where there is one element, and torch sees no such tensor as bytes.
    flat = array.as_strided((count,), (1,)).view(arrays.byte)
    if len(set(pattern)) == 1:
        flat.fill_(pattern[0])
        return
    for index, value in enumerate(pattern):
        flat[index :: len(pattern)].fill_(value)


def _fill_host(address: int, pattern: bytes, count: int) -> None:
    chunk = pattern * min(count, _CHUNK // len(pattern))
    total = count * len(pattern)
    for start in range(0, total, len(chunk)):
        ctypes.memmove(address + start, chunk, min(len(chunk), total - start))
