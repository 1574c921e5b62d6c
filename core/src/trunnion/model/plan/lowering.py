"""The steps of a call in their order: what it reads, requires and computes before anything is touched.

Of a call in which several rules are broken, the refusal that comes first here is the one that its caller is told,
whoever launches. A launcher may test in any order while all holds.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from itertools import filterfalse
from typing import TYPE_CHECKING

from trunnion.model.expr import Slot
from trunnion.model.expr_tree import walk
from trunnion.model.plan import ExprArgument, ViewArgument
from trunnion.model.plan.steps import ConditionCheck, ValueCheck

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunnion.model.expr import Expr
    from trunnion.model.plan import LaunchPlan, PlannedArgument, PlannedLaunch, PlannedWindow
    from trunnion.model.plan.slots import (
        Binding,
        MemoryRef,
        PointerSlot,
        ScalarSlot,
        StructSlot,
        TensorSlot,
        WorkspaceSlot,
    )
    from trunnion.model.plan.steps import Encode

__all__ = [
    "Action",
    "Bind",
    "CheckDestinations",
    "ComputeArguments",
    "ComputeWindow",
    "LayOutMap",
    "Phase",
    "ReadNumber",
    "ReadTensors",
    "Require",
    "RequireLayouts",
    "RequirePresence",
    "ShapeLaunch",
    "ShapeOutput",
    "SizeWorkspace",
    "Step",
    "TakeAddresses",
    "lower",
    "slots_of",
]


class Phase(enum.StrEnum):
    """What decides a step, and with it how long its outcome may be kept."""

    TENSORS = "tensors"
    """The structure of the inputs alone: types, extents, strides, device. Equal ones, equal outcome."""

    VALUES = "values"
    """The numbers of the call and the addresses of its memory, too."""


class _Action:
    """What a step does."""

    __slots__ = ()

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The expressions that it computes."""
        return ()


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
    """A launch has its condition, then its grid, block and dynamic shared memory, each within the driver's limits."""

    launch: PlannedLaunch
    """Which."""

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """Condition, grid, block and dynamic shared memory."""
        launch = self.launch
        when = () if launch.when is None else (launch.when,)
        return (*when, *launch.grid, *launch.block, launch.dynamic_smem_bytes)


@dataclass(frozen=True, slots=True)
class SizeWorkspace(_Action):
    """A workspace that some launch reads has its extents, and its bytes."""

    workspace: WorkspaceSlot
    """Which."""

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The extents."""
        return self.workspace.extents


@dataclass(frozen=True, slots=True)
class ComputeArguments(_Action):
    """A launch that happens has the numbers of some arguments, which are expressions and views."""

    launch: PlannedLaunch
    """Which."""

    ordinals: tuple[int, ...]
    """Which arguments of it."""

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The numbers."""
        return tuple(expr for ordinal in self.ordinals for expr in _numbers(self.launch.args[ordinal]))


@dataclass(frozen=True, slots=True)
class ComputeWindow(_Action):
    """A launch that happens has a window that lies within its memory."""

    launch: PlannedLaunch
    """Which."""

    window: PlannedWindow
    """Its window."""

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """Offset, limit and length."""
        window = self.window
        return (window.offset_bytes, window.limit_bytes, *([] if window.nbytes is None else [window.nbytes]))


@dataclass(frozen=True, slots=True)
class LayOutMap(_Action):
    """A tensor map that some launch reads has its extents and strides, and lies within its memory."""

    encode: Encode
    """Which."""

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

    readers: tuple[int, ...]
    """The launches."""

    what: str
    """``"a tensor map"`` or ``"a window"``."""


@dataclass(frozen=True, slots=True)
class CheckDestinations(_Action):
    """The tensors given under ``out=`` are what the outputs are; if there are any."""


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
)
"""What a step does."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step."""

    phase: Phase
    """What decides it."""

    action: Action
    """What it does."""


def lower(plan: LaunchPlan) -> tuple[Step, ...]:
    """Return the steps of a call of ``plan`` up to where its life, its stream and its device are looked at.

    First all that the tensors decide, then the rest: a launcher that sees tensors like those of the call before has
    nothing to do again of the former.
    """
    lowering = _Lowering(plan)
    tensors = tuple(Step(Phase.TENSORS, action) for action in lowering.of_tensors())
    return tensors + tuple(Step(Phase.VALUES, action) for action in lowering.of_values())


class _Lowering:
    """What of one plan the tensors alone decide."""

    def __init__(self, plan: LaunchPlan) -> None:
        self.plan = plan
        self.slots = frozenset(
            binding.slot
            for binding in plan.bindings
            if all(source.kind != "scalar" for source in (binding.source, *binding.candidates))
        )
        self.shaped = {launch.index for launch in plan.launches if self._decided(ShapeLaunch(launch))}

    def of_tensors(self) -> Iterator[Action]:
        """Yield what the tensors decide."""
        plan = self.plan
        yield ReadTensors()
        yield from (Bind(binding) for binding in plan.bindings if binding.slot in self.slots)
        yield from filter(self._judges, map(Require, plan.checks))
        yield RequireLayouts()
        yield from self._derived(by_tensors=True)

    def of_values(self) -> Iterator[Action]:
        """Yield what is left."""
        plan = self.plan
        for numbers in (plan.scalars, plan.pointers, plan.structs):
            yield from map(ReadNumber, numbers)
        yield from (Bind(binding) for binding in plan.bindings if binding.slot not in self.slots)
        yield from filterfalse(self._judges, map(Require, plan.checks))
        yield TakeAddresses()
        yield from self._derived(by_tensors=False)
        yield from self._presences()
        yield CheckDestinations()

    def _derived(self, *, by_tensors: bool) -> Iterator[Action]:
        """Yield what follows from symbols: shapes of outputs and launches, sizes, arguments, windows, maps."""
        plan = self.plan
        for output in map(ShapeOutput, plan.outputs):
            if self._decided(output) is by_tensors:
                yield output
        for launch in map(ShapeLaunch, plan.launches):
            if self._decided(launch) is by_tensors:
                yield launch
        for workspace in plan.workspaces:
            size = SizeWorkspace(workspace)
            if self._follows(workspace.readers, size) is by_tensors:
                yield size
        for one in plan.launches:
            yield from self._of_launch(one, by_tensors=by_tensors)
        for encode in plan.encodes:
            layout = LayOutMap(encode)
            if self._follows(encode.readers, layout) is by_tensors:
                yield layout

    def _of_launch(self, launch: PlannedLaunch, *, by_tensors: bool) -> Iterator[Action]:
        readers = (launch.index,)
        ordinals = tuple(
            ordinal
            for ordinal, argument in enumerate(launch.args)
            if isinstance(argument, (ExprArgument, ViewArgument))
            and self._follows(readers, ComputeArguments(launch, (ordinal,))) is by_tensors
        )
        if ordinals:
            yield ComputeArguments(launch, ordinals)
        if launch.window is not None:
            window = ComputeWindow(launch, launch.window)
            if self._follows(readers, window) is by_tensors:
                yield window

    def _presences(self) -> Iterator[Action]:
        plan = self.plan
        for encode in plan.encodes:
            if plan.may_be_absent(encode.memory):
                yield RequirePresence(encode.memory, encode.readers, "a tensor map")
        for launch in plan.launches:
            if launch.window is not None and plan.may_be_absent(launch.window.memory):
                yield RequirePresence(launch.window.memory, (launch.index,), "a window")

    def _judges(self, require: Require) -> bool:
        check = require.check
        given = isinstance(check, ValueCheck) and check.source.kind == "scalar"
        return not given and self._decided(require)

    def _follows(self, readers: Iterable[int], action: Action) -> bool:
        """Whether the tensors decide what an action computes, and whether the launches that read it happen."""
        return self.shaped.issuperset(readers) and self._decided(action)

    def _decided(self, action: Action) -> bool:
        return self.slots.issuperset(slots_of(action))


def slots_of(action: Action) -> set[int]:
    """Return the value slots that the expressions of an action are over."""
    return {node.index for expr in action.exprs for node in walk(expr) if isinstance(node, Slot)}


def _numbers(argument: PlannedArgument) -> tuple[Expr, ...]:
    match argument:
        case ExprArgument(value):
            return (value,)
        case ViewArgument():
            extents, strides = argument.numbers
            return extents + strides
    return ()
