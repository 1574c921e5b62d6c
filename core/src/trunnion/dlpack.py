"""DLPack's structures as ctypes sees them, and the capsules that they travel in.

Source: dlpack.h, versions 0.8 (``DLManagedTensor``) and 1.1 (``DLManagedTensorVersioned``); ``DLPackExchangeAPI``.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

__all__ = ["CPU", "CUDA", "DataType", "Device", "ExchangeApi", "Tensor", "Versioned", "address_in"]

CPU: Final = 1
"""``kDLCPU``."""

CUDA: Final = 2
"""``kDLCUDA``."""


class Device(ctypes.Structure):
    """``DLDevice``."""

    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class DataType(ctypes.Structure):
    """``DLDataType``."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    """``DLTensor``, with which a ``DLManagedTensor`` begins."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Versioned(ctypes.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


class ExchangeApi(ctypes.Structure):
    """``DLPackExchangeAPI``: a ``DLPackExchangeAPIHeader``, then the functions."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p),
        ("view_object", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    )


_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def address_in(capsule: Any, name: bytes) -> int:
    """Return the address that a capsule holds.

    Raises
    ------
    ValueError
        If it is no capsule of that name.
    """
    return int(_pointer_of(capsule, name))
