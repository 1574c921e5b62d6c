"""The order of a call's steps, from its arguments to its result.

Of a call in which several rules are broken, the refusal that comes first here is the one that its caller is told,
whoever launches. A launcher may test in any order while all holds.

What is over facts of the device comes once that is prepared, in the order that it has among the values of a call: the
author's conditions, launches, workspaces, arguments, windows, maps, and what has to be there for these. So whatever the
arguments alone decide is refused before, and what a stream's capture or the length of a window decides behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.model.expr import Const
from trunnion.model.plan.launch_plan import (
    BuiltArgument,
    ExprArgument,
    FloatArgument,
    MovedArgument,
    ViewArgument,
)
from trunnion.model.plan.steps import (
    AllowCluster,
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
    PrepareLaunch,
    ReadFacts,
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
        self.facts = frozenset(range(len(plan.bindings), len(plan.bindings) + len(plan.facts)))
        self.shaped = {launch.index: self._decided(ShapeLaunch(launch)) for launch in plan.launches}

    def comes(self, action: Action) -> bool:
        """Whether any call comes to a step."""
        return action.readers is None or not all(self.plan.launches[one].never for one in action.readers)

    def of_tensors(self) -> Iterator[Action]:
        """Yield what the tensors decide."""
        plan = self.plan
        yield ReadTensors()
        yield from (Bind(binding) for binding in plan.bindings if binding.slot in self.slots)
        yield from self._requirements(Phase.TENSORS)
        yield RequireLayouts()
        yield from self._derived(Phase.TENSORS)

    def of_values(self) -> Iterator[Action]:
        """Yield what else the arguments decide."""
        plan = self.plan
        for numbers in (plan.scalars, plan.pointers, plan.structs):
            yield from map(ReadNumber, numbers)
        yield from (Bind(binding) for binding in plan.bindings if binding.slot not in self.slots)
        yield from self._requirements(Phase.VALUES)
        yield TakeAddresses()
        yield from self._derived(Phase.VALUES)
        yield from self._presences(Phase.VALUES)
        yield CheckDestinations()
        yield ReadStream()

    def of_admission(self) -> Iterator[Action]:
        """Yield what a device and a stream may refuse."""
        yield PrepareDevice()
        if self.facts:
            yield ReadFacts(self.plan.facts)
            yield from self._requirements(Phase.ADMIT)
            yield from self._derived(Phase.ADMIT)
            yield from self._presences(Phase.ADMIT)
        yield from (PrepareLaunch(launch) for launch in self.plan.launches if _asks_itself(launch))
        yield from self.captures
        yield from (LimitWindow(launch, window) for launch, window in self.windows)
        yield from (AllowCluster(launch) for launch in self.plan.launches if launch.computed_cluster)

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
        for launch in plan.launches:
            yield from (copy for copy in plan.copies if copy.before == launch.index)
            yield Launch(launch)

    def _derived(self, phase: Phase) -> Iterator[Action]:
        """Yield what is known in a phase: shapes of outputs and launches, sizes, arguments, windows, maps."""
        plan = self.plan
        candidates: list[Action] = [
            *map(ShapeOutput, plan.outputs),
            *map(ShapeLaunch, plan.launches),
            *map(SizeWorkspace, plan.workspaces),
        ]
        for launch in plan.launches:
            ordinals = self._ordinals(launch, phase)
            candidates += [ComputeArguments(launch, ordinals)] if ordinals else []
            candidates += [] if launch.window is None else [ComputeWindow(launch, launch.window)]
        candidates += map(LayOutMap, plan.encodes)
        yield from (action for action in candidates if self._known(action) is phase)

    def _ordinals(self, launch: PlannedLaunch, phase: Phase) -> tuple[int, ...]:
        """Return the computed arguments of a launch that are known in a phase."""
        return tuple(
            ordinal
            for ordinal, argument in enumerate(launch.args)
            if _is_computed(argument) and self._known(ComputeArguments(launch, (ordinal,))) is phase
        )

    def _presences(self, phase: Phase) -> Iterator[Action]:
        """Yield what has to be there, once it is known which launches happen: with the values at the earliest."""
        plan = self.plan
        needs: list[Action] = [
            RequirePresence(encode.memory, encode.readers, "a tensor map")
            for encode in plan.encodes
            if plan.may_be_absent(encode.memory)
        ]
        needs += [
            RequirePresence(window.memory, (launch.index,), "a window")
            for launch, window in self.windows
            if plan.may_be_absent(window.memory)
        ]
        late = phase is Phase.ADMIT
        yield from (need for need in needs if (self._known(need) is Phase.ADMIT) is late)

    def _requirements(self, phase: Phase) -> Iterator[Action]:
        """Yield the checks that can be made in a phase."""
        for require in map(Require, self.plan.checks):
            check, known = require.check, self._decided(require)
            given = isinstance(check, ValueCheck) and check.source.kind == "scalar"
            if (Phase.VALUES if given else known) is phase:
                yield require

    def _known(self, action: Action) -> Phase:
        """Return where it is known what an action computes, and whether the launches that read it happen."""
        phases = {self._decided(action), *(self.shaped[reader] for reader in action.readers or ())}
        return next(phase for phase in (Phase.ADMIT, Phase.VALUES, Phase.TENSORS) if phase in phases)

    def _decided(self, action: Action) -> Phase:
        """Return where it is known what an action computes, whether or not a call comes to it."""
        slots = slots_of(action)
        if not self.facts.isdisjoint(slots):
            return Phase.ADMIT
        return Phase.TENSORS if self.slots.issuperset(slots) else Phase.VALUES


def _asks_itself(launch: PlannedLaunch) -> bool:
    """Whether a device is asked for something by the first call in which a launch happens."""
    smem = launch.dynamic_smem_bytes
    return launch.deferred and bool(launch.attributes or (isinstance(smem, Const) and smem.value))


def _is_computed(argument: PlannedArgument) -> bool:
    """Whether an argument is a number that is computed, or has such numbers in it."""
    if isinstance(argument, BuiltArgument):
        return any(_is_computed(one.argument) for one in argument.fields)
    return isinstance(argument, (ExprArgument, FloatArgument, MovedArgument, ViewArgument))
