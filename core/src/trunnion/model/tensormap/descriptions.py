"""Tensor maps: the descriptors by which the tensor memory accelerator (TMA) reads and writes parts of a tensor.

Everything here is in tensor order, outermost dimension first, as the tensor itself is described. The order is
reversed once, where the plan is made, because the driver wants the innermost dimension first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from trunnion.errors import ProgramError, TensorMapError, shorten
from trunnion.messages import spelled
from trunnion.model.dtypes import DType, dtype
from trunnion.model.enums import DriverEnum, member
from trunnion.model.expr import Const, Expr, as_expr, select
from trunnion.model.fields import instance, integer, members, place, text
from trunnion.model.memory import Memory, exprs
from trunnion.model.tensormap.rules import Im2colFields, TiledFields, broken_rules
from trunnion.plain import is_a

__all__ = [
    "Im2colTensorMap",
    "Interleave",
    "L2Promotion",
    "OobFill",
    "Swizzle",
    "TensorMap",
    "TensorMapDataType",
    "TiledTensorMap",
]

_BITS_OF_BYTE = 8
_SPATIAL = 2  # dimensions of an image tensor that are not spatial: the batch and the channels


class Interleave(DriverEnum):
    """``CUtensorMapInterleave``: how the channels of an image format are interleaved."""

    NONE = ("NONE", 0)
    B16 = ("16B", 1)
    B32 = ("32B", 2)


class Swizzle(DriverEnum):
    """``CUtensorMapSwizzle``: how a box's bytes are permuted in shared memory, against bank conflicts."""

    NONE = ("NONE", 0)
    B32 = ("32B", 1)
    B64 = ("64B", 2)
    B128 = ("128B", 3)
    B128_ATOM_32B = ("128B_ATOM_32B", 4)
    B128_ATOM_32B_FLIP_8B = ("128B_ATOM_32B_FLIP_8B", 5)
    B128_ATOM_64B = ("128B_ATOM_64B", 6)


class L2Promotion(DriverEnum):
    """``CUtensorMapL2promotion``: the granularity at which reads are promoted into the L2 cache."""

    NONE = ("NONE", 0)
    L2_64B = ("L2_64B", 1)
    L2_128B = ("L2_128B", 2)
    L2_256B = ("L2_256B", 3)


class OobFill(DriverEnum):
    """``CUtensorMapFloatOOBfill``: what a read outside of the tensor gives."""

    NONE = ("NONE", 0)
    NAN_REQUEST_ZERO_FMA = ("NAN_REQUEST_ZERO_FMA", 1)


class TensorMapDataType(DriverEnum):
    """The members of ``CUtensorMapDataType`` that are no element type of a tensor: ways to read one."""

    FLOAT32_FTZ = ("FLOAT32_FTZ", 10, 32)
    TFLOAT32 = ("TFLOAT32", 11, 32)
    TFLOAT32_FTZ = ("TFLOAT32_FTZ", 12, 32)
    U4_ALIGN8B = ("16U4_ALIGN8B", 13, 4)
    U4_ALIGN16B = ("16U4_ALIGN16B", 14, 4)
    U6_ALIGN16B = ("16U6_ALIGN16B", 15, 6)

    @property
    def bits(self) -> int:
        """Bits of one element in global memory."""
        return int(self.value[2])


@dataclass(frozen=True, slots=True)
class TensorMap(ABC):
    """What tiled and im2col maps have in common.

    As a kernel's argument a map travels by value, 128 bytes aligned to 64, for a parameter
    ``const __grid_constant__ CUtensorMap``.
    """

    tensor: Memory
    """The tensor or workspace that it reads or writes."""

    element_strides: tuple[int, ...] | None = field(default=None, kw_only=True)
    """Every how many elements one is taken, along each dimension; None: each one. 1 to 8 each."""

    interleave: Interleave = field(default=Interleave.NONE, kw_only=True)
    """The interleaved layout, or its driver's word."""

    swizzle: Swizzle = field(default=Swizzle.NONE, kw_only=True)
    """The swizzle pattern, or its driver's word such as ``"128B"``."""

    l2_promotion: L2Promotion = field(default=L2Promotion.NONE, kw_only=True)
    """The promotion, or its driver's word such as ``"L2_128B"``."""

    oob_fill: OobFill = field(default=OobFill.NONE, kw_only=True)
    """The fill, or its driver's word; NONE reads zeros."""

    dtype: DType | TensorMapDataType | None = field(default=None, kw_only=True)
    """The type to read the elements as, or a driver's word such as ``"TFLOAT32"``; None: the tensor's own."""

    element_offset: Expr = field(default_factory=lambda: as_expr(0), kw_only=True)
    """Elements of the tensor's own type between its first element and the map's."""

    shape: tuple[Expr, ...] | None = field(default=None, kw_only=True)
    """Elements along each of the map's dimensions, outermost first; None: the tensor's shape."""

    strides: tuple[Expr, ...] | None = field(default=None, kw_only=True)
    """Elements (of the map's type) between neighbours along each dimension; None: the tensor's strides."""

    label: str = field(default="", compare=False, kw_only=True)
    """A name for people; it does not count in equality."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", text(self.label, "label", least=0))
        instance(self.tensor, Memory, "tensor")
        with place(self.title):
            self._normalise()
            self._normalise_mode()
            broken = broken_rules(self.known_fields())
            if broken:
                raise TensorMapError(broken)

    @abstractmethod
    def _normalise_mode(self) -> None:
        """Check the fields of the subclass."""

    @abstractmethod
    def known_fields(self) -> TiledFields | Im2colFields:
        """Return what is known of the driver's arguments before any call."""

    def _normalise(self) -> None:
        for name, kind in _ENUMS.items():
            object.__setattr__(self, name, member(kind, getattr(self, name), name))
        if self.dtype is not None:
            with place("dtype"):
                object.__setattr__(self, "dtype", _data_type(self.dtype))
        kind_of_element = self.element_type
        if isinstance(kind_of_element, DType) and kind_of_element.tma_code is None:
            raise ProgramError(
                f"dtype {kind_of_element} has no tensor map type; name one to read it as", field="dtype"
            )
        with place("element_offset"):
            object.__setattr__(self, "element_offset", as_expr(self.element_offset))
        for name in ("shape", "strides"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, exprs(given, name))
        if self.element_strides is not None:
            object.__setattr__(self, "element_strides", integers(self.element_strides, "element_strides"))
        for name in ("element_strides", "strides"):
            self.check_count(name, self.rank)
        self._check_override()

    def check_count(self, name: str, count: int) -> None:
        """Refuse a field with another number of values.

        Raises
        ------
        ProgramError
            If the field is there and has not ``count`` values.
        """
        given = getattr(self, name)
        if given is not None and len(given) != count:
            raise ProgramError(f"got {len(given)} values for {count} dimensions", field=name)

    def _check_override(self) -> None:
        if self.shape is not None and self.strides is None:
            raise ProgramError("a shape of the map's own needs strides of its own", field="strides")
        if self.strides is None and self.element_bits != self.tensor.dtype.itemsize * _BITS_OF_BYTE:
            raise ProgramError(
                f"reading {self.tensor.dtype} as {self.element_word} changes the element's size: "
                "give shape and strides",
                field="dtype",
            )

    @property
    def element_type(self) -> DType | TensorMapDataType:
        """The type as which the elements are read."""
        return self.dtype if self.dtype is not None else self.tensor.dtype

    @property
    def element_bits(self) -> int:
        """Bits of one element in global memory."""
        kind = self.element_type
        return kind.bits if isinstance(kind, TensorMapDataType) else kind.itemsize * _BITS_OF_BYTE

    @property
    def element_word(self) -> str:
        """The element type's name, or the driver's word."""
        kind = self.element_type
        return kind.word if isinstance(kind, TensorMapDataType) else kind.name

    @property
    def data_type_code(self) -> int:
        """``CUtensorMapDataType``."""
        kind = self.element_type
        return kind.code if isinstance(kind, TensorMapDataType) else kind.tma_code or 0

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"tensor map {shorten(self.label or 'over ' + self.tensor.name)}"

    @property
    def extents(self) -> tuple[Expr, ...]:
        """Elements along each dimension, outermost first."""
        return self.tensor.shape if self.shape is None else self.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.extents)

    @property
    def within_by_nature(self) -> bool:
        """Whether the map covers just its tensor, so that no call can make it reach beyond."""
        return self.strides is None and self.element_offset == as_expr(0)

    def element_steps(self) -> tuple[int, ...]:
        """Return `element_strides` with its default filled in."""
        return self.element_strides if self.element_strides is not None else (1,) * self.rank

    def layout(self) -> tuple[Expr, ...]:
        """Return elements between neighbours along each dimension, outermost first, with the default filled in."""
        return self.tensor.steps() if self.strides is None else self.strides

    def byte_strides(self) -> tuple[Expr, ...]:
        """Return bytes between neighbours along each dimension but the innermost, innermost first.

        A stride of packed elements that is no whole number of bytes becomes an odd number next to it: that is no
        multiple of 16, so a rule refuses it, where the bytes rounded down might be one.
        """
        bits = self.element_bits
        steps = tuple(reversed(self.layout()))[1:]
        if bits % _BITS_OF_BYTE == 0:
            return tuple(step * (bits // _BITS_OF_BYTE) for step in steps)
        return tuple(
            select(
                step * bits % _BITS_OF_BYTE,
                step * bits // (2 * _BITS_OF_BYTE) * 2 + 1,
                step * bits // _BITS_OF_BYTE,
            )
            for step in steps
        )

    def _shared_fields(self) -> dict[str, Any]:
        innermost = self.layout()[-1:]
        return {
            "address": None,
            "element_bits": self.element_bits,
            "data_type": self.data_type_code,
            "dims": tuple(_known(extent) for extent in reversed(self.extents)),
            "strides": tuple(map(_known, self.byte_strides())),
            "innermost_stride": _known(innermost[0]) if innermost else None,
            "element_strides": tuple(reversed(self.element_steps())),
            "interleave": self.interleave.code,
            "swizzle": self.swizzle.code,
            "oob_fill": self.oob_fill.code,
            "l2_promotion": self.l2_promotion.code,
        }


@dataclass(frozen=True, slots=True)
class TiledTensorMap(TensorMap):
    """A map that reads boxes of a tensor, by ``cuTensorMapEncodeTiled``."""

    box_dim: tuple[int, ...]
    """Elements of the box along each dimension, outermost first; 1 to 256 each."""

    def _normalise_mode(self) -> None:
        object.__setattr__(self, "box_dim", integers(self.box_dim, "box_dim"))
        self.check_count("box_dim", self.rank)

    def known_fields(self) -> TiledFields:
        """Return what the driver is told, as far as it is known before any call."""
        return TiledFields(box=tuple(reversed(self.box_dim)), **self._shared_fields())


@dataclass(frozen=True, slots=True)
class Im2colTensorMap(TensorMap):
    """A map that reads columns of pixels from images, by ``cuTensorMapEncodeIm2col``.

    The tensor is a batch of images: N, then D, H and W as far as there are such dimensions, then the channels. With an
    interleave it is N, then the blocks of channels, then D, H and W.
    """

    pixel_box_lower_corner: tuple[int, ...] = field(kw_only=True)
    """Where the box of base pixels begins, along D, H, W: pixels from the image's first."""

    pixel_box_upper_corner: tuple[int, ...] = field(kw_only=True)
    """Where the box of base pixels ends, along D, H, W: pixels from the image's last."""

    channels_per_pixel: int = field(kw_only=True)
    """Channels that are read of each pixel; 1 to 256."""

    pixels_per_column: int = field(kw_only=True)
    """Pixels that one load reads; 1 to 1024."""

    def _normalise_mode(self) -> None:
        for name in ("pixel_box_lower_corner", "pixel_box_upper_corner"):
            object.__setattr__(self, name, integers(getattr(self, name), name))
        for name in ("channels_per_pixel", "pixels_per_column"):
            integer(getattr(self, name), name)
        spatial = max(self.rank - _SPATIAL, 0)
        for name in ("pixel_box_lower_corner", "pixel_box_upper_corner"):
            given = getattr(self, name)
            if len(given) != spatial:
                raise ProgramError(
                    f"got {len(given)} values, expected {spatial}: one for each dimension between batch and channels",
                    field=name,
                )

    def known_fields(self) -> Im2colFields:
        """Return what the driver is told, as far as it is known before any call."""
        return Im2colFields(
            lower=tuple(reversed(self.pixel_box_lower_corner)),
            upper=tuple(reversed(self.pixel_box_upper_corner)),
            channels_per_pixel=self.channels_per_pixel,
            pixels_per_column=self.pixels_per_column,
            **self._shared_fields(),
        )


_ENUMS: dict[str, type[DriverEnum]] = {
    "interleave": Interleave,
    "swizzle": Swizzle,
    "l2_promotion": L2Promotion,
    "oob_fill": OobFill,
}


def integers(values: object, name: str) -> tuple[int, ...]:
    """Return a sequence of integers.

    Raises
    ------
    ProgramError
        If a member is none; its place is named.
    """
    return tuple(integer(value, f"{name}[{i}]") for i, value in enumerate(members(values, name)))


def _known(expr: Expr) -> int | None:
    return expr.value if isinstance(expr, Const) else None


def _data_type(given: object) -> DType | TensorMapDataType:
    if is_a(given, TensorMapDataType):
        return given
    word = spelled(given)
    for one in TensorMapDataType:
        if word == one.word:
            return one
    return dtype(given)
