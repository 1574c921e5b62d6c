"""`LaunchPlan`: what the host does at a call, as ordered steps over integer slots.

A plan is what renderers render. Every reference is a slot, every expression is over slots, every kernel parameter has
its size and offset; what was equal in value is one step. Names are carried along for messages alone.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from trunnion.model.dtypes import DType

if TYPE_CHECKING:
    from trunnion.model.capability import Capability
    from trunnion.model.expr import Expr
    from trunnion.model.launch import Dims
    from trunnion.model.params import Signature

__all__ = [
    "Allocation",
    "Binding",
    "ConditionCheck",
    "Encode",
    "ExprArgument",
    "KernelParameter",
    "KernelSignature",
    "LaunchPlan",
    "MapArgument",
    "PlannedArgument",
    "PlannedLaunch",
    "PointerArgument",
    "ScalarArgument",
    "ScalarSlot",
    "Source",
    "TensorSlot",
    "ValueCheck",
]

TENSOR_MAP_BYTES = 128
"""``sizeof(CUtensorMap)``."""

TENSOR_MAP_ALIGNMENT = 64
"""``alignof(CUtensorMap)``."""


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
    tensor libraries put there what they like. Extents and scalars always are.
    """

    slot: int
    """The value slot; equal to the binding's place in the plan."""

    symbol: str
    """For messages."""

    source: Source
    """The first bare occurrence; the value is read there if no candidate is live."""

    candidates: tuple[Source, ...]
    """Where the value may be read instead, in order; empty if `source` always is live, or is the only one."""

    min: int
    """The least value allowed."""

    max: int
    """The greatest value allowed."""

    multiple_of: int
    """What the value must be a multiple of."""


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """A place whose number must equal an expression: each further occurrence of a symbol, and every expression."""

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
    """One call of ``cuTensorMapEncodeTiled``, in the driver's order: innermost dimension first."""

    index: int
    """The map's slot."""

    tensor: int
    """The slot of the tensor whose address it takes."""

    offset_bytes: Expr
    """Bytes between the tensor's first element and the map's."""

    dtype: DType
    """The type as which the elements are read."""

    dims: tuple[Expr, ...]
    """Elements along each dimension."""

    strides: tuple[Expr, ...]
    """Bytes between neighbours along each dimension but the innermost."""

    innermost_stride: Expr
    """Elements between neighbours along the innermost dimension; it must be 1 where that dimension is longer than 1."""

    box: tuple[int, ...]
    """Elements of the box along each dimension."""

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


@dataclass(frozen=True, slots=True)
class PointerArgument:
    """The address of a tensor's first element."""

    tensor: int
    """The tensor's slot."""


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number of the call, in its own type."""

    scalar: int
    """The scalar's slot."""


@dataclass(frozen=True, slots=True)
class ExprArgument:
    """A computed integer."""

    value: Expr
    """The value, with its outermost cast: that is where the range is checked."""

    dtype: DType
    """The type in which it travels."""


@dataclass(frozen=True, slots=True)
class MapArgument:
    """A tensor map by value."""

    encode: int
    """The map's slot."""


PlannedArgument = PointerArgument | ScalarArgument | ExprArgument | MapArgument
"""What a launch passes."""


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """What a launch passes to one parameter.

    Offsets are not part of a plan: where a parameter lies depends on the architecture
    (`trunnion.image.pack_parameters`).
    """

    size: int
    """Bytes."""

    alignment: int
    """Bytes."""

    description: str
    """For messages: ``"a pointer to float16"``."""


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """One kernel, with what the program passes to it."""

    name: str
    """The kernel's name, as the program spells it."""

    parameters: tuple[KernelParameter, ...]
    """By ordinal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLaunch:
    """One launch."""

    index: int
    """The place in the stream order."""

    kernel: int
    """The slot of the kernel, in `LaunchPlan.kernels`."""

    args: tuple[PlannedArgument, ...]
    """By ordinal."""

    grid: Dims
    """Blocks along x, y, z."""

    block: Dims
    """Threads along x, y, z."""

    dynamic_smem_bytes: Expr
    """Dynamic shared memory of a block, in bytes."""

    cluster: Dims | None
    """Blocks of a cluster, or nothing said of clusters."""

    cooperative: bool
    """Whether all blocks must be resident at once."""

    pdl: bool
    """Whether it may start before the launch before it has finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """Everything that a call does, in the order in which it does it.

    First all checks and all values, then the allocations, then the encodings, then the launches: a call that is
    refused has launched nothing.
    """

    name: str
    """The program's name, for messages."""

    signature: Signature
    """What a call takes and gives back, as the author wrote it."""

    tensors: tuple[TensorSlot, ...]
    """Inputs in order, then outputs in order."""

    scalars: tuple[ScalarSlot, ...]
    """In order."""

    bindings: tuple[Binding, ...]
    """In the order in which values become known."""

    checks: tuple[ValueCheck | ConditionCheck, ...]
    """In order; an author's own come last."""

    allocations: tuple[Allocation, ...]
    """One for each output, in order."""

    encodes: tuple[Encode, ...]
    """Distinct maps, in the order of their first use."""

    launches: tuple[PlannedLaunch, ...]
    """In stream order."""

    results: tuple[int, ...]
    """The tensor slots that a call returns."""

    kernels: tuple[KernelSignature, ...]
    """Distinct kernels, in the order of their first launch."""

    requires: frozenset[Capability]
    """What a backend must declare."""

    @property
    def hash(self) -> str:
        """SHA-256 over everything that the plan says, as 64 hexadecimal digits; equal plans have equal hashes."""
        text = json.dumps(_plain(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Reduce a plan to lists, numbers and text in one way only."""
    if isinstance(value, DType):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        compared = [_plain(getattr(value, f.name)) for f in fields(value) if f.compare]
        return [type(value).__name__, *compared]
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, frozenset):
        return sorted(str(member) for member in value)
    if isinstance(value, tuple):
        return [_plain(member) for member in value]
    return value
