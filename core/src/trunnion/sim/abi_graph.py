"""The structures that graph queries fill, as C lays them out.

Source: CUDA Driver API, Data types used by CUDA driver; the layouts are those of ``cuda.h`` on a 64-bit
machine.
"""

from __future__ import annotations

import ctypes

from trunnion.sim.abi import GEOMETRY_FIELDS

__all__ = ["EdgeDataStruct", "KernelNodeParamsStruct", "MemsetNodeParamsStruct"]


class KernelNodeParamsStruct(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS``, version 2; version 1 ends before `kern`."""

    _fields_ = (
        ("func", ctypes.c_void_p),
        *GEOMETRY_FIELDS,
        ("kernelParams", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kern", ctypes.c_void_p),
        ("ctx", ctypes.c_void_p),
    )


class MemsetNodeParamsStruct(ctypes.Structure):
    """``CUDA_MEMSET_NODE_PARAMS``."""

    _fields_ = (
        ("dst", ctypes.c_uint64),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint32),
        ("elementSize", ctypes.c_uint32),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class EdgeDataStruct(ctypes.Structure):
    """``CUgraphEdgeData``: 8 bytes."""

    _fields_ = (
        ("from_port", ctypes.c_uint8),
        ("to_port", ctypes.c_uint8),
        ("type", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 5),
    )
