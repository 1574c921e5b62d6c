"""DLPack's capsules, read where they lie: what an array is, before anybody takes it over.

Source: dlpack.h, versions 0.8 (``DLManagedTensor``) and 1.1 (``DLManagedTensorVersioned``). The libraries that import
capsules tell neither the flags nor, in the older ones, the address.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["CPU", "CUDA", "MAX_VERSION", "Description", "device_name", "read_capsule"]

CPU: Final = 1
"""``kDLCPU``."""

CUDA: Final = 2
"""``kDLCUDA``."""

MAX_VERSION: Final = (1, 1)
"""The newest version whose layout is known here; a later minor one adds no field."""

_READ_ONLY: Final = 1
_IS_COPIED: Final = 2
_PLAIN: Final = b"dltensor"
_VERSIONED: Final = b"dltensor_versioned"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """An array, as a capsule describes it."""

    dtype: tuple[int, int, int]
    """``DLDataType``: type code, bits, lanes."""

    shape: tuple[int, ...]
    """Elements along each dimension."""

    strides: tuple[int, ...]
    """Elements between neighbours along each dimension."""

    device: tuple[int, int]
    """``DLDeviceType`` and the ordinal."""

    address: int
    """Where the first element lies."""

    read_only: bool
    """Whether nobody may write."""

    copied: bool
    """Whether the memory is a copy that was made for the capsule."""


def device_name(device: tuple[int, int]) -> str:
    """Return what people call a device: ``"cuda:0"``."""
    names = {CPU: "cpu", CUDA: f"cuda:{device[1]}"}
    return names.get(device[0], f"DLPack device ({device[0]}, {device[1]})")


def read_capsule(capsule: Any) -> Description:
    """Return what a capsule describes; it stays as it is.

    Raises
    ------
    BufferError
        If it is no capsule of DLPack, one that was taken over already, or of a version that is not known.
    """
    try:
        name = _name_of(capsule)
    except ValueError:
        name = None
    if name not in (_PLAIN, _VERSIONED):
        raise BufferError(f"got {type(capsule).__name__}, expected a DLPack capsule that nobody took over")
    pointer = _pointer_of(capsule, name)
    if name == _PLAIN:
        return _description(_Tensor.from_address(pointer), 0)
    managed = _Versioned.from_address(pointer)
    if managed.major != MAX_VERSION[0]:
        raise BufferError(f"got DLPack {managed.major}.{managed.minor}, expected version {MAX_VERSION[0]}")
    return _description(managed.tensor, managed.flags)


def _description(tensor: Any, flags: int) -> Description:
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    return Description(
        dtype=(tensor.code, tensor.bits, tensor.lanes),
        shape=shape,
        strides=tuple(tensor.strides[: tensor.ndim]) if tensor.ndim and tensor.strides else _row_major(shape),
        device=(tensor.device_type, tensor.device_id),
        address=(tensor.data or 0) + tensor.byte_offset,
        read_only=bool(flags & _READ_ONLY),
        copied=bool(flags & _IS_COPIED),
    )


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return what strides that are left out mean."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
