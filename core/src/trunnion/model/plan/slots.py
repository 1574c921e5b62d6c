"""What a call consists of, by integer slots: its tensors, numbers, addresses, bytes and workspaces."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunnion.model.dtypes import DType
    from trunnion.model.expr import Expr

__all__ = [
    "Binding",
    "MemoryKind",
    "MemoryRef",
    "PointerSlot",
    "ScalarSlot",
    "Source",
    "StructSlot",
    "TensorSlot",
    "VariableSlot",
    "WorkspaceSlot",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSlot:
    """A tensor of the call: an input, or an output."""

    index: int
    """The slot."""

    name: str
    """For messages."""

    dtype: DType
    """The element type."""

    shape: tuple[Expr, ...]
    """Elements along each dimension, outermost first."""

    strides: tuple[Expr, ...] | None
    """Elements between neighbours; None: contiguous, row-major."""

    alignment: int
    """Bytes that the address is a multiple of."""

    output: bool
    """Whether the launcher allocates it, unless the caller gives it."""

    position: int
    """The place among the call's arguments; for an output, among the outputs."""

    nullable: bool = False
    """Whether the call may leave it out: its pointer is null, and nothing of it is checked."""

    fill: bytes | None = None
    """One element's bytes, little-endian, with which an output is filled before the first launch; None: it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarSlot:
    """A number of the call."""

    index: int
    """The slot."""

    name: str
    """For messages."""

    dtype: DType
    """The type in which it travels."""

    position: int
    """The place among the call's arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerSlot:
    """An address of the call."""

    index: int
    """The slot."""

    name: str
    """For messages."""

    nullable: bool
    """Whether the call may pass None, for 0."""

    alignment: int
    """Bytes that the address is a multiple of."""

    position: int
    """The place among the call's arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructSlot:
    """Bytes of the call."""

    index: int
    """The slot."""

    name: str
    """For messages."""

    nbytes: int
    """How many."""

    alignment: int
    """Bytes that the parameter is aligned to."""

    position: int
    """The place among the call's arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceSlot:
    """Device memory of one call."""

    index: int
    """The slot."""

    name: str
    """For messages."""

    extents: tuple[Expr, ...]
    """Elements along each dimension; one that is negative in a call is refused."""

    dtype: DType
    """The element type."""

    itemsize: int
    """Bytes of one element."""

    alignment: int
    """Bytes that the address is a multiple of."""

    zeroed: bool
    """Whether it is filled with zeros before the first launch."""

    readers: tuple[int, ...]
    """The launches that are given it; if all of them are skipped, it is not allocated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableSlot:
    """A variable of the device code."""

    index: int
    """The slot."""

    name: str
    """What the program calls it: a C identifier, or a C++ name expression."""

    part: int
    """The part of the program's code that defines it."""

    nbytes: int
    """How many bytes it has."""

    init: bytes | None
    """What it holds before the first launch on a device; None: what the image says."""


class MemoryKind(enum.StrEnum):
    """Whose memory a reference means."""

    TENSOR = "tensor"
    """A `TensorSlot`."""

    WORKSPACE = "workspace"
    """A `WorkspaceSlot`."""


@dataclass(frozen=True, slots=True)
class MemoryRef:
    """A tensor or a workspace."""

    kind: MemoryKind
    """Which table."""

    slot: int
    """The place there."""


@dataclass(frozen=True, slots=True)
class Source:
    """A place in a call where a number stands."""

    kind: str
    """``"shape"``, ``"stride"`` or ``"scalar"``."""

    slot: int
    """The tensor's slot, or the scalar's."""

    axis: int = 0
    """The dimension; 0 for a scalar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Gives one value slot its value: a symbol's first bare occurrence that is live in the call.

    A stride is live where its dimension is longer than 1 and the tensor has elements: elsewhere it means nothing, and
    tensor libraries put there what they like. Of a tensor that the call leaves out, nothing is live. Extents and
    scalars always are.
    """

    slot: int
    """The value slot; equal to the binding's place in the plan."""

    symbol: str
    """For messages."""

    source: Source
    """The first bare occurrence."""

    candidates: tuple[Source, ...]
    """Every bare occurrence in order, `source` first; empty if `source` is always read.

    The value is that of the first live one; if none is, of the first whose tensor is there; if none is,
    `UnboundSymbolError` lists them.
    """

    min: int
    """The least value allowed."""

    max: int
    """The greatest value allowed."""

    multiple_of: int
    """What the value must be a multiple of."""
