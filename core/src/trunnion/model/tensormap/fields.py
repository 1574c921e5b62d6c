"""The arguments of one tensor map's encoding, as far as they are known: what the rules judge.

Everything here is in the driver's order, innermost dimension first, and in the driver's numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from typing import Self

__all__ = ["DriverArgument", "Im2colFields", "MapFields", "TiledFields"]


class DriverArgument(NamedTuple):
    """One argument of the driver's call that encodes a map."""

    type: str
    """Its type in ``cuda.h``, as it stands there; of a pointer to the first of several numbers, theirs: with ``[]``."""

    value: int | tuple[int, ...]
    """The number, or the numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFields(ABC):
    """What both encodings are told; None: not known yet."""

    call: ClassVar[str]
    """The driver's function."""

    address: int | None
    """The address of the map's first element, in bytes."""

    element_bits: int
    """Bits of one element in global memory: a packed type has less than 8."""

    data_type: int
    """``CUtensorMapDataType``."""

    dims: tuple[int | None, ...]
    """Elements along each dimension."""

    strides: tuple[int | None, ...]
    """Bytes between neighbours along each dimension but the innermost."""

    innermost_stride: int | None
    """Elements between neighbours along the innermost dimension: the driver has no word for any but 1."""

    element_strides: tuple[int, ...]
    """Every how many elements one is taken, along each dimension."""

    interleave: int
    """``CUtensorMapInterleave``."""

    swizzle: int
    """``CUtensorMapSwizzle``."""

    oob_fill: int
    """``CUtensorMapFloatOOBfill``."""

    l2_promotion: int = 0
    """``CUtensorMapL2promotion``; no rule judges it."""

    def at(
        self,
        address: int | None,
        dims: tuple[int | None, ...],
        strides: tuple[int | None, ...],
        innermost_stride: int | None,
    ) -> Self:
        """Return the arguments with what a call decides; see these fields."""
        return replace(self, address=address, dims=dims, strides=strides, innermost_stride=innermost_stride)

    @property
    def constant(self) -> Self:
        """The arguments without what a call decides."""
        rank = len(self.element_strides)
        return self.at(None, (None,) * rank, (None,) * (rank - 1), None)

    def arguments(self) -> tuple[DriverArgument, ...]:
        """Return what the driver is told, in its own order, behind the pointer to the map; all of it is known."""
        return (
            DriverArgument("CUtensorMapDataType", self.data_type),
            DriverArgument("cuuint32_t", len(self.dims)),
            DriverArgument("void*", _told(self.address)),
            DriverArgument("cuuint64_t[]", tuple(map(_told, self.dims))),
            DriverArgument("cuuint64_t[]", tuple(map(_told, self.strides))),
            *self._box_arguments(),
            DriverArgument("cuuint32_t[]", self.element_strides),
            DriverArgument("CUtensorMapInterleave", self.interleave),
            DriverArgument("CUtensorMapSwizzle", self.swizzle),
            DriverArgument("CUtensorMapL2promotion", self.l2_promotion),
            DriverArgument("CUtensorMapFloatOOBfill", self.oob_fill),
        )

    @abstractmethod
    def _box_arguments(self) -> tuple[DriverArgument, ...]:
        """Return what stands between the strides and the elements' strides: what one load takes."""

    @property
    @abstractmethod
    def inner_elements(self) -> int | None:
        """Elements of one box along the innermost dimension."""

    @property
    def inner_bits(self) -> int | None:
        """Bits of one box along the innermost dimension."""
        return None if self.inner_elements is None else self.inner_elements * self.element_bits


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledFields(MapFields):
    """The arguments of ``cuTensorMapEncodeTiled``."""

    call: ClassVar[str] = "cuTensorMapEncodeTiled"

    box: tuple[int, ...]
    """Elements of the box along each dimension."""

    def _box_arguments(self) -> tuple[DriverArgument, ...]:
        return (DriverArgument("cuuint32_t[]", self.box),)

    @property
    def inner_elements(self) -> int | None:
        """Elements of one box along the innermost dimension."""
        return self.box[0] if self.box else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Im2colFields(MapFields):
    """The arguments of ``cuTensorMapEncodeIm2col``."""

    call: ClassVar[str] = "cuTensorMapEncodeIm2col"

    lower: tuple[int, ...]
    """``pixelBoxLowerCorner``: along each spatial dimension, where the bounding box starts, from the first pixel."""

    upper: tuple[int, ...]
    """``pixelBoxUpperCorner``: along each spatial dimension, where the bounding box ends, from the last pixel."""

    channels_per_pixel: int
    """``channelsPerPixel``: elements of one pixel that one load takes."""

    pixels_per_column: int
    """``pixelsPerColumn``: pixels that one load takes."""

    def _box_arguments(self) -> tuple[DriverArgument, ...]:
        return (
            DriverArgument("int[]", self.lower),
            DriverArgument("int[]", self.upper),
            DriverArgument("cuuint32_t", self.channels_per_pixel),
            DriverArgument("cuuint32_t", self.pixels_per_column),
        )

    @property
    def inner_elements(self) -> int | None:
        """Elements of one box along the innermost dimension."""
        return self.channels_per_pixel

    @property
    def spatial_dims(self) -> tuple[int | None, ...]:
        """Pixels along each dimension that has corners, width first.

        Channels come first and images last; with an interleave the channels' blocks are the last dimension but one,
        and a block of channels is no dimension.
        """
        return self.dims[:-2] if self.interleave else self.dims[1:-1]


def _told(number: int | None) -> int:
    if number is None:
        raise ValueError("the driver is told of a map before all of it is known")
    return number
