"""The launch attributes of a C++ launcher: the planned ones, in the table's order, and the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.windows import window_range
from trunnion.model.launch_attributes import attribute_row
from trunnion.model.window import WindowPolicy

if TYPE_CHECKING:
    from trunnion.codegen.cpp.text import CallText
    from trunnion.model.plan import PlannedAttribute, PlannedLaunch

__all__ = ["emit_attributes"]


def emit_attributes(text: CallText, launch: PlannedLaunch) -> None:
    """Write the lines that give a launch its attributes; its window, whose range only the call knows, is the last."""
    window, count = launch.window, len(launch.attributes)
    held = window is not None and window.policy == WindowPolicy.LAUNCH
    if not count + held:
        return
    text.line(f"CUlaunchAttribute attributes[{count + held}] = {{}};")
    for place, attribute in enumerate(launch.attributes):
        text.line(f"attributes[{place}].id = static_cast<CUlaunchAttributeID>({attribute.id});")
        for line in _values(launch, attribute):
            text.line(f"attributes[{place}].value.{attribute_row(attribute.id).member}{line};")
    if window is not None and held:
        text.line(f"attributes[{count}].id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;")
        values = f"kWindow{launch.index}, {window_range(launch, window)}"
        text.line(f"set_window(attributes[{count}].value.accessPolicyWindow, {values});")
    text.line(f"config.attributes(attributes, {count + held});")


def _values(launch: PlannedLaunch, attribute: PlannedAttribute) -> list[str]:
    """Return the assignments of an attribute's numbers: one, or x, y and z."""
    if attribute in launch.computed:
        return _computed(launch, attribute)
    if len(attribute.values) > 1:
        return [f".{axis} = {value}" for axis, value in zip("xyz", attribute.values, strict=True)]
    (value,), kind = attribute.values, attribute_row(attribute.id).driver_type
    return [f" = static_cast<{kind}>({value})" if kind else f" = {value}"]


def _computed(launch: PlannedLaunch, attribute: PlannedAttribute) -> list[str]:
    """Return the assignments of numbers that the call decided; a switch is on or off, whatever number says it."""
    if len(attribute.values) > 1:
        return [f".{axis} = static_cast<uint32_t>(q{launch.index}_{axis})" for axis in "xyz"]
    return [f" = q{launch.index}_{attribute.field} != 0"]
