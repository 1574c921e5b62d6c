"""The steps of a call: everything that a host does from its arguments to its result, each of them a frozen value.

`trunnion.model.plan.lowering` puts them in order; whoever launches reads them, and only spells them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from trunnion.messages import type_name
from trunnion.model.expr import Slot
from trunnion.model.expr_tree import walk
from trunnion.model.float_expr import integers_of
from trunnion.model.plan.launch_plan import (
    BuiltArgument,
    ExprArgument,
    FloatArgument,
    MovedArgument,
    ViewArgument,
)
from trunnion.model.plan.slots import MemoryKind, MemoryRef, TensorSlot

if TYPE_CHECKING:
    from trunnion.model.expr import Expr
    from trunnion.model.plan.facts import PlannedFact
    from trunnion.model.plan.launch_plan import LaunchPlan, PlannedArgument, PlannedLaunch, PlannedWindow
    from trunnion.model.plan.slots import (
        Binding,
        PointerSlot,
        ScalarSlot,
        Source,
        StructSlot,
        WorkspaceSlot,
    )
    from trunnion.model.tensormap.fields import Im2colFields, TiledFields

__all__ = [
    "Action",
    "AllowCluster",
    "AllowSmem",
    "Bind",
    "CheckDestinations",
    "ComputeArguments",
    "ComputeWindow",
    "ConditionCheck",
    "CopyVariable",
    "Encode",
    "EncodeMap",
    "Fill",
    "Launch",
    "LayOutMap",
    "LimitWindow",
    "Phase",
    "PrepareDevice",
    "PrepareLaunch",
    "ReadFacts",
    "ReadNumber",
    "ReadStream",
    "ReadTensors",
    "RefuseCapture",
    "Require",
    "RequireLayouts",
    "RequirePresence",
    "Return",
    "SetAside",
    "ShapeLaunch",
    "ShapeOutput",
    "SizeWorkspace",
    "Step",
    "TakeAddresses",
    "TakeOutputs",
    "TakeWorkspace",
    "ValueCheck",
    "slots_of",
    "steps_of",
    "unknown_step",
]


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


_Kind = TypeVar("_Kind")


class Phase(enum.StrEnum):
    """What a step is part of, in the order in which a call goes through them."""

    TENSORS = "tensors"
    """What the structure of the inputs decides alone: types, extents, strides, device. Equal ones, equal outcome."""

    VALUES = "values"
    """What the numbers of the call, the addresses of its memory and its stream decide, too."""

    ADMIT = "admit"
    """What the device decides, its facts and what follows from them included, and the state of the stream."""

    MEMORY = "memory"
    """Where outputs and workspaces lie."""

    PREPARE = "prepare"
    """Maps, and what the launches need more of than any before: a call that is refused here wrote nothing."""

    LAUNCH = "launch"
    """What is written and launched; a call that was bound does this, and what follows, each time."""

    RETURN = "return"
    """What the caller gets."""


class _Action:
    """What a step does."""

    __slots__ = ()

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The expressions that it computes."""
        return ()

    @property
    def readers(self) -> tuple[int, ...] | None:
        """The launches it is done for: if none of them happens, it is not done. None: it is done in every call."""
        return None


@dataclass(frozen=True, slots=True)
class _OfLaunch(_Action):
    """What is done for a launch that happens."""

    launch: PlannedLaunch
    """Which."""

    @property
    def readers(self) -> tuple[int, ...]:
        """The launch."""
        return (self.launch.index,)


@dataclass(frozen=True, slots=True)
class _OfWindow(_OfLaunch):
    """What is done for a launch that happens and has a window."""

    window: PlannedWindow
    """Its window."""


@dataclass(frozen=True, slots=True)
class _OfWorkspace(_Action):
    """What is done for a workspace that some launch reads."""

    workspace: WorkspaceSlot
    """Which."""

    @property
    def readers(self) -> tuple[int, ...]:
        """The launches that read it."""
        return self.workspace.readers


@dataclass(frozen=True, slots=True)
class _OfMap(_Action):
    """What is done for a tensor map that some launch reads."""

    encode: Encode
    """Which."""

    @property
    def readers(self) -> tuple[int, ...]:
        """The launches that read it."""
        return self.encode.readers


@dataclass(frozen=True, slots=True)
class ReadTensors(_Action):
    """Each input in order is a tensor of its element type and rank; then all of them lie on one device."""


@dataclass(frozen=True, slots=True)
class Bind(_Action):
    """A symbol gets its value, which is within its bounds."""

    binding: Binding
    """Which, and from where."""


@dataclass(frozen=True, slots=True)
class Require(_Action):
    """A number is what it must be, or an author's own condition holds."""

    check: ValueCheck | ConditionCheck
    """What must hold."""

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """What a number is compared with, or the condition."""
        check = self.check
        return (check.condition if isinstance(check, ConditionCheck) else check.expected,)


@dataclass(frozen=True, slots=True)
class RequireLayouts(_Action):
    """Each input that names no strides is contiguous; then each lies in its storage."""


@dataclass(frozen=True, slots=True)
class ReadNumber(_Action):
    """A scalar, an address or a struct is of its type and in its range."""

    slot: ScalarSlot | PointerSlot | StructSlot
    """Which."""


@dataclass(frozen=True, slots=True)
class TakeAddresses(_Action):
    """Each input in order has elements at an address of its alignment."""


@dataclass(frozen=True, slots=True)
class ShapeOutput(_Action):
    """An output has its extents, none of them negative."""

    tensor: TensorSlot
    """Which."""

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The extents."""
        return self.tensor.shape


@dataclass(frozen=True, slots=True)
class ShapeLaunch(_Action):
    """A launch has its condition, its grid, and if that is not empty what else a call decides, within limits.

    That is the cluster, of which the grid is a multiple, then block, shared memory, and whether it starts early.
    """

    launch: PlannedLaunch
    """Which."""

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """Condition, grid, block, dynamic shared memory, and the attributes that a call decides."""
        launch = self.launch
        when = () if launch.when is None else (launch.when,)
        attributes = (expr for one in launch.computed for expr in one.exprs)
        return (*when, *launch.grid, *launch.block, launch.dynamic_smem_bytes, *attributes)


@dataclass(frozen=True, slots=True)
class SizeWorkspace(_OfWorkspace):
    """A workspace that some launch reads has its extents, and its bytes."""

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The extents."""
        return self.workspace.extents


@dataclass(frozen=True, slots=True)
class ComputeArguments(_OfLaunch):
    """A launch that happens has the numbers of some arguments: expressions, views and moved addresses.

    An address is moved within its memory alone; a floating-point number is finite, and one that its type holds.
    """

    ordinals: tuple[int, ...]
    """Which arguments of it."""

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The numbers."""
        return tuple(expr for ordinal in self.ordinals for expr in _numbers(self.launch.args[ordinal]))


@dataclass(frozen=True, slots=True)
class ComputeWindow(_OfWindow):
    """A launch that happens has a window that lies within its memory."""

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """Offset, limit and length."""
        window = self.window
        return (window.offset_bytes, window.limit_bytes, *([] if window.nbytes is None else [window.nbytes]))


@dataclass(frozen=True, slots=True)
class LayOutMap(_OfMap):
    """A tensor map that some launch reads has its extents and strides, and lies within its memory."""

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """Extents, strides, offset and limit."""
        encode = self.encode
        limit = () if encode.limit_bytes is None else (encode.limit_bytes,)
        return (*encode.dims, *encode.strides, encode.innermost_stride, encode.offset_bytes, *limit)


@dataclass(frozen=True, slots=True)
class RequirePresence(_Action):
    """Memory that a map or a window lies over is there, where some launch reads that."""

    memory: MemoryRef
    """A tensor that the call may leave out."""

    needed_by: tuple[int, ...]
    """The launches."""

    what: str
    """``"a tensor map"`` or ``"a window"``."""

    @property
    def readers(self) -> tuple[int, ...]:
        """The launches."""
        return self.needed_by


@dataclass(frozen=True, slots=True)
class CheckDestinations(_Action):
    """The tensors given under ``out=`` are what the outputs are; if there are any."""


@dataclass(frozen=True, slots=True)
class ReadStream(_Action):
    """The stream that the call names is one of its device's; if it names none, it is the current one."""


@dataclass(frozen=True, slots=True)
class PrepareDevice(_Action):
    """What is done once for a device is done: its image is loaded, its limits are known."""


@dataclass(frozen=True, slots=True)
class PrepareLaunch(_OfLaunch):
    """The device has what is constant of a launch that happens: its attributes, its dynamic shared memory.

    It is asked once, when such a launch happens there for the first time. That of launches without a condition belongs
    to `PrepareDevice`.
    """


@dataclass(frozen=True, slots=True)
class ReadFacts(_Action):
    """The facts of the device have their slots, as they were when it was prepared."""

    facts: tuple[PlannedFact, ...]
    """Which, in the order of their slots."""


@dataclass(frozen=True, slots=True)
class RefuseCapture(_Action):
    """The stream is not being captured: a window that it holds is taken from it once the kernel is done."""


@dataclass(frozen=True, slots=True)
class LimitWindow(_OfWindow):
    """A window is no longer than the device allows."""


@dataclass(frozen=True, slots=True)
class TakeOutputs(_Action):
    """Each output is the destination that the call gives, or else allocated under its stream."""


@dataclass(frozen=True, slots=True)
class TakeWorkspace(_OfWorkspace):
    """A workspace that some launch reads is allocated under the call's stream."""


@dataclass(frozen=True, slots=True)
class EncodeMap(_OfMap):
    """A tensor map that some launch reads is encoded over the address of its memory."""


@dataclass(frozen=True, slots=True)
class AllowSmem(_OfLaunch):
    """The kernel of a launch that happens may have the dynamic shared memory of which the call decides."""


@dataclass(frozen=True, slots=True)
class AllowCluster(_OfLaunch):
    """The device has clusters, if the call decides on one of several blocks; its kernel may have that many."""


@dataclass(frozen=True, slots=True)
class SetAside(_OfWindow):
    """Cache is set aside for the window of a launch that happens."""


@dataclass(frozen=True, slots=True)
class Fill(_Action):
    """Memory is filled, if there are elements."""

    slot: TensorSlot | WorkspaceSlot
    """An output, or a workspace."""

    pattern: bytes
    """The bytes of one element."""

    @property
    def readers(self) -> tuple[int, ...] | None:
        """The launches that read a workspace."""
        return None if isinstance(self.slot, TensorSlot) else self.slot.readers

    @property
    def memory(self) -> MemoryRef:
        """The output, or the workspace."""
        kind = MemoryKind.TENSOR if isinstance(self.slot, TensorSlot) else MemoryKind.WORKSPACE
        return MemoryRef(kind, self.slot.index)


@dataclass(frozen=True, slots=True)
class CopyVariable(_Action):
    """A tensor's elements are copied to a module variable, whatever launches happen."""

    variable: int
    """The variable's slot."""

    memory: MemoryRef
    """The tensor, contiguous."""

    nbytes: int
    """How many bytes."""

    before: int
    """The place of the launch before which it is done."""


@dataclass(frozen=True, slots=True)
class Launch(_OfLaunch):
    """A launch whose condition holds and whose grid is not empty is launched, within its window if it has one."""


@dataclass(frozen=True, slots=True)
class Return(_Action):
    """The caller gets the results: none, one, or several."""

    tensors: tuple[int, ...]
    """The tensors' slots."""


Action = (
    ReadTensors
    | Bind
    | Require
    | RequireLayouts
    | ReadNumber
    | TakeAddresses
    | ShapeOutput
    | ShapeLaunch
    | SizeWorkspace
    | ComputeArguments
    | ComputeWindow
    | LayOutMap
    | RequirePresence
    | CheckDestinations
    | ReadStream
    | PrepareDevice
    | PrepareLaunch
    | ReadFacts
    | RefuseCapture
    | LimitWindow
    | TakeOutputs
    | TakeWorkspace
    | EncodeMap
    | AllowSmem
    | AllowCluster
    | SetAside
    | Fill
    | CopyVariable
    | Launch
    | Return
)
"""What a step does."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step."""

    phase: Phase
    """What it is part of."""

    action: Action
    """What it does."""


def slots_of(action: Action) -> set[int]:
    """Return the value slots that the expressions of an action are over."""
    return {node.index for expr in action.exprs for node in walk(expr) if isinstance(node, Slot)}


def steps_of(plan: LaunchPlan, kind: type[_Kind]) -> list[_Kind]:
    """Return a plan's steps of one kind, in their order."""
    return [step.action for step in plan.steps if isinstance(step.action, kind)]


def unknown_step(action: Action) -> TypeError:
    """Return what a reader raises of a step that it does not know: none is passed over."""
    return TypeError(f"a plan has a step {type_name(action)}")


def _numbers(argument: PlannedArgument) -> tuple[Expr, ...]:
    match argument:
        case ExprArgument(value):
            return (value,)
        case FloatArgument(value):
            return tuple(integers_of(value))
        case MovedArgument():
            return argument.numbers
        case ViewArgument():
            extents, strides = argument.numbers
            return extents + strides
        case BuiltArgument(fields):
            return tuple(expr for one in fields for expr in _numbers(one.argument))
    return ()
