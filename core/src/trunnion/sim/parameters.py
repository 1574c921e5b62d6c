"""What a launch delivered: the bytes of each parameter, and what they mean as addresses, numbers and layouts."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final

from trunnion.errors import KernelBodyError
from trunnion.messages import type_name
from trunnion.model.dtypes import DType, dtype
from trunnion.model.scalars import scalar_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

__all__ = ["Delivered", "TensorLayout", "brief"]

_POINTER_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """A tensor as a kernel sees it that was given one with its layout."""

    address: int
    """Of the first element."""

    shape: tuple[int, ...]
    """Elements along each dimension, outermost first."""

    strides: tuple[int, ...]
    """Elements between neighbours along each dimension."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A kernel and its parameters: what a body is called with, and what the trace keeps of it."""

    kernel: str
    """The kernel's exact symbol name."""

    parameters: tuple[bytes, ...]
    """The bytes of each parameter, by ordinal: exactly as many as the image's parameter table says."""

    def pointer(self, ordinal: int) -> int:
        """Return a parameter as an address.

        Raises
        ------
        KernelBodyError
            If there is no such parameter, or it is not 8 bytes.
        """
        return int.from_bytes(self._bytes(ordinal, _POINTER_BYTES, "a pointer"), "little")

    def view(self, ordinal: int, shape: Sequence[int | None], strides: Sequence[int | None]) -> TensorLayout:
        """Return a parameter as a tensor with its layout, as `trunnion.model.view.TensorView` passes one.

        Parameters
        ----------
        ordinal
            Its position.
        shape
            The extents that the kernel was compiled for, outermost first; None: the call decides it.
        strides
            The strides, in the same way.

        Raises
        ------
        KernelBodyError
            If there is no such parameter, or it has another size.
        """
        extents = sum(extent is None for extent in shape)
        steps = sum(stride is None for stride in strides)
        code = f"<Q{'i' * extents}{'4x' * (extents % 2)}{'q' * steps}"
        address, *numbers = struct.unpack(code, self._bytes(ordinal, struct.calcsize(code), "a view"))
        passed = iter(numbers)
        return TensorLayout(
            address,
            tuple(next(passed) if extent is None else extent for extent in shape),
            tuple(next(passed) if stride is None else stride for stride in strides),
        )

    def scalar(self, ordinal: int, dtype_: DType | str) -> Any:
        """Return a parameter as a number: a bool, an int, a float or a complex number, as the type is.

        Parameters
        ----------
        ordinal
            Its position.
        dtype_
            The type that the kernel declares.

        Raises
        ------
        KernelBodyError
            If there is no such parameter, its size is another, or no scalar of the type can travel.
        """
        row = dtype(dtype_)
        data = self._bytes(ordinal, row.itemsize, row.name)
        if not row.struct_code:
            raise KernelBodyError(self.kernel, ordinal, row.name, "that type cannot travel as a scalar")
        return scalar_value(data, row)

    def fields(self, ordinal: int, *places: tuple[int, int]) -> Self:
        """Return the same launch with fields of a parameter in the place of parameters, to be read as these are.

        Parameters
        ----------
        ordinal
            The position of a struct.
        places
            Of each field its offset from the struct's first byte, and its size, both in bytes, as the kernel has them.

        Raises
        ------
        KernelBodyError
            If there is no such parameter, or a field does not lie within it.
        """
        data = self._whole(ordinal, "a struct")
        for offset, nbytes in places:
            if not 0 <= offset <= offset + nbytes <= len(data):
                what, have = f"a field of {nbytes} bytes at offset {offset}", f"it has {len(data)} bytes"
                raise KernelBodyError(self.kernel, ordinal, what, have)
        return replace(self, parameters=tuple(data[offset : offset + nbytes] for offset, nbytes in places))

    def _whole(self, ordinal: int, what: str) -> bytes:
        """Return the bytes of a parameter."""
        count = len(self.parameters)
        if not 0 <= ordinal < count:
            have = f"the kernel has {count} parameter{'' if count == 1 else 's'}, counted from 0"
            raise KernelBodyError(self.kernel, ordinal, what, have)
        return self.parameters[ordinal]

    def _bytes(self, ordinal: int, nbytes: int, what: str) -> bytes:
        """Return the bytes of a parameter, of which there must be so many."""
        data = self._whole(ordinal, what)
        if len(data) != nbytes:
            have = f"it has {len(data)} bytes, not {nbytes}"
            raise KernelBodyError(self.kernel, ordinal, what, have)
        return data


def brief(value: Any) -> str:
    """Return the repr of a dataclass without its fields that are None: of many attributes a launch has few."""
    held = ((field.name, getattr(value, field.name)) for field in fields(value))
    return f"{type_name(value)}({', '.join(f'{name}={one!r}' for name, one in held if one is not None)})"
