"""The steps of a call in their order: what it reads, requires and computes before anything is touched.

Of a call in which several rules are broken, the refusal that comes first here is the one that its caller is told,
whoever launches. A launcher may test in any order while all holds.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.model.expr import Slot
from trunnion.model.expr_tree import walk
from trunnion.model.plan import ExprArgument, ViewArgument
from trunnion.model.slots import MemoryKind
from trunnion.model.steps import ConditionCheck, ValueCheck

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunnion.model.expr import Expr
    from trunnion.model.plan import LaunchPlan, PlannedLaunch
    from trunnion.model.slots import (
        Binding,
        MemoryRef,
        PointerSlot,
        ScalarSlot,
        StructSlot,
        TensorSlot,
        WorkspaceSlot,
    )
    from trunnion.model.steps import Encode

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
]


class Phase(enum.StrEnum):
    """What decides a step, and with it how long its outcome may be kept."""

    TENSORS = "tensors"
    """The structure of the inputs alone: types, extents, strides, device. Equal ones, equal outcome."""

    VALUES = "values"
    """The numbers of the call and the addresses of its memory, too."""


@dataclass(frozen=True, slots=True)
class ReadTensors:
    """Each input in order is a tensor of its element type and rank; then all of them lie on one device."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A symbol gets its value, which is within its bounds."""

    binding: Binding
    """Which, and from where."""


@dataclass(frozen=True, slots=True)
class Require:
    """A number is what it must be, or an author's own condition holds."""

    check: ValueCheck | ConditionCheck
    """What must hold."""


@dataclass(frozen=True, slots=True)
class RequireLayouts:
    """Each input that names no strides is contiguous; then each lies in its storage."""


@dataclass(frozen=True, slots=True)
class ReadNumber:
    """A scalar, an address or a struct is of its type and in its range."""

    slot: ScalarSlot | PointerSlot | StructSlot
    """Which."""


@dataclass(frozen=True, slots=True)
class TakeAddresses:
    """Each input in order has elements at an address of its alignment."""


@dataclass(frozen=True, slots=True)
class ShapeOutput:
    """An output has its extents, none of them negative."""

    tensor: TensorSlot
    """Which."""


@dataclass(frozen=True, slots=True)
class ShapeLaunch:
    """A launch has its condition, then its grid, block and dynamic shared memory, each within the driver's limits."""

    launch: PlannedLaunch
    """Which."""


@dataclass(frozen=True, slots=True)
class SizeWorkspace:
    """A workspace that some launch reads has its extents, and its bytes."""

    workspace: WorkspaceSlot
    """Which."""


@dataclass(frozen=True, slots=True)
class ComputeArguments:
    """A launch that happens has the numbers of some arguments, which are expressions and views."""

    launch: PlannedLaunch
    """Which."""

    ordinals: tuple[int, ...]
    """Which arguments of it."""


@dataclass(frozen=True, slots=True)
class ComputeWindow:
    """A launch that happens has a window that lies within its memory."""

    launch: PlannedLaunch
    """Which."""


@dataclass(frozen=True, slots=True)
class LayOutMap:
    """A tensor map that some launch reads has its extents and strides, and lies within its memory."""

    encode: Encode
    """Which."""


@dataclass(frozen=True, slots=True)
class RequirePresence:
    """Memory that a map or a window lies over is there, where some launch reads that."""

    memory: MemoryRef
    """A tensor that the call may leave out."""

    readers: tuple[int, ...]
    """The launches."""

    what: str
    """``"a tensor map"`` or ``"a window"``."""


@dataclass(frozen=True, slots=True)
class CheckDestinations:
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
        shapes = {launch.index: _geometry(launch) for launch in plan.launches}
        self.shaped = {index for index, exprs in shapes.items() if self._decided(exprs)}

    def of_tensors(self) -> Iterator[Action]:
        """Yield what the tensors decide."""
        plan = self.plan
        yield ReadTensors()
        yield from (Bind(binding) for binding in plan.bindings if binding.slot in self.slots)
        yield from (Require(check) for check in plan.checks if self._judges(check))
        yield RequireLayouts()
        yield from self._derived(by_tensors=True)

    def of_values(self) -> Iterator[Action]:
        """Yield what is left."""
        plan = self.plan
        for numbers in (plan.scalars, plan.pointers, plan.structs):
            yield from map(ReadNumber, numbers)
        yield from (Bind(binding) for binding in plan.bindings if binding.slot not in self.slots)
        yield from (Require(check) for check in plan.checks if not self._judges(check))
        yield TakeAddresses()
        yield from self._derived(by_tensors=False)
        yield from self._presences()
        yield CheckDestinations()

    def _derived(self, *, by_tensors: bool) -> Iterator[Action]:
        """Yield what follows from symbols: shapes of outputs and launches, sizes, arguments, windows, maps."""
        plan, shaped = self.plan, self.shaped
        for tensor in plan.tensors:
            if tensor.output and self._decided(tensor.shape) is by_tensors:
                yield ShapeOutput(tensor)
        for launch in plan.launches:
            if (launch.index in shaped) is by_tensors:
                yield ShapeLaunch(launch)
        for workspace in plan.workspaces:
            if self._follows(workspace.readers, workspace.extents) is by_tensors:
                yield SizeWorkspace(workspace)
        for launch in plan.launches:
            yield from self._of_launch(launch, by_tensors=by_tensors)
        for encode in plan.encodes:
            if self._follows(encode.readers, _of_map(encode)) is by_tensors:
                yield LayOutMap(encode)

    def _of_launch(self, launch: PlannedLaunch, *, by_tensors: bool) -> Iterator[Action]:
        ordinals = tuple(
            ordinal
            for ordinal, argument in enumerate(launch.args)
            if isinstance(argument, (ExprArgument, ViewArgument))
            and self._follows((launch.index,), _of_argument(argument)) is by_tensors
        )
        if ordinals:
            yield ComputeArguments(launch, ordinals)
        if launch.window is not None:
            window = launch.window
            exprs = [
                window.offset_bytes,
                window.limit_bytes,
                *([] if window.nbytes is None else [window.nbytes]),
            ]
            if self._follows((launch.index,), exprs) is by_tensors:
                yield ComputeWindow(launch)

    def _presences(self) -> Iterator[Action]:
        plan = self.plan
        for encode in plan.encodes:
            if self._may_be_absent(encode.memory):
                yield RequirePresence(encode.memory, encode.readers, "a tensor map")
        for launch in plan.launches:
            if launch.window is not None and self._may_be_absent(launch.window.memory):
                yield RequirePresence(launch.window.memory, (launch.index,), "a window")

    def _may_be_absent(self, memory: MemoryRef) -> bool:
        return memory.kind is MemoryKind.TENSOR and self.plan.tensors[memory.slot].nullable

    def _judges(self, check: ValueCheck | ConditionCheck) -> bool:
        if isinstance(check, ConditionCheck):
            return self._decided((check.condition,))
        return check.source.kind != "scalar" and self._decided((check.expected,))

    def _follows(self, readers: Iterable[int], exprs: Iterable[Expr]) -> bool:
        """Whether the tensors decide expressions, and whether the launches that read them happen."""
        return self.shaped.issuperset(readers) and self._decided(exprs)

    def _decided(self, exprs: Iterable[Expr]) -> bool:
        return all(
            node.index in self.slots for expr in exprs for node in walk(expr) if isinstance(node, Slot)
        )


def _geometry(launch: PlannedLaunch) -> list[Expr]:
    """Return every expression that decides whether and in what shape a launch happens."""
    exprs = [*launch.grid, *launch.block, launch.dynamic_smem_bytes]
    return exprs if launch.when is None else [launch.when, *exprs]


def _of_argument(argument: ExprArgument | ViewArgument) -> tuple[Expr, ...]:
    if isinstance(argument, ExprArgument):
        return (argument.value,)
    extents, strides = argument.numbers
    return extents + strides


def _of_map(encode: Encode) -> list[Expr]:
    exprs = [*encode.dims, *encode.strides, encode.innermost_stride, encode.offset_bytes]
    return exprs if encode.limit_bytes is None else [*exprs, encode.limit_bytes]
