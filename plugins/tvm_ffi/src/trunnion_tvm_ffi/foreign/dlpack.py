"""DLPack's capsules, read where they lie: what an array is, before anybody takes it over.

The libraries that import capsules tell neither the flags nor, in the older ones, the address.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final

from trunnion.dlpack import CPU, CUDA, Tensor, Versioned, address_in
from trunnion.messages import type_name

__all__ = ["MAX_VERSION", "Description", "device_name", "read_capsule"]

MAX_VERSION: Final = (1, 1)
"""The newest version whose layout is known here; a later minor one adds no field."""

_READ_ONLY: Final = 1
_IS_COPIED: Final = 2
_PLAIN: Final = b"dltensor"
_VERSIONED: Final = b"dltensor_versioned"

_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))


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
        raise BufferError(f"got {type_name(capsule)}, expected a DLPack capsule that nobody took over")
    pointer = address_in(capsule, name)
    if name == _PLAIN:
        return _description(Tensor.from_address(pointer), 0)
    managed = Versioned.from_address(pointer)
    if managed.major != MAX_VERSION[0]:
        raise BufferError(f"got DLPack {managed.major}.{managed.minor}, expected version {MAX_VERSION[0]}")
    return _description(managed.tensor, managed.flags)


def _description(tensor: Any, flags: int) -> Description:
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    return Description(
        dtype=(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes),
        shape=shape,
        strides=tuple(tensor.strides[: tensor.ndim]) if tensor.ndim and tensor.strides else _row_major(shape),
        device=(tensor.device.type, tensor.device.id),
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
