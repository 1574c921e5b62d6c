"""The part of a C++ launcher that says what module variables are, and copies to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.launches import memory_address
from trunnion.codegen.literals import cpp_bytes, cpp_name

if TYPE_CHECKING:
    from trunnion.codegen.cpp.text import CallText
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.plan.steps import CopyVariable

__all__ = ["emit_copy", "emit_variable_rules"]


def emit_variable_rules(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write what is known of each module variable before any call, and what it holds before the first launch."""
    for slot in plan.variables:
        if slot.init is not None:
            lines = cpp_bytes(slot.init)
            out.line(f"constexpr char kInit{slot.index}[] =")
            out.lines(*(f"    {line}" for line in lines[:-1]), f"    {lines[-1]};")
    with out.block("constexpr VariableRule kVariables[] = {", "};"):
        for slot in plan.variables:
            init = "nullptr" if slot.init is None else f"kInit{slot.index}"
            out.line(f"{{{cpp_name(slot.name)}, {slot.nbytes}u, {init}}},")


def emit_copy(text: CallText, step: CopyVariable) -> None:
    """Write a copy to a module variable, on the call's stream."""
    places = f"state->variables[{step.variable}], {memory_address(step.memory)}"
    text.require(f"copy_to_variable(program.driver(), {places}, {step.nbytes}u, stream)")
