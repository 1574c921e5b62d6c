"""The part of a C++ launcher that computes access-policy windows, and has launches and streams hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.launches import memory_address
from trunnion.codegen.literals import cpp_name
from trunnion.model.plan.steps import LimitWindow, SetAside, steps_of
from trunnion.model.window import WindowPolicy

if TYPE_CHECKING:
    from trunnion.codegen.cpp.text import CallText
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import LaunchPlan, PlannedLaunch, PlannedWindow
    from trunnion.model.plan.steps import ComputeWindow

__all__ = [
    "SITE",
    "emit_launch_within",
    "emit_window_rules",
    "emit_window_values",
    "persisting_bounds",
    "window_range",
]

SITE = "Site{program, *state, place.device, stream}"
"""Where a window is asked for."""


def persisting_bounds(plan: LaunchPlan) -> tuple[tuple[int, int], ...]:
    """Return the least and the greatest bytes of each window of a launch whose hits persist, before any call."""
    return tuple(step.launch.window_bounds for step in steps_of(plan, SetAside))


def emit_window_rules(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write what is known of each window before any call."""
    for step in steps_of(plan, LimitWindow):
        launch, window = step.launch, step.window
        fields = [
            cpp_name(plan.memory(window.memory).name),
            str(launch.kernel),
            "false" if window.nbytes is None else "true",
            f"static_cast<float>({window.hit_ratio!r})",
            f"static_cast<CUaccessProperty>({window.hit_property})",
            f"static_cast<CUaccessProperty>({window.miss_property})",
        ]
        out.line(f"constexpr WindowRule kWindow{launch.index}{{{', '.join(fields)}}};")


def emit_window_values(text: CallText, plan: LaunchPlan, step: ComputeWindow) -> None:
    """Write the lines that compute a window's offset ``o<i>`` and length ``n<i>``."""
    window, index, memory = step.window, step.launch.index, step.window.memory
    length = text.member("int64_t", f"n{index}")
    # Over nothing there is no window to judge: that it is absent is told where all checks that come before held.
    with text.when(f"t[{memory.slot}] != nullptr" if plan.may_be_absent(memory) else "true"):
        offset = text.store("int64_t", f"o{index}", window.offset_bytes)
        with text.out.block("{", "}"):
            nbytes = "0" if window.nbytes is None else text.expr(window.nbytes)
            text.line(f"const int64_t nbytes = {nbytes};")
            text.line(f"const int64_t limit = {text.expr(window.limit_bytes)};")
            text.require(f"check_window(kWindow{index}, {offset}, nbytes, limit, {length})")


def window_range(launch: PlannedLaunch, window: PlannedWindow) -> str:
    """Return the address and the length of a window."""
    index = launch.index
    return f"{memory_address(window.memory)} + static_cast<uint64_t>(o{index}), n{index}"


def emit_launch_within(text: CallText, launch: PlannedLaunch, fired: str) -> None:
    """Write a launch, around which the stream holds its window if it has one of that policy.

    Parameters
    ----------
    text
        Takes the lines.
    launch
        The launch.
    fired
        The expression that launches.
    """
    window = launch.window
    if window is None or window.policy != WindowPolicy.STREAM:
        text.require(fired)
        return
    text.line(f"StreamWindow window({SITE}, kWindow{launch.index});")
    text.line(f"const bool good = window.open({window_range(launch, window)}) && {fired};")
    text.require("window.close(good)")
