"""The part of a C++ launcher that takes a plan's steps: the check or the computation that each of them is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.arguments import emit_layouts, emit_number, emit_pointers, emit_structure
from trunnion.codegen.cpp.bindings import emit_binding
from trunnion.codegen.cpp.launches import emit_arguments, emit_geometry
from trunnion.codegen.cpp.maps import emit_map_values, emit_presence
from trunnion.codegen.cpp.memory import emit_given_outputs, emit_shape
from trunnion.codegen.cpp.windows import emit_window_values
from trunnion.model.plan.steps import (
    Bind,
    CheckDestinations,
    ComputeArguments,
    ComputeWindow,
    LayOutMap,
    PrepareDevice,
    ReadNumber,
    ReadStream,
    ReadTensors,
    RequireLayouts,
    RequirePresence,
    ShapeLaunch,
    ShapeOutput,
    TakeAddresses,
)

if TYPE_CHECKING:
    from trunnion.codegen.cpp.text import CallText
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.plan.steps import Action

__all__ = ["emit_step"]


def emit_step(  # noqa: C901, PLR0912 - one for each kind of step
    text: CallText, plan: LaunchPlan, action: Action, inputs: int
) -> bool:
    """Write a step that a call's arguments or facts of its device decide, and return whether it is one.

    Parameters
    ----------
    text
        The function that checks a call.
    plan
        The plan.
    action
        The step.
    inputs
        How many arguments a call has; destinations follow them.
    """
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
        case ShapeOutput(tensor):
            emit_shape(text, tensor)
        case ShapeLaunch(launch):
            emit_geometry(text, launch)
        case CheckDestinations():
            emit_given_outputs(text, plan, inputs)
        case ComputeArguments():
            emit_arguments(text, plan, action)
        case ComputeWindow():
            emit_window_values(text, plan, action)
        case LayOutMap(encode):
            emit_map_values(text, encode)
        case RequirePresence():
            emit_presence(text, action)
        case _:  # stream and device the runtime finds, between the functions of a call
            return isinstance(action, (ReadStream, PrepareDevice))
    return True
