"""The part of a C++ launcher that takes a plan's steps: the check or the computation that each of them is."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from trunnion.codegen.cpp.arguments import emit_layouts, emit_number, emit_pointers, emit_structure
from trunnion.codegen.cpp.bindings import emit_binding, emit_checks
from trunnion.codegen.cpp.launches import emit_arguments, emit_geometry
from trunnion.codegen.cpp.maps import emit_map_values, emit_presence
from trunnion.codegen.cpp.memory import emit_given_outputs, emit_shape, emit_size
from trunnion.codegen.cpp.windows import emit_window_values
from trunnion.model.plan.steps import (
    Bind,
    CheckDestinations,
    ComputeArguments,
    ComputeWindow,
    LayOutMap,
    ReadNumber,
    ReadTensors,
    Require,
    RequireLayouts,
    RequirePresence,
    ShapeLaunch,
    ShapeOutput,
    SizeWorkspace,
    TakeAddresses,
)

if TYPE_CHECKING:
    from trunnion.codegen.cpp.text import CallText
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.plan.steps import Action

__all__ = ["emit_steps"]


def emit_steps(text: CallText, plan: LaunchPlan, inputs: int) -> None:
    """Write all steps of a plan, in their order.

    Parameters
    ----------
    text
        The function that checks a call.
    plan
        The plan.
    inputs
        How many arguments a call has; destinations follow them.
    """
    for kind, run in groupby((step.action for step in plan.steps), type):
        if kind is Require:  # checks of neighbours are told together
            emit_checks(text, plan, [one.check for one in run if isinstance(one, Require)])
            continue
        for action in run:
            _emit_arguments(text, plan, action, inputs)
            _emit_derived(text, plan, action)


def _emit_arguments(text: CallText, plan: LaunchPlan, action: Action, inputs: int) -> None:
    """Write a step that reads or judges what the call was given."""
    match action:
        case ReadTensors():
            emit_structure(text, plan)
        case Bind(binding):
            emit_binding(text, plan, binding)
        case RequireLayouts():
            emit_layouts(text, plan)
        case ReadNumber(slot):
            emit_number(text, plan, slot)
        case TakeAddresses():
            emit_pointers(text, plan)
        case CheckDestinations():
            emit_given_outputs(text, plan, inputs)


def _emit_derived(text: CallText, plan: LaunchPlan, action: Action) -> None:
    """Write a step that computes what follows from that."""
    match action:
        case ShapeOutput(tensor):
            emit_shape(text, tensor)
        case ShapeLaunch(launch):
            emit_geometry(text, launch)
        case SizeWorkspace(workspace):
            emit_size(text, plan, workspace)
        case ComputeArguments(launch, ordinals):
            emit_arguments(text, plan, launch, ordinals)
        case ComputeWindow(launch):
            emit_window_values(text, plan, launch)
        case LayOutMap(encode):
            emit_map_values(text, plan, encode)
        case RequirePresence():
            emit_presence(text, plan, action)
