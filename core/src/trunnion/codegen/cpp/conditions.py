"""Under which conditions launches happen, and memory and maps are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.model.expr import Const

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan, PlannedLaunch

__all__ = ["both", "launch_condition", "readers_condition"]

_AXES = "xyz"


def both(one: str, other: str) -> str:
    """Return the condition that two conditions hold."""
    return " && ".join(condition for condition in (one, other) if condition != "true") or "true"


def launch_condition(launch: PlannedLaunch) -> str:
    """Return the condition under which a launch happens at all: its own, and no extent of its grid is 0."""
    if any(extent == Const(0) for extent in launch.grid) or launch.when == Const(0):
        return "false"
    names = [] if launch.when is None or isinstance(launch.when, Const) else [f"c{launch.index} != 0"]
    names += [
        f"g{launch.index}_{axis} != 0"
        for axis, extent in zip(_AXES, launch.grid, strict=True)
        if not isinstance(extent, Const) and extent.bounds.low <= 0
    ]
    return " && ".join(names) if names else "true"


def readers_condition(plan: LaunchPlan, readers: tuple[int, ...]) -> str:
    """Return the condition under which one of some launches happens."""
    conditions = dict.fromkeys(launch_condition(plan.launches[reader]) for reader in readers)
    if "true" in conditions:
        return "true"
    alternatives = [f"({condition})" for condition in conditions if condition != "false"]
    return " || ".join(alternatives) or "false"
