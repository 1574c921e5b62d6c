"""`LaunchPlan`: what the host does at a call, as ordered steps over integer slots.

A plan is what renderers render. Every reference is a slot, every expression is over slots, every kernel parameter has
its size and offset; what was equal in value is one step. Names are carried along for messages alone.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from trunnion.model.dtypes import DType
from trunnion.model.expr import Cast, Const, Expr, Select
from trunnion.model.plan.slots import (
    Binding,
    MemoryKind,
    MemoryRef,
    PointerSlot,
    ScalarSlot,
    Source,
    StructSlot,
    TensorSlot,
    VariableSlot,
    WorkspaceSlot,
)
from trunnion.turns import kept_property

if TYPE_CHECKING:
    from trunnion.model.capability import Capability
    from trunnion.model.float_expr import FloatExpr
    from trunnion.model.interval import Interval
    from trunnion.model.launch import Dims
    from trunnion.model.params import Signature
    from trunnion.model.plan.facts import PlannedFact
    from trunnion.model.plan.steps import (
        Action,
        ConditionCheck,
        CopyVariable,
        Encode,
        Phase,
        Step,
        ValueCheck,
    )

__all__ = [
    "PLAN_VERSION",
    "AddressArgument",
    "BuiltArgument",
    "BuiltField",
    "ConstantArgument",
    "ExprArgument",
    "FloatArgument",
    "KernelField",
    "KernelParameter",
    "KernelSignature",
    "LaunchPlan",
    "MapArgument",
    "MovedArgument",
    "PlannedArgument",
    "PlannedAttribute",
    "PlannedLaunch",
    "PlannedWindow",
    "PointerArgument",
    "ScalarArgument",
    "StructArgument",
    "VariableArgument",
    "ViewArgument",
]

TENSOR_MAP_BYTES = 128
"""``sizeof(CUtensorMap)``."""

TENSOR_MAP_ALIGNMENT = 64
"""``alignof(CUtensorMap)``."""

_SOURCE_KINDS = ("shape", "stride", "scalar")


PLAN_VERSION: Final = 7
"""Changes whenever the plan of some program does, or what its steps are.

Plans' hashes are made with it, and the versions of core's emitters: an artifact of another one is refused by that name.
3: a plan says every step of a call, to its result. 4: arguments may be constants, moved addresses, floating-point
expressions, and structs that the launcher builds; a plan says which facts of the device it is over, and has module
variables. 5: a fill of the signature is told by its bytes. 6: a launch with a condition asks for its constants itself.
7: a stride of packed elements that is no whole number of bytes is refused.
"""


@dataclass(frozen=True, slots=True)
class PointerArgument:
    """The address of the first element of a tensor or a workspace; 0 for a tensor that the call leaves out."""

    memory: MemoryRef
    """Whose."""


@dataclass(frozen=True, slots=True)
class MovedArgument:
    """The address of memory, moved; 0 for a tensor that the call leaves out, whose offset nobody computes."""

    memory: MemoryRef
    """Whose."""

    offset: Expr
    """Elements between the memory's first one and the one that is meant."""

    limit: Expr
    """Elements that the memory spans: the offset is 0 to this."""

    @property
    def is_proven(self) -> bool:
        """Whether the offset is within its limits in every call, so that nobody judges it."""
        offset = self.offset.bounds
        return offset.low >= 0 and offset.high <= _chosen_bounds(self.limit).low

    @property
    def numbers(self) -> tuple[Expr, ...]:
        """What a call computes: the offset, and the limit if the one is judged by the other."""
        return (self.offset,) if self.is_proven else (self.offset, self.limit)


@dataclass(frozen=True, slots=True)
class ConstantArgument:
    """Bytes that are the same in every call: a number, or a null pointer."""

    data: bytes
    """As they travel, least first."""

    dtype: DType | None
    """The number's type; None: a null pointer."""


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number of the call, in its own type."""

    scalar: int
    """The scalar's slot."""


@dataclass(frozen=True, slots=True)
class AddressArgument:
    """An address of the call."""

    pointer: int
    """The pointer's slot."""


@dataclass(frozen=True, slots=True)
class StructArgument:
    """Bytes of the call, by value."""

    struct: int
    """The struct's slot."""


@dataclass(frozen=True, slots=True)
class ExprArgument:
    """A computed integer."""

    value: Expr
    """The value, with its outermost cast: that is where the range is checked."""

    dtype: DType
    """The type in which it travels."""


@dataclass(frozen=True, slots=True)
class FloatArgument:
    """A computed floating-point number. A call refuses a result that is not finite, or that its type cannot hold."""

    value: FloatExpr
    """The value, a double."""

    dtype: DType
    """The float type in which it travels, to which it is rounded once."""


@dataclass(frozen=True, slots=True)
class ViewArgument:
    """Memory with its layout, by value: its address, then `numbers`, each at the next place that its size allows."""

    memory: MemoryRef
    """Whose."""

    dtype: DType
    """The element type."""

    extents: tuple[Expr, ...]
    """Elements along each dimension, outermost first: constants, and casts to ``int32``."""

    strides: tuple[Expr, ...]
    """Elements between neighbours along each dimension: constants, and expressions that travel as ``int64``."""

    alignment: int
    """Bytes that the address is a multiple of."""

    @property
    def numbers(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """What travels behind the address: the extents that are no constants, then such strides."""
        extents = tuple(extent for extent in self.extents if not isinstance(extent, Const))
        return extents, tuple(stride for stride in self.strides if not isinstance(stride, Const))

    @property
    def unproven(self) -> dict[int, tuple[int, Expr]]:
        """The extents that may be beyond ``int32``: by place in `numbers`, the dimension and the extent uncast."""
        varying = [(axis, one) for axis, one in enumerate(self.extents) if not isinstance(one, Const)]
        return {
            place: (axis, one.operand)
            for place, (axis, one) in enumerate(varying)
            if isinstance(one, Cast) and one.may_be_out_of_range
        }

    @property
    def size(self) -> int:
        """Bytes, as C lays out the structure."""
        extents, strides = self.numbers
        return 8 + 8 * -(-len(extents) // 2) + 8 * len(strides)


@dataclass(frozen=True, slots=True)
class VariableArgument:
    """The address of a module variable."""

    variable: int
    """The variable's slot."""


@dataclass(frozen=True, slots=True)
class MapArgument:
    """A tensor map by value."""

    encode: int
    """The map's slot."""


@dataclass(frozen=True, slots=True)
class BuiltField:
    """What lies at one offset of a struct that the launcher builds."""

    offset: int
    """Bytes from the struct's first one."""

    size: int
    """Bytes that it takes."""

    path: str
    """Where it stands, for messages: ``".a.rows[2]"``."""

    argument: PlannedArgument
    """What is put there: no struct that is built."""


@dataclass(frozen=True, slots=True)
class BuiltArgument:
    """A struct that the launcher builds, by value: `fields` at their offsets, and zeros between them."""

    fields: tuple[BuiltField, ...]
    """By ascending offsets; those of structs and arrays within it, too."""

    nbytes: int
    """How many bytes it has."""

    @property
    def maps(self) -> tuple[int, ...]:
        """The slots of the tensor maps in it."""
        return tuple(one.argument.encode for one in self.fields if isinstance(one.argument, MapArgument))


PlannedArgument = (
    PointerArgument
    | MovedArgument
    | ViewArgument
    | ConstantArgument
    | ScalarArgument
    | AddressArgument
    | StructArgument
    | ExprArgument
    | FloatArgument
    | VariableArgument
    | MapArgument
    | BuiltArgument
)
"""What a launch passes."""


@dataclass(frozen=True, slots=True)
class KernelField:
    """A field of a struct that the launcher builds, as messages tell of it."""

    offset: int
    """Bytes from the struct's first one."""

    path: str
    """Where it stands: ``".a.rows[2]"``."""

    description: str
    """``"a pointer to float16 (8 bytes)"``."""


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

    fields: tuple[KernelField, ...] = ()
    """Of a struct that the launcher builds, by ascending offsets."""


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """One kernel, with what the program passes to it."""

    name: str
    """The kernel's name, as the program spells it."""

    parameters: tuple[KernelParameter, ...]
    """By ordinal."""

    part: int = 0
    """The part of the program's code that holds it."""


@dataclass(frozen=True, slots=True)
class PlannedAttribute:
    """One launch attribute (`trunnion.model.launch_attributes`)."""

    field: str
    """The field of `KernelLaunch`."""

    id: int
    """``CUlaunchAttributeID``."""

    values: tuple[int, ...] | tuple[Expr, ...]
    """The driver's numbers: one, or x, y and z; expressions if a call decides them, of a switch 0 or anything else."""

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """What a call computes; nothing of a constant."""
        return tuple(value for value in self.values if isinstance(value, Expr))

    @property
    def known(self) -> tuple[int | None, ...]:
        """The driver's numbers before any call: None in the place of each that a call decides."""
        return tuple(
            value if isinstance(value, int) else value.value if isinstance(value, Const) else None
            for value in self.values
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWindow:
    """The access-policy window of a launch (``CUaccessPolicyWindow``)."""

    memory: MemoryRef
    """The memory in which the range lies."""

    offset_bytes: Expr
    """Bytes between the memory's first element and the range's."""

    nbytes: Expr | None
    """The range's length; None: to the end of the memory, but at most what the device allows."""

    limit_bytes: Expr
    """Bytes that the memory spans, which the range must not reach beyond."""

    hit_ratio: float
    """The share of accesses that get `hit_property`."""

    hit_property: int
    """``CUaccessProperty`` of hits."""

    miss_property: int
    """``CUaccessProperty`` of the other accesses."""

    policy: str
    """``"launch"``: an attribute of the launch; ``"stream"``: set on the stream around it."""


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

    when: Expr | None
    """The launch is skipped where this is 0; None: it has no condition."""

    attributes: tuple[PlannedAttribute, ...]
    """The attributes, in the order of the table."""

    window: PlannedWindow | None
    """The access-policy window."""

    @property
    def passed(self) -> tuple[PlannedArgument, ...]:
        """What it passes, in order, with structs that the launcher builds taken apart."""
        return tuple(
            one
            for argument in self.args
            for one in (
                [built.argument for built in argument.fields]
                if isinstance(argument, BuiltArgument)
                else [argument]
            )
        )

    def attribute(self, field: str) -> tuple[int, ...]:
        """Return the driver's numbers of one attribute; none if the launch says nothing of it, or a call decides."""
        found = next((one for one in self.attributes if one.field == field), None)
        return () if found is None else tuple(value for value in found.values if isinstance(value, int))

    @property
    def computed(self) -> tuple[PlannedAttribute, ...]:
        """The attributes that a call decides."""
        return tuple(one for one in self.attributes if one.exprs)

    @property
    def computed_cluster(self) -> tuple[Expr, ...]:
        """Blocks of a cluster along x, y, z, if a call decides them."""
        return next((one.exprs for one in self.computed if one.field == "cluster"), ())

    @property
    def computed_pdl(self) -> tuple[Expr, ...]:
        """Whether the launch may start early, if a call decides it."""
        return next((one.exprs for one in self.computed if one.field == "pdl"), ())

    @property
    def never(self) -> bool:
        """Whether it happens in no call: its condition is 0, or an extent of its grid is."""
        return self.when == Const(0) or Const(0) in self.grid

    @property
    def conditional(self) -> bool:
        """Whether its condition is a call's to decide."""
        return self.when is not None and not isinstance(self.when, Const)

    @property
    def deferred(self) -> bool:
        """Whether a device is asked for what is constant of it by the first call in which it happens, if one does.

        A device is asked for that of any other launch when it is prepared.
        """
        return self.never or self.conditional

    @property
    def open_axes(self) -> tuple[int, ...]:
        """The axes along which a call may ask for no block: then the launch is skipped."""
        extents = enumerate(self.grid)
        return tuple(axis for axis, one in extents if not isinstance(one, Const) and one.bounds.low <= 0)

    @property
    def clusters(self) -> tuple[int, ...]:
        """Constants along x, y, z of which the grid must be multiples; the preferred cluster is one of the cluster."""
        return self.attribute("preferred_cluster") or self.attribute("cluster") or (1, 1, 1)

    @property
    def window_bounds(self) -> tuple[int, int]:
        """The least and the greatest length of its window, in bytes, before a device's limits; (0, 0): it has none."""
        window = self.window
        if window is None or self.never:
            return 0, 0
        if window.nbytes is not None:
            bounds = _chosen_bounds(window.nbytes)
            return max(bounds.low, 0), bounds.high
        memory, offset = _chosen_bounds(window.limit_bytes), window.offset_bytes.bounds
        return max(memory.low - offset.high, 0), max(memory.high - max(offset.low, 0), 0)


def _chosen_bounds(expr: Expr) -> Interval:
    """Return an expression's bounds, where a choice is made in every call those of what is chosen."""
    while isinstance(expr, Select) and expr.condition.bounds.low > 0:
        expr = expr.then  # memory spans 0 bytes if an extent is 0, which this one's extents never are
    return expr.bounds


@dataclass(frozen=True, kw_only=True)  # with no slots: what is asked of it again and again is kept
class LaunchPlan:
    """Everything that a call does: `steps`, in order, over slots and tables.

    A call that is refused has launched nothing.
    """

    name: str
    """The program's name, for messages."""

    signature: Signature
    """What a call takes and gives back, as the author wrote it."""

    tensors: tuple[TensorSlot, ...]
    """Inputs in order, then outputs in order."""

    scalars: tuple[ScalarSlot, ...]
    """In order."""

    pointers: tuple[PointerSlot, ...]
    """In order."""

    structs: tuple[StructSlot, ...]
    """In order."""

    workspaces: tuple[WorkspaceSlot, ...]
    """In the order of their first use."""

    bindings: tuple[Binding, ...]
    """In the order in which values become known."""

    checks: tuple[ValueCheck | ConditionCheck, ...]
    """In order; an author's own come last."""

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

    facts: tuple[PlannedFact, ...] = ()
    """What its expressions ask of the device, in the order of value slots: these follow those of `bindings`."""
    variables: tuple[VariableSlot, ...] = ()
    """The variables of the device code, in the program's order."""

    copies: tuple[CopyVariable, ...] = ()
    """What is copied to variables, in stream order."""

    @kept_property
    def steps(self) -> tuple[Step, ...]:
        """What a call does, in order."""
        from trunnion.model.plan.lowering import lower  # noqa: PLC0415 - the steps of a plan are written over plans

        return lower(self)

    def actions(self, phase: Phase) -> tuple[Action, ...]:
        """Return what the steps of one phase do."""
        return tuple(step.action for step in self.steps if step.phase is phase)

    @property
    def inputs(self) -> tuple[TensorSlot, ...]:
        """The tensors that the caller passes."""
        return tuple(tensor for tensor in self.tensors if not tensor.output)

    @property
    def outputs(self) -> tuple[TensorSlot, ...]:
        """The tensors that the launcher allocates, or that the caller gives under ``out=``."""
        return tuple(tensor for tensor in self.tensors if tensor.output)

    @property
    def has_windows(self) -> bool:
        """Whether some launch has an access-policy window."""
        return any(launch.window is not None for launch in self.launches)

    def memory(self, ref: MemoryRef) -> TensorSlot | WorkspaceSlot:
        """Return the tensor or the workspace that is meant."""
        return (self.tensors if ref.kind is MemoryKind.TENSOR else self.workspaces)[ref.slot]

    def may_be_absent(self, ref: MemoryRef) -> bool:
        """Whether memory is that of a tensor which the call may leave out."""
        return ref.kind is MemoryKind.TENSOR and self.tensors[ref.slot].nullable

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the value slots' symbols, then the texts of facts of the device, by slot."""
        return (*(binding.symbol for binding in self.bindings), *(fact.name for fact in self.facts))

    @property
    def symbol_map(self) -> dict[str, tuple[int, int, int]]:
        """Where each symbol gets its value: ``{name: (kind, position, axis)}``, in the order of `bindings`.

        The kind is 0 for an extent, 1 for a stride and 2 for a scalar's value, the position that of the argument in a
        call, and the axis the dimension, 0 for a scalar. Of several places where a symbol may be read it is the first.
        """
        return {binding.symbol: self._place(binding.source) for binding in self.bindings}

    def _place(self, source: Source) -> tuple[int, int, int]:
        slots = self.scalars if source.kind == "scalar" else self.tensors
        return _SOURCE_KINDS.index(source.kind), slots[source.slot].position, source.axis

    @kept_property
    def hash(self) -> str:
        """SHA-256 over everything that the plan says, as 64 hexadecimal digits; equal plans have equal hashes."""
        text = json.dumps([PLAN_VERSION, _plain(self)], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:  # noqa: PLR0911 - one line for each kind of value
    """Reduce a plan to lists, numbers and text in one way only."""
    kind = type(value)
    if value is None or kind in _ALREADY_PLAIN:
        return value
    if kind is tuple:
        return [_plain(member) for member in value]
    if kind is DType:
        return value.name
    if is_dataclass(kind):
        return [kind.__name__, *(_plain(getattr(value, name)) for name in _compared(kind))]
    if isinstance(value, Enum):
        return _plain(value.value)
    if kind is bytes:
        return value.hex()
    if kind is frozenset:
        return sorted(str(member) for member in value)
    raise TypeError(f"a plan holds no {kind.__name__}")


_ALREADY_PLAIN = frozenset({bool, int, float, str})


@functools.cache
def _compared(kind: type) -> tuple[str, ...]:
    """Return the names of a dataclass's fields that count in equality."""
    return tuple(field.name for field in fields(kind) if field.compare)
