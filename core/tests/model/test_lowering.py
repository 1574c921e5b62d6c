"""The steps of random programs: each thing once, nothing before what it needs, and first what the tensors decide."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from trunnion import examples
from trunnion.model.expr import Const, Expr, Slot
from trunnion.model.expr_tree import walk
from trunnion.model.float_expr import integers_of
from trunnion.model.plan import (
    BuiltArgument,
    ConditionCheck,
    ExprArgument,
    FloatArgument,
    MovedArgument,
    ViewArgument,
)
from trunnion.model.plan.steps import (
    Bind,
    CheckDestinations,
    ComputeArguments,
    ComputeWindow,
    EncodeMap,
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
    Require,
    RequireLayouts,
    Return,
    ShapeLaunch,
    ShapeOutput,
    SizeWorkspace,
    TakeAddresses,
    TakeOutputs,
    TakeWorkspace,
)
from trunnion.testing.strategies import programs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.model.plan import LaunchPlan, PlannedLaunch
    from trunnion.model.plan.steps import Action


def exprs(action: Action) -> Iterator[Expr]:
    """Every expression that a step computes."""
    match action:
        case Require(check):
            yield check.condition if isinstance(check, ConditionCheck) else check.expected
        case ShapeOutput(tensor):
            yield from tensor.shape
        case SizeWorkspace(workspace):
            yield from workspace.extents
        case LayOutMap(encode):
            yield from (*encode.dims, *encode.strides, encode.innermost_stride, encode.offset_bytes)
    yield from exprs_of_launch(action)


def exprs_of_launch(action: Action) -> Iterator[Expr]:
    """Every expression that a step of a launch computes."""
    match action:
        case ShapeLaunch(launch):
            yield from (*launch.grid, *launch.block, launch.dynamic_smem_bytes)
            yield from () if launch.when is None else (launch.when,)
        case ComputeArguments(launch, ordinals):
            for argument in (launch.args[ordinal] for ordinal in ordinals):
                yield from exprs_of_argument(argument)
        case ComputeWindow(launch) if launch.window is not None:
            yield from (launch.window.offset_bytes, launch.window.limit_bytes)


def exprs_of_argument(argument: object) -> tuple[Expr, ...]:
    """Every expression of an argument."""
    if isinstance(argument, FloatArgument):
        return tuple(integers_of(argument.value))
    if isinstance(argument, MovedArgument):
        return argument.numbers
    if isinstance(argument, ExprArgument):
        return (argument.value,)
    if isinstance(argument, BuiltArgument):
        return tuple(expr for one in argument.fields for expr in exprs_of_argument(one.argument))
    return (*argument.extents, *argument.strides) if isinstance(argument, ViewArgument) else ()


def is_computed(argument: object) -> bool:
    """Whether an argument, or a field of it, is a number that a call computes."""
    if isinstance(argument, BuiltArgument):
        return any(is_computed(one.argument) for one in argument.fields)
    return isinstance(argument, (ExprArgument, FloatArgument, MovedArgument, ViewArgument))


def check(plan: LaunchPlan) -> None:
    steps = plan.steps
    phases = [[*Phase].index(step.phase) for step in steps]
    assert phases == sorted(phases), "what the tensors decide comes first"
    bound: set[int] = set()
    for step in steps:
        action = step.action
        if isinstance(action, Bind):
            bound.add(action.binding.slot)
            given = {source.kind for source in (action.binding.source, *action.binding.candidates)}
            assert (step.phase is Phase.TENSORS) == ("scalar" not in given)
        if isinstance(action, ReadFacts):
            bound.update(range(len(plan.bindings), len(plan.bindings) + len(plan.facts)))
        used = {node.index for expr in exprs(action) for node in walk(expr) if isinstance(node, Slot)}
        assert used <= bound, f"{action} computes with what is not known yet"
    check_completeness(plan)


def check_completeness(plan: LaunchPlan) -> None:
    """Check that a plan's steps do all that its tables say, once."""
    done = [step.action for step in plan.steps]
    kinds = Counter(type(action) for action in done)
    assert kinds[Bind] == len(plan.bindings)
    assert kinds[Require] == len(plan.checks)
    assert kinds[ReadNumber] == len(plan.scalars) + len(plan.pointers) + len(plan.structs)
    assert kinds[ShapeOutput] == len(plan.outputs)
    shaped = [one.launch.index for one in done if isinstance(one, ShapeLaunch)]
    assert sorted(shaped) == [*range(len(plan.launches))]
    once = (
        ReadTensors,
        RequireLayouts,
        TakeAddresses,
        CheckDestinations,
        ReadStream,
        PrepareDevice,
        TakeOutputs,
    )
    assert all(kinds[one] == 1 for one in once)
    assert isinstance(done[0], ReadTensors)
    assert done[-1] == Return(plan.results)
    admitted = next(index for index, one in enumerate(done) if isinstance(one, PrepareDevice))
    assert [type(one) for one in done[admitted - 2 : admitted]] == [CheckDestinations, ReadStream]
    check_launches(plan, done)


def demands(launch: PlannedLaunch) -> bool:
    """Whether a device may lack something that is constant of a launch."""
    smem = launch.dynamic_smem_bytes
    return bool(launch.attributes) or (isinstance(smem, Const) and smem != Const(0))


def check_launches(plan: LaunchPlan, done: list[Action]) -> None:
    """Check that steps do what the launches that may happen need, and nothing for others."""
    kinds = Counter(type(action) for action in done)
    launches = [launch for launch in plan.launches if not launch.never]
    happen = {launch.index for launch in launches}
    read = [one.workspace.index for one in done if isinstance(one, SizeWorkspace)]
    assert sorted(read) == [one.index for one in plan.workspaces if happen.intersection(one.readers)]
    assert [one.workspace.index for one in done if isinstance(one, TakeWorkspace)] == sorted(read)
    laid_out = [one.encode.index for one in done if isinstance(one, LayOutMap)]
    assert sorted(laid_out) == [one.index for one in plan.encodes if happen.intersection(one.readers)]
    assert [one.encode.index for one in done if isinstance(one, EncodeMap)] == sorted(laid_out)
    assert kinds[ComputeWindow] == kinds[LimitWindow] == sum(one.window is not None for one in launches)
    assert [one.launch for one in done if isinstance(one, Launch)] == launches
    asking = [one.launch for one in done if isinstance(one, PrepareLaunch)]
    assert asking == [one for one in launches if one.conditional and demands(one)]
    computed = Counter(
        (one.launch.index, ordinal)
        for one in done
        if isinstance(one, ComputeArguments)
        for ordinal in one.ordinals
    )
    assert computed == Counter(
        (launch.index, ordinal)
        for launch in launches
        for ordinal, argument in enumerate(launch.args)
        if is_computed(argument)
    )


@settings(max_examples=60)
@given(programs())
def test_the_steps_of_a_random_program(program):
    check(program.plan())


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_the_steps_of_an_example(name):
    check(examples.load(name).program.plan())


def test_the_steps_of_a_program_with_everything(program):
    check(program.plan())
