"""Under which conditions launches happen, and memory and maps are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan, PlannedLaunch
    from trunnion.model.plan.steps import Action

__all__ = ["both", "launch_condition", "step_condition"]

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


def step_condition(plan: LaunchPlan, action: Action) -> str:
    """Return the condition under which a call comes to a step: one of the launches that it is done for happens."""
    readers = (plan.launches[reader] for reader in action.readers or ())
    conditions = dict.fromkeys(launch_condition(launch) for launch in readers if not launch.never)
    if "true" in conditions or not conditions:
        return "true"
    return " || ".join(conditions if len(conditions) == 1 else (f"({condition})" for condition in conditions))
