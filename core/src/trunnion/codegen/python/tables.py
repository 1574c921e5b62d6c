"""The head of a launcher's module: what is known before any call, each value as Python displays it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.memory import fill_table
from trunnion.launcher.tables import launch_spec, map_spec, variable_spec

if TYPE_CHECKING:
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import LaunchPlan

__all__ = ["emit_tables"]

_LEFT_OUT = ("FACTS", "VARIABLES")
"""The tables that there are not if they have no rows."""


def emit_tables(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write ``KERNELS``, ``LAUNCHES``, ``ENCODES``, ``FACTS``, ``VARIABLES``, and the fills' constants."""
    out.line(f"KERNELS = {python_tuple([python_string(kernel.name) for kernel in plan.kernels])}")
    tables: dict[str, list[object]] = {
        "LAUNCHES": [launch_spec(plan, launch) for launch in plan.launches],
        "ENCODES": [map_spec(plan, encode) for encode in plan.encodes],
        "FACTS": [*plan.facts],
        "VARIABLES": [variable_spec(slot) for slot in plan.variables],
    }
    for name, rows in tables.items():
        if rows or name not in _LEFT_OUT:
            with out.block(f"{name} = (", ")"):
                out.lines(*(f"{row!a}," for row in rows))
    out.lines(*fill_table(plan))
