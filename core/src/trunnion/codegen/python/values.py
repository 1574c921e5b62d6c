"""The part of a launcher that computes every computed argument, and every number of every map and window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.float_exprs import FLOAT_PYTHON, float_text
from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.conditions import refuse, when
from trunnion.codegen.python.launches import variables
from trunnion.model.expr import Const
from trunnion.model.float_expr import integers_of
from trunnion.model.float_text import brief_float
from trunnion.model.plan import BuiltArgument, ExprArgument, FloatArgument, MovedArgument, ViewArgument
from trunnion.model.plan.places import in_field

if TYPE_CHECKING:
    from trunnion.codegen.exprs import ExprPrinter
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import Encode, LaunchPlan, PlannedArgument
    from trunnion.model.plan.steps import ComputeArguments, ComputeWindow, RequirePresence

__all__ = [
    "emit_arguments",
    "emit_map_values",
    "emit_presence",
    "emit_window_values",
]


def emit_arguments(out: SourceWriter, plan: LaunchPlan, step: ComputeArguments, printer: ExprPrinter) -> None:
    """Write the lines that compute the numbers of a launch's arguments."""
    launch = step.launch
    for ordinal in step.ordinals:
        _emit_numbers(out, plan, (f"e{launch.index}_{ordinal}", launch.args[ordinal]), printer)


def _emit_numbers(
    out: SourceWriter,
    plan: LaunchPlan,
    given: tuple[str, PlannedArgument],
    printer: ExprPrinter,
    field: str = "",
) -> None:
    """Write the lines that compute the numbers of one argument, into variables that begin with the name given."""
    name, argument = given
    match argument:
        case BuiltArgument(fields):
            for place, one in enumerate(fields):
                _emit_numbers(out, plan, (f"{name}_{place}", one.argument), printer, in_field(one))
        case MovedArgument():
            _emit_offset(out, plan, (name, argument), printer)
        case FloatArgument():
            out.line(f"{name} = {_rounded(plan, argument, printer, field)}")
        case ViewArgument(memory):
            numbers = (number for group in argument.numbers for number in group)
            for place, (variable, value) in enumerate(zip(variables(argument, name), numbers, strict=True)):
                axis, extent = argument.unproven.get(place, (0, value))
                out.line(f"{variable} = {printer.text(extent, field)}")
                if place in argument.unproven:
                    said = python_string(plan.memory(memory).name)
                    refuse(
                        out,
                        f"not -2147483648 <= {variable} <= 2147483647",
                        f"view_error({said}, {axis}, {variable})",
                    )
        case ExprArgument(value) if not isinstance(value, Const):
            out.line(f"{name} = {printer.text(value, field)}")


def _rounded(plan: LaunchPlan, number: FloatArgument, printer: ExprPrinter, field: str) -> str:
    integers = (f"float({printer.text(integer)})" for integer in integers_of(number.value))
    value = float_text(FLOAT_PYTHON, number.value, integers)
    said = python_string(brief_float(number.value, plan.symbols) + field)
    return f"rounded({value}, {python_string(number.dtype.name)}, {said})"


def _emit_offset(
    out: SourceWriter, plan: LaunchPlan, moved: tuple[str, MovedArgument], printer: ExprPrinter
) -> None:
    """Write the lines that compute and judge an offset; of a tensor that is left out it is 0, unjudged."""
    name, argument = moved
    memory, condition = argument.memory, "True"
    if plan.may_be_absent(memory):
        out.line(f"{name} = 0")
        condition = f"t{memory.slot} is not None"
    with when(out, condition):
        out.line(f"{name} = {printer.text(argument.offset)}")
        if not argument.is_proven:
            out.line(f"limit = {printer.text(argument.limit)}")
            refuse(
                out,
                f"not 0 <= {name} <= limit",
                f"offset_error({python_string(plan.memory(memory).name)}, {name}, limit)",
            )


def emit_map_values(out: SourceWriter, encode: Encode, printer: ExprPrinter) -> None:
    """Write the lines that compute a map's layout ``k<i>``, and that it fits its memory."""
    index = encode.index
    if encode.offset_bytes != Const(0):
        out.line(f"k{index}_offset = {printer.text(encode.offset_bytes)}")
    dims = python_tuple([printer.text(extent) for extent in encode.dims])
    strides = python_tuple([printer.text(stride) for stride in encode.strides])
    inner = printer.text(encode.innermost_stride)
    out.line(f"k{index} = encode{index}.layout(device, {dims}, {strides}, {inner})")
    if encode.limit_bytes is not None:
        offset = "0" if encode.offset_bytes == Const(0) else f"k{index}_offset"
        out.line(f"encode{index}.within(k{index}, {offset}, {printer.text(encode.limit_bytes)})")


def emit_window_values(
    out: SourceWriter, plan: LaunchPlan, step: ComputeWindow, printer: ExprPrinter
) -> None:
    """Write the lines that compute a window's offset ``o<i>`` and length ``n<i>``."""
    window, index = step.window, step.launch.index
    out.line(f"o{index} = {printer.text(window.offset_bytes)}")
    nbytes = "None" if window.nbytes is None else printer.text(window.nbytes)
    limit = printer.text(window.limit_bytes)
    name = python_string(plan.memory(window.memory).name)
    # Over nothing there is no window to judge: that it is absent is told where all checks that come before held.
    there = f" if t{window.memory.slot} is not None else 0" if plan.may_be_absent(window.memory) else ""
    out.line(f"n{index} = window_bytes(device, {name}, (o{index}, {nbytes}, {limit})){there}")


def emit_presence(out: SourceWriter, plan: LaunchPlan, required: RequirePresence) -> None:
    """Write the check that no map and no window that is read lies over a tensor that the call leaves out."""
    slot = required.memory.slot
    name = python_string(plan.tensors[slot].name)
    refuse(out, f"t{slot} is None", f"absent_error({name}, {python_string(required.what)})")
