"""The host's steps before a launch: checks, allocations, and the encoding of tensor maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunnion.model.expr import Expr
    from trunnion.model.plan.slots import MemoryRef, Source

__all__ = ["Allocation", "ConditionCheck", "Encode", "Im2colMode", "TiledMode", "ValueCheck"]


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """A place whose number must equal an expression: each further occurrence of a symbol, and every expression.

    Constants are such expressions. Only arguments are such places: what a destination must be, its `TensorSlot` says.
    """

    source: Source
    """Where the number stands."""

    expected: Expr
    """What it must be."""


@dataclass(frozen=True, slots=True)
class ConditionCheck:
    """A condition of the author's own."""

    condition: Expr
    """Any value but 0 passes."""

    message: str
    """What is expected."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """An output that the launcher allocates."""

    tensor: int
    """The tensor's slot; shape and type stand there."""


@dataclass(frozen=True, slots=True)
class TiledMode:
    """What only ``cuTensorMapEncodeTiled`` is given, in the driver's order."""

    box: tuple[int, ...]
    """Elements of the box along each dimension."""


@dataclass(frozen=True, slots=True)
class Im2colMode:
    """What only ``cuTensorMapEncodeIm2col`` is given, in the driver's order."""

    lower: tuple[int, ...]
    """The lower corner of the box of base pixels, along W, H, D."""

    upper: tuple[int, ...]
    """The upper corner of the box of base pixels, along W, H, D."""

    channels_per_pixel: int
    """Channels that are read of each pixel."""

    pixels_per_column: int
    """Pixels that one load reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encode:
    """One call of ``cuTensorMapEncodeTiled`` or ``…Im2col``, in the driver's order: innermost dimension first."""

    index: int
    """The map's slot."""

    memory: MemoryRef
    """The memory whose address it takes."""

    mode: TiledMode | Im2colMode
    """Which of the two calls, and what only that one takes."""

    offset_bytes: Expr
    """Bytes between the memory's first element and the map's."""

    limit_bytes: Expr | None
    """Bytes that the memory spans, which the map must not reach beyond; None: it covers its memory by nature."""

    data_type: int
    """``CUtensorMapDataType``: the type as which the elements are read."""

    element_bits: int
    """Bits of one element."""

    dims: tuple[Expr, ...]
    """Elements along each dimension."""

    strides: tuple[Expr, ...]
    """Bytes between neighbours along each dimension but the innermost."""

    innermost_stride: Expr
    """Elements between neighbours along the innermost dimension; it must be 1 where that dimension is longer than 1."""

    element_strides: tuple[int, ...]
    """Every how many elements one is taken."""

    interleave: int
    """``CUtensorMapInterleave``."""

    swizzle: int
    """``CUtensorMapSwizzle``."""

    l2_promotion: int
    """``CUtensorMapL2promotion``."""

    oob_fill: int
    """``CUtensorMapFloatOOBfill``."""

    readers: tuple[int, ...]
    """The launches that take the map; if all of them are skipped, so is the encoding."""
