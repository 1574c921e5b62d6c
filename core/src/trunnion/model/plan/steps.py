"""The host's steps before a launch: checks, allocations, and the encoding of tensor maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunnion.model.expr import Expr
    from trunnion.model.plan.slots import MemoryRef, Source
    from trunnion.model.tensormap.fields import Im2colFields, TiledFields

__all__ = ["Allocation", "ConditionCheck", "Encode", "ValueCheck"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Encode:
    """One call of ``cuTensorMapEncodeTiled`` or ``…Im2col``, in the driver's order: innermost dimension first."""

    index: int
    """The map's slot."""

    memory: MemoryRef
    """The memory whose address it takes."""

    fields: TiledFields | Im2colFields
    """What the driver is told, but for what a call decides; the class says by which of the two calls."""

    offset_bytes: Expr
    """Bytes between the memory's first element and the map's."""

    limit_bytes: Expr | None
    """Bytes that the memory spans, which the map must not reach beyond; None: it covers its memory by nature."""

    dims: tuple[Expr, ...]
    """Elements along each dimension."""

    strides: tuple[Expr, ...]
    """Bytes between neighbours along each dimension but the innermost."""

    innermost_stride: Expr
    """Elements between neighbours along the innermost dimension; it must be 1 where that dimension is longer than 1."""

    readers: tuple[int, ...]
    """The launches that take the map; if all of them are skipped, so is the encoding."""
