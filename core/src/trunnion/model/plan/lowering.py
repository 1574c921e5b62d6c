"""The order of a call's steps, from its arguments to its result.

Of a call in which several rules are broken, the refusal that comes first here is the one that its caller is told,
whoever launches. A launcher may test in any order while all holds.
"""

from __future__ import annotations

from itertools import filterfalse
from typing import TYPE_CHECKING

from trunnion.model.expr import Const
from trunnion.model.plan.launch_plan import BuiltArgument, ExprArgument, MovedArgument, ViewArgument
from trunnion.model.plan.steps import (
    AllowSmem,
    Bind,
    CheckDestinations,
    ComputeArguments,
    ComputeWindow,
    EncodeMap,
    Fill,
    Launch,
    LayOutMap,
    LimitWindow,
    Phase,
    PrepareDevice,
    ReadNumber,
    ReadStream,
    ReadTensors,
    RefuseCapture,
    Require,
    RequireLayouts,
    RequirePresence,
    Return,
    SetAside,
    ShapeLaunch,
    ShapeOutput,
    SizeWorkspace,
    Step,
    TakeAddresses,
    TakeOutputs,
    TakeWorkspace,
    ValueCheck,
    slots_of,
)
from trunnion.model.window import AccessProperty, WindowPolicy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunnion.model.plan.launch_plan import LaunchPlan, PlannedArgument, PlannedLaunch
    from trunnion.model.plan.steps import Action

__all__ = ["lower"]


def lower(plan: LaunchPlan) -> tuple[Step, ...]:
    """Return the steps of a call of ``plan``, without those that no call comes to.

    First all that the tensors decide, then the rest: a launcher that sees tensors like those of the call before has
    nothing to do again of the former.
    """
    lowering = _Lowering(plan)
    phases: dict[Phase, Iterable[Action]] = {
        Phase.TENSORS: lowering.of_tensors(),
        Phase.VALUES: lowering.of_values(),
        Phase.ADMIT: lowering.of_admission(),
        Phase.MEMORY: (TakeOutputs(), *map(TakeWorkspace, plan.workspaces)),
        Phase.PREPARE: lowering.of_preparation(),
        Phase.LAUNCH: lowering.of_launches(),
        Phase.RETURN: (Return(plan.results),),
    }
    steps = (Step(phase, action) for phase, actions in phases.items() for action in actions)
    return tuple(step for step in steps if lowering.comes(step.action))


class _Lowering:
    """What of one plan is done in which phase."""

    def __init__(self, plan: LaunchPlan) -> None:
        self.plan = plan
        self.windows = [(launch, launch.window) for launch in plan.launches if launch.window is not None]
        held = any(window.policy == WindowPolicy.STREAM for _, window in self.windows)
        self.captures = [RefuseCapture()] if held else []
        self.slots = frozenset(
            binding.slot
            for binding in plan.bindings
            if all(source.kind != "scalar" for source in (binding.source, *binding.candidates))
        )
        self.shaped = {launch.index for launch in plan.launches if self._decided(ShapeLaunch(launch))}

    def comes(self, action: Action) -> bool:
        """Whether any call comes to a step."""
        return action.readers is None or not all(self.plan.launches[one].never for one in action.readers)

    def of_tensors(self) -> Iterator[Action]:
        """Yield what the tensors decide."""
        plan = self.plan
        yield ReadTensors()
        yield from (Bind(binding) for binding in plan.bindings if binding.slot in self.slots)
        yield from filter(self._judges, map(Require, plan.checks))
        yield RequireLayouts()
        yield from self._derived(by_tensors=True)

    def of_values(self) -> Iterator[Action]:
        """Yield what else the arguments decide."""
        plan = self.plan
        for numbers in (plan.scalars, plan.pointers, plan.structs):
            yield from map(ReadNumber, numbers)
        yield from (Bind(binding) for binding in plan.bindings if binding.slot not in self.slots)
        yield from filterfalse(self._judges, map(Require, plan.checks))
        yield TakeAddresses()
        yield from self._derived(by_tensors=False)
        yield from self._presences()
        yield CheckDestinations()
        yield ReadStream()

    def of_admission(self) -> Iterator[Action]:
        """Yield what a device and a stream may refuse."""
        yield PrepareDevice()
        yield from self.captures
        yield from (LimitWindow(launch, window) for launch, window in self.windows)

    def of_preparation(self) -> Iterator[Action]:
        """Yield what is done before anything is written: a map that breaks a rule leaves memory as it was."""
        yield from map(EncodeMap, self.plan.encodes)
        for launch in self.plan.launches:
            if not isinstance(launch.dynamic_smem_bytes, Const):
                yield AllowSmem(launch)
        for launch, window in self.windows:
            if window.policy == WindowPolicy.LAUNCH and window.hit_property == AccessProperty.PERSISTING.code:
                yield SetAside(launch, window)

    def of_launches(self) -> Iterator[Action]:
        """Yield what is written and launched; a stream may be captured since the call was bound."""
        plan = self.plan
        yield from self.captures
        for output in plan.outputs:
            if output.fill is not None:
                yield Fill(output, output.fill)
        for workspace in plan.workspaces:
            if workspace.zeroed:
                yield Fill(workspace, bytes(1))
        yield from map(Launch, plan.launches)

    def _derived(self, *, by_tensors: bool) -> Iterator[Action]:
        """Yield what follows from symbols: shapes of outputs and launches, sizes, arguments, windows, maps."""
        plan = self.plan
        candidates: list[Action] = [
            *map(ShapeOutput, plan.outputs),
            *map(ShapeLaunch, plan.launches),
            *map(SizeWorkspace, plan.workspaces),
        ]
        for launch in plan.launches:
            ordinals = self._ordinals(launch, by_tensors=by_tensors)
            candidates += [ComputeArguments(launch, ordinals)] if ordinals else []
            candidates += [] if launch.window is None else [ComputeWindow(launch, launch.window)]
        candidates += map(LayOutMap, plan.encodes)
        yield from (action for action in candidates if self._follows(action) is by_tensors)

    def _ordinals(self, launch: PlannedLaunch, *, by_tensors: bool) -> tuple[int, ...]:
        """Return the computed arguments of a launch which the tensors decide, or the others."""
        return tuple(
            ordinal
            for ordinal, argument in enumerate(launch.args)
            if _is_computed(argument) and self._follows(ComputeArguments(launch, (ordinal,))) is by_tensors
        )

    def _presences(self) -> Iterator[Action]:
        plan = self.plan
        for encode in plan.encodes:
            if plan.may_be_absent(encode.memory):
                yield RequirePresence(encode.memory, encode.readers, "a tensor map")
        for launch, window in self.windows:
            if plan.may_be_absent(window.memory):
                yield RequirePresence(window.memory, (launch.index,), "a window")

    def _judges(self, require: Require) -> bool:
        check = require.check
        given = isinstance(check, ValueCheck) and check.source.kind == "scalar"
        return not given and self._decided(require)

    def _follows(self, action: Action) -> bool:
        """Whether the tensors decide what an action computes, and whether the launches that read it happen."""
        return self.shaped.issuperset(action.readers or ()) and self._decided(action)

    def _decided(self, action: Action) -> bool:
        return self.slots.issuperset(slots_of(action))


def _is_computed(argument: PlannedArgument) -> bool:
    """Whether an argument is a number that is computed, or has such numbers in it."""
    if isinstance(argument, BuiltArgument):
        return any(_is_computed(one.argument) for one in argument.fields)
    return isinstance(argument, (ExprArgument, MovedArgument, ViewArgument))
