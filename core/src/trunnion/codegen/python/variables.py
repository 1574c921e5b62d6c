"""Which variables of a launcher a step sets for the steps behind it, and which it reads.

A step may set others for itself alone; these are not told here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from trunnion.codegen.python.bindings import live_variables, place_variable, slot_name
from trunnion.codegen.python.conditions import step_condition
from trunnion.codegen.python.launches import attribute_variables, shape_variables, variables
from trunnion.model.expr import Const
from trunnion.model.plan import ValueCheck
from trunnion.model.plan.steps import (
    Bind,
    ComputeArguments,
    ComputeWindow,
    LayOutMap,
    ReadTensors,
    Require,
    ShapeLaunch,
    ShapeOutput,
    SizeWorkspace,
    slots_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import LaunchPlan, PlannedLaunch
    from trunnion.model.plan.steps import Action

__all__ = ["Variable", "emit_unset", "kept", "set_by"]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that a step sets."""

    name: str
    """Its name."""

    always: bool
    """Whether the step sets it in every call."""


def set_by(plan: LaunchPlan, action: Action) -> Iterator[Variable]:
    """Yield what a step sets."""
    match action:
        case ReadTensors():
            for tensor in plan.inputs:
                names = product("d" if tensor.strides is None else "dr", range(len(tensor.shape)))
                for letter, axis in names:
                    yield Variable(f"{letter}{tensor.index}_{axis}", not tensor.nullable)
        case Bind(binding):
            if binding.candidates:
                yield Variable(f"v{binding.slot}", always=True)
        case ShapeOutput(tensor):
            yield Variable(f"y{tensor.index}", always=True)
            if tensor.fill is not None:  # which counts elements
                axes = range(len(tensor.shape))
                yield from (Variable(f"y{tensor.index}_{axis}", always=True) for axis in axes)
        case ShapeLaunch(launch):
            yield from _of_shape(launch)
        case _:
            always = step_condition(plan, action) == "True"
            yield from (Variable(name, always) for name in _of_values(action))


def _of_shape(launch: PlannedLaunch) -> Iterator[Variable]:
    if launch.conditional:
        yield Variable(f"c{launch.index}", always=True)
    if launch.never:
        return
    grid, sizes = shape_variables(launch)
    yield from (Variable(name, not launch.conditional) for name in grid)
    always = not launch.conditional and not launch.open_axes
    yield from (Variable(name, always) for name in sizes)
    for names in attribute_variables(launch).values():
        yield from (Variable(name, always) for name in names)
    if grid or sizes:
        yield Variable(f"j{launch.index}", always)


def _of_values(action: Action) -> Iterator[str]:
    match action:
        case SizeWorkspace(workspace):
            yield f"z{workspace.index}_bytes"
        case ComputeArguments(launch, ordinals):
            for ordinal in ordinals:
                yield from variables(launch.args[ordinal], f"e{launch.index}_{ordinal}")
        case ComputeWindow(launch):
            yield from (f"o{launch.index}", f"n{launch.index}")
        case LayOutMap(encode):
            if encode.offset_bytes != Const(0):
                yield f"k{encode.index}_offset"
            yield f"k{encode.index}"


def kept(plan: LaunchPlan, first: Iterable[Action], rest: Iterable[Action]) -> list[str]:
    """Return the variables that some steps set, and that those behind them or the launches read.

    Extents, strides and symbols are for steps alone; what else a step sets a launch may read.

    Parameters
    ----------
    plan
        The plan.
    first
        The steps that come first.
    rest
        All others.
    """
    needed = {name for action in rest for name in _read_by(plan, action)}
    found = [variable.name for action in first for variable in set_by(plan, action)]
    return [name for name in found if name[0] not in "drv" or name in needed]


def emit_unset(out: SourceWriter, plan: LaunchPlan, actions: Iterable[Action], names: Iterable[str]) -> None:
    """Write the line that sets what of some variables these steps set in some calls alone: so it is set in each."""
    sometimes = {one.name for action in actions for one in set_by(plan, action) if not one.always}
    unset = [name for name in names if name in sometimes]
    if unset:
        out.line(f"{' = '.join(unset)} = None")


def _read_by(plan: LaunchPlan, action: Action) -> Iterator[str]:
    """Yield the extents, strides and symbols that a step reads."""
    yield from (slot_name(plan, slot) for slot in slots_of(action))
    sources = []
    if isinstance(action, Bind):
        sources = [action.binding.source, *action.binding.candidates]
    elif isinstance(action, Require) and isinstance(action.check, ValueCheck):
        sources = [action.check.source]
    for source in sources:
        yield place_variable(plan, source)
        yield from live_variables(plan, source)
