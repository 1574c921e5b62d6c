"""The part of a C++ launcher that computes access-policy windows, and has launches and streams hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.conditions import both, launch_condition
from trunnion.codegen.cpp.launches import memory_address
from trunnion.codegen.literals import cpp_name
from trunnion.model.plan import MemoryKind
from trunnion.model.window import AccessProperty, WindowPolicy

if TYPE_CHECKING:
    from trunnion.codegen.cpp.text import CallText
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import LaunchPlan, PlannedLaunch, PlannedWindow

__all__ = [
    "emit_capture_check",
    "emit_launch_within",
    "emit_set_aside",
    "emit_window_limits",
    "emit_window_rules",
    "emit_window_values",
    "has_windows",
    "persisting_bounds",
    "window_range",
]

_SITE = "Site{program, *state, place.device, stream}"


def has_windows(plan: LaunchPlan) -> bool:
    """Return whether some launch has a window."""
    return any(launch.window is not None for launch in plan.launches)


def _windows(plan: LaunchPlan) -> list[tuple[PlannedLaunch, PlannedWindow]]:
    """Return the launches that have a window and may happen."""
    return [
        (launch, launch.window) for launch in plan.launches if launch.window is not None and not launch.never
    ]


def persisting_bounds(plan: LaunchPlan) -> tuple[tuple[int, int], ...]:
    """Return the least and the greatest bytes of each window of a launch whose hits persist, before any call."""
    return tuple(launch.window_bounds for launch, window in _windows(plan) if _persists(window))


def _persists(window: PlannedWindow) -> bool:
    """Return whether cache is set aside for as long as the program lives."""
    return window.hit_property == AccessProperty.PERSISTING.code and window.policy == WindowPolicy.LAUNCH


def _name(plan: LaunchPlan, window: PlannedWindow) -> str:
    return cpp_name(plan.memory(window.memory).name)


def emit_window_rules(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write what is known of each window before any call."""
    for launch, window in _windows(plan):
        fields = [
            _name(plan, window),
            str(launch.kernel),
            "false" if window.nbytes is None else "true",
            f"static_cast<float>({window.hit_ratio!r})",
            f"static_cast<CUaccessProperty>({window.hit_property})",
            f"static_cast<CUaccessProperty>({window.miss_property})",
        ]
        out.line(f"constexpr WindowRule kWindow{launch.index}{{{', '.join(fields)}}};")


def emit_window_values(text: CallText, plan: LaunchPlan, launch: PlannedLaunch) -> None:
    """Write the lines that compute a window's offset ``o<i>`` and length ``n<i>``, if its launch happens."""
    window, index, condition = launch.window, launch.index, launch_condition(launch)
    if window is None or condition == "false":
        return
    length, memory = text.member("int64_t", f"n{index}"), window.memory
    if memory.kind is MemoryKind.TENSOR and plan.tensors[memory.slot].nullable:
        # Over nothing there is no window to judge: that it is absent is told where all checks that come before held.
        condition = both(condition, f"t[{memory.slot}] != nullptr")
    with text.when(condition):
        offset = text.store("int64_t", f"o{index}", window.offset_bytes)
        with text.out.block("{", "}"):
            nbytes = "0" if window.nbytes is None else text.expr(window.nbytes)
            text.line(f"const int64_t nbytes = {nbytes};")
            text.line(f"const int64_t limit = {text.expr(window.limit_bytes)};")
            text.require(f"check_window(kWindow{index}, {offset}, nbytes, limit, {length})")


def emit_capture_check(text: CallText, plan: LaunchPlan) -> None:
    """Write the check that a stream is not captured which holds a window: the call waits for its kernel."""
    if any(
        launch.window is not None and launch.window.policy == WindowPolicy.STREAM for launch in plan.launches
    ):
        text.require(f"refuse_capture({_SITE})")


def emit_window_limits(text: CallText, plan: LaunchPlan) -> None:
    """Write what is checked once the device is known, before anything is allocated."""
    emit_capture_check(text, plan)
    for launch, _ in _windows(plan):
        with text.when(launch_condition(launch)):
            text.require(f"fit_window(kWindow{launch.index}, *state, place.device, n{launch.index})")


def emit_set_aside(text: CallText, plan: LaunchPlan) -> None:
    """Write the lines that have cache set aside for windows of launches whose hits persist."""
    for launch, window in _windows(plan):
        if _persists(window):
            with text.when(launch_condition(launch)):
                text.require(f"trunnion::set_aside({_SITE}, {launch.kernel}, n{launch.index})")


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
    text.line(f"StreamWindow window({_SITE}, kWindow{launch.index});")
    text.line(f"const bool good = window.open({window_range(launch, window)}) && {fired};")
    text.require("window.close(good)")
