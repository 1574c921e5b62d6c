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


def emit_tables(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write ``KERNELS``, ``LAUNCHES``, ``ENCODES``, ``FACTS`` if there are any, and the fills' constants."""
    out.line(f"KERNELS = {python_tuple([python_string(kernel.name) for kernel in plan.kernels])}")
    with out.block("LAUNCHES = (", ")"):
        out.lines(*(f"{launch_spec(plan, launch)!a}," for launch in plan.launches))
    with out.block("ENCODES = (", ")"):
        out.lines(*(f"{map_spec(plan, encode)!a}," for encode in plan.encodes))
    if plan.facts:
        with out.block("FACTS = (", ")"):
            out.lines(*(f"{fact!a}," for fact in plan.facts))
    if plan.variables:
        with out.block("VARIABLES = (", ")"):
            out.lines(*(f"{variable_spec(slot)!a}," for slot in plan.variables))
    out.lines(*fill_table(plan))
