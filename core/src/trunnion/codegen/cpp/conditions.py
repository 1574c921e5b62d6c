"""Under which conditions launches happen, and memory and maps are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan, PlannedLaunch

__all__ = ["both", "launch_condition", "readers_condition"]

_AXES = "xyz"


def both(one: str, other: str) -> str:
    """Return the condition that two conditions hold."""
    return " && ".join(condition for condition in (one, other) if condition != "true") or "true"


def launch_condition(launch: PlannedLaunch) -> str:
    """Return the condition under which a launch happens at all: its own, and no extent of its grid is 0."""
    if launch.never:
        return "false"
    names = [f"c{launch.index} != 0"] if launch.conditional else []
    names += [f"g{launch.index}_{_AXES[axis]} != 0" for axis in launch.open_axes]
    return " && ".join(names) if names else "true"


def readers_condition(plan: LaunchPlan, readers: tuple[int, ...]) -> str:
    """Return the condition under which one of some launches happens."""
    conditions = dict.fromkeys(launch_condition(plan.launches[reader]) for reader in readers)
    if "true" in conditions:
        return "true"
    alternatives = [f"({condition})" for condition in conditions if condition != "false"]
    return " || ".join(alternatives) or "false"
