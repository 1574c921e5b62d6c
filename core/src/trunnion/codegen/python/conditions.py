"""Under which conditions launches happen, steps are done, and a call is refused."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import LaunchPlan, PlannedLaunch
    from trunnion.model.plan.steps import Action

__all__ = ["launch_condition", "refuse", "step_condition", "when"]

_AXES = "xyz"


def launch_condition(launch: PlannedLaunch) -> str:
    """Return the condition under which a launch happens at all: its own, and no extent of its grid is 0."""
    if launch.never:
        return "False"
    names = [f"c{launch.index}"] if launch.conditional else []
    names += [f"g{launch.index}_{_AXES[axis]}" for axis in launch.open_axes]
    return f"({' and '.join(names)})" if names else "True"


def step_condition(plan: LaunchPlan, action: Action) -> str:
    """Return the condition under which a call comes to a step: one of the launches that it is done for happens."""
    if action.readers is None:
        return "True"
    conditions = dict.fromkeys(launch_condition(plan.launches[reader]) for reader in action.readers)
    return "True" if "True" in conditions else " or ".join(conditions)


@contextmanager
def when(out: SourceWriter, condition: str) -> Iterator[None]:
    """Indent the body under a condition, unless it always holds."""
    if condition == "True":
        yield
    else:
        with out.block(f"if {condition}:"):
            yield


def refuse(out: SourceWriter, wrong: str, error: str) -> None:
    """Write what raises an error under a condition."""
    with out.block(f"if {wrong}:"):
        out.line(f"raise {error}")
