"""Tensor maps: the descriptors by which the tensor memory accelerator (TMA) reads and writes boxes of a tensor.

Everything here is in tensor order, outermost dimension first, as the tensor itself is described. The order is
reversed once, where the plan is made, because the driver wants the innermost dimension first.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from trunnion.errors import ProgramError, TensorMapError, shorten
from trunnion.model.dtypes import DType, dtype
from trunnion.model.expr import Expr, as_expr
from trunnion.model.fields import describe, instance, integer, members, place, text
from trunnion.model.tensormap_rules import TiledFields, broken_rules

if TYPE_CHECKING:
    from trunnion.model.params import TensorParam

__all__ = ["Interleave", "L2Promotion", "OobFill", "Swizzle", "TiledTensorMap"]


class _DriverEnum(enum.Enum):
    """A closed set of words, each with the driver's number."""

    @property
    def word(self) -> str:
        """The driver's word, without the enumeration's prefix."""
        return str(self.value[0])

    @property
    def code(self) -> int:
        """The driver's number."""
        return int(self.value[1])


class Interleave(_DriverEnum):
    """``CUtensorMapInterleave``: how the channels of an image format are interleaved."""

    NONE = ("NONE", 0)
    B16 = ("16B", 1)
    B32 = ("32B", 2)


class Swizzle(_DriverEnum):
    """``CUtensorMapSwizzle``: how a box's bytes are permuted in shared memory, against bank conflicts."""

    NONE = ("NONE", 0)
    B32 = ("32B", 1)
    B64 = ("64B", 2)
    B128 = ("128B", 3)
    B128_ATOM_32B = ("128B_ATOM_32B", 4)
    B128_ATOM_32B_FLIP_8B = ("128B_ATOM_32B_FLIP_8B", 5)
    B128_ATOM_64B = ("128B_ATOM_64B", 6)


class L2Promotion(_DriverEnum):
    """``CUtensorMapL2promotion``: the granularity at which reads are promoted into the L2 cache."""

    NONE = ("NONE", 0)
    L2_64B = ("L2_64B", 1)
    L2_128B = ("L2_128B", 2)
    L2_256B = ("L2_256B", 3)


class OobFill(_DriverEnum):
    """``CUtensorMapFloatOOBfill``: what a read outside of the tensor gives."""

    NONE = ("NONE", 0)
    NAN_REQUEST_ZERO_FMA = ("NAN_REQUEST_ZERO_FMA", 1)


_E = TypeVar("_E", bound=_DriverEnum)


def _member(kind: type[_E], value: object, name: str) -> _E:
    for member in kind:
        if value is member or value == member.word:
            return member
    allowed = ", ".join(member.word for member in kind)
    raise ProgramError(f"got {describe(value)}, expected one of {allowed}", field=name)


@dataclass(frozen=True, slots=True)
class TiledTensorMap:
    """A map that reads boxes of a tensor, by ``cuTensorMapEncodeTiled``.

    As a kernel's argument it travels by value, 128 bytes aligned to 64, for a parameter
    ``const __grid_constant__ CUtensorMap``.
    """

    tensor: TensorParam
    """The tensor that it reads or writes."""

    box_dim: tuple[int, ...]
    """Elements of the box along each dimension, outermost first; 1 to 256 each."""

    element_strides: tuple[int, ...] | None = None
    """Every how many elements one is taken, along each dimension; None: each one. 1 to 8 each."""

    interleave: Interleave = Interleave.NONE
    """The interleaved layout, or its driver's word."""

    swizzle: Swizzle = Swizzle.NONE
    """The swizzle pattern, or its driver's word such as ``"128B"``."""

    l2_promotion: L2Promotion = L2Promotion.NONE
    """The promotion, or its driver's word such as ``"L2_128B"``."""

    oob_fill: OobFill = OobFill.NONE
    """The fill, or its driver's word; NONE reads zeros."""

    dtype: DType | None = None
    """The type to read the elements as; None: the tensor's own."""

    element_offset: Expr = field(default_factory=lambda: as_expr(0))
    """Elements of the tensor's own type between its first element and the map's."""

    shape: tuple[Expr, ...] | None = None
    """Elements along each of the map's dimensions, outermost first; None: the tensor's shape."""

    strides: tuple[Expr, ...] | None = None
    """Elements (of the map's type) between neighbours along each dimension; None: the tensor's strides."""

    label: str = field(default="", compare=False)
    """A name for people; it does not count in equality."""

    def __post_init__(self) -> None:
        from trunnion.model.params import TensorParam  # noqa: PLC0415 - params reads this module

        object.__setattr__(self, "label", text(self.label, "label", least=0))
        instance(self.tensor, TensorParam, "tensor")
        with place(f"tensor map {shorten(self.label or 'over ' + self.tensor.name)}"):
            self._normalise()
            broken = broken_rules(self._known_fields())
            if broken:
                raise TensorMapError(broken)

    def _normalise(self) -> None:
        for name, kind in _ENUMS.items():
            object.__setattr__(self, name, _member(kind, getattr(self, name), name))
        if self.dtype is not None:
            with place("dtype"):
                object.__setattr__(self, "dtype", dtype(self.dtype))
        if self.element_type.tma_code is None:
            raise ProgramError(
                f"dtype {self.element_type} has no tensor map type; name one to read it as", field="dtype"
            )
        with place("element_offset"):
            object.__setattr__(self, "element_offset", as_expr(self.element_offset))
        for name in ("shape", "strides"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, _exprs(given, name))
        object.__setattr__(self, "box_dim", _integers(self.box_dim, "box_dim"))
        if self.element_strides is not None:
            object.__setattr__(self, "element_strides", _integers(self.element_strides, "element_strides"))
        for name in ("box_dim", "element_strides", "strides"):
            given = getattr(self, name)
            if given is not None and len(given) != self.rank:
                raise ProgramError(f"got {len(given)} values for {self.rank} dimensions", field=name)
        self._check_override()

    def _check_override(self) -> None:
        if self.shape is not None and self.strides is None:
            raise ProgramError("a shape of the map's own needs strides of its own", field="strides")
        if self.strides is None and self.element_type.itemsize != self.tensor.dtype.itemsize:
            raise ProgramError(
                f"reading {self.tensor.dtype} as {self.element_type} changes the element's size: "
                "give shape and strides",
                field="dtype",
            )

    @property
    def element_type(self) -> DType:
        """The type as which the elements are read."""
        return self.dtype if self.dtype is not None else self.tensor.dtype

    @property
    def extents(self) -> tuple[Expr, ...]:
        """Elements along each dimension, outermost first."""
        return self.tensor.shape if self.shape is None else self.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.extents)

    def element_steps(self) -> tuple[int, ...]:
        """Return `element_strides` with its default filled in."""
        return self.element_strides if self.element_strides is not None else (1,) * self.rank

    def layout(self) -> tuple[Expr, ...]:
        """Return elements between neighbours along each dimension, outermost first, with the default filled in."""
        if self.strides is not None:
            return self.strides
        if self.tensor.strides is not None:
            return self.tensor.strides
        steps: list[Expr] = []
        step = as_expr(1)
        for extent in reversed(self.extents):
            steps.append(step)
            step = step * extent
        return tuple(reversed(steps))

    def _known_fields(self) -> TiledFields:
        return TiledFields.from_exprs(self)


_ENUMS: dict[str, type[_DriverEnum]] = {
    "interleave": Interleave,
    "swizzle": Swizzle,
    "l2_promotion": L2Promotion,
    "oob_fill": OobFill,
}


def _integers(values: object, name: str) -> tuple[int, ...]:
    return tuple(integer(value, f"{name}[{i}]") for i, value in enumerate(members(values, name)))


def _exprs(values: object, name: str) -> tuple[Expr, ...]:
    result = []
    for axis, value in enumerate(members(values, name)):
        with place(f"{name}[{axis}]"):
            result.append(as_expr(value))  # type: ignore[arg-type]  # which checks it
    return tuple(result)
