"""What a host function computes with, and what it asks the driver to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "HostAssertion",
    "Launch",
    "MapRequest",
    "Scalar",
    "Scratch",
    "Slot",
    "Tensor",
    "Window",
    "Words",
    "type_index",
]

_DLPACK = {
    torch.int8: (0, 8, 1),
    torch.int16: (0, 16, 1),
    torch.int32: (0, 32, 1),
    torch.int64: (0, 64, 1),
    torch.uint8: (1, 8, 1),
    torch.float16: (2, 16, 1),
    torch.float32: (2, 32, 1),
    torch.float64: (2, 64, 1),
    torch.bfloat16: (4, 16, 1),
    torch.bool: (6, 8, 1),
    torch.float8_e4m3fn: (10, 8, 1),
    torch.float8_e5m2: (12, 8, 1),
    torch.float4_e2m1fn_x2: (17, 4, 2),
}
"""Code, bits and lanes, as ``dlpack.h`` numbers them."""


class HostAssertion(Exception):  # noqa: N818 - it is what the host function would raise, not an error of ours
    """An assertion of the host function does not hold; the text is its message."""


@dataclass(frozen=True)
class Words:
    """A pointer to 64-bit numbers: a tensor's shape, or its strides."""

    words: tuple[int, ...]


@dataclass(frozen=True)
class Tensor:
    """A pointer to a ``DLTensor``.

    Parameters
    ----------
    value
        The torch tensor that it describes.
    """

    value: Any

    @property
    def fields(self) -> dict[int, Any]:
        """What ``tvm_struct_get`` reads, by its number."""
        code, bits, lanes = _DLPACK[self.value.dtype]
        return {
            1: self.value.data_ptr(),
            2: Words(tuple(self.value.shape)),
            3: Words(tuple(self.value.stride())),
            4: self.value.dim(),
            5: code,
            6: bits,
            7: lanes,
            8: 0,
            9: self.value.device.index or 0,
            10: 2 if self.value.device.type == "cuda" else 1,
        }


@dataclass(frozen=True)
class Scratch:
    """Memory that the host function allocates; each allocation is its own."""

    number: int
    """Counted from 0 in the order of allocation."""

    dtype: str
    """Its elements' type."""

    nbytes: int
    """Its size."""


@dataclass(eq=False)
class Slot:
    """Room for a tensor map."""

    request: MapRequest | None = None
    """What was last encoded into it."""


@dataclass(frozen=True)
class MapRequest:
    """One tensor map that is encoded: what the driver is asked for, in its order, innermost dimension first."""

    mode: str
    """``"tiled"`` or ``"im2col"``."""

    dtype: int
    """``CUtensorMapDataType``."""

    address: int | Scratch
    """Where the tensor begins."""

    dims: tuple[int, ...]
    """In elements."""

    strides: tuple[int, ...]
    """In bytes, of all dimensions but the innermost."""

    box: tuple[Any, ...]
    """Tiled: the box; im2col: lower corner, upper corner, channels per pixel, pixels per column."""

    element_strides: tuple[int, ...]
    """The step along each dimension."""

    modes: tuple[int, int, int, int]
    """Interleave, swizzle, L2 promotion, fill of what is out of bounds."""


@dataclass(frozen=True)
class Window:
    """The access-policy window that the stream has."""

    address: int | Scratch
    nbytes: int
    hit_ratio: float


@dataclass(frozen=True)
class Scalar:
    """A number as a kernel receives it."""

    dtype: str
    """The type of the device function's parameter, as TVM spells it."""

    value: float
    """Its value."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One kernel launch."""

    kernel: str
    """The name under which it is called."""

    parameters: tuple[int | Scratch | Scalar | MapRequest, ...]
    """What the kernel is given, in its own order; a number is an address."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    shared: int
    """Dynamic shared memory, in bytes."""

    cooperative: bool
    pdl: bool
    window: Window | None

    def addresses(self) -> Iterator[int | Scratch]:
        """Yield every address that the launch speaks of, each where it stands."""
        for value in self.parameters:
            if isinstance(value, MapRequest):
                yield value.address
            elif not isinstance(value, Scalar):
                yield value
        if self.window is not None:
            yield self.window.address


def type_index(value: Any) -> int:
    """Return the number by which TVM-FFI knows an argument's type.

    Raises
    ------
    TypeError
        If it is of no type that the corpus passes.
    """
    if value is None:
        return 0
    if isinstance(value, torch.Tensor):
        return 70
    kinds: dict[type, int] = {int: 1, bool: 2, float: 3}
    if type(value) not in kinds:
        raise TypeError(f"got an argument {value!r}")
    return kinds[type(value)]
