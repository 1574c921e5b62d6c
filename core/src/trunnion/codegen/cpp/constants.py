"""The part of a C++ launcher that holds what it passes in every call alike: the bytes of each constant, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.model.plan import ConstantArgument

if TYPE_CHECKING:
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import LaunchPlan

__all__ = ["constant_address", "constant_name", "emit_constants"]


def _distinct(plan: LaunchPlan) -> list[bytes]:
    """Return the bytes of all constants, in the order of their first use."""
    passed = (one for launch in plan.launches for one in launch.passed if isinstance(one, ConstantArgument))
    return list(dict.fromkeys(one.data for one in passed))


def emit_constants(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write the bytes of each constant, aligned as a number of that size is."""
    for index, data in enumerate(_distinct(plan)):
        values = ", ".join(map(str, data))
        out.line(f"alignas({len(data)}) constexpr unsigned char kConstant{index}[] = {{{values}}};")


def constant_name(plan: LaunchPlan, constant: ConstantArgument) -> str:
    """Return the array that holds a constant."""
    return f"kConstant{_distinct(plan).index(constant.data)}"


def constant_address(plan: LaunchPlan, constant: ConstantArgument) -> str:
    """Return the address of a constant as a launch takes one: nobody writes there."""
    return f"const_cast<unsigned char*>({constant_name(plan, constant)})"
