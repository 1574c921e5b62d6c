"""The part of a launcher that reads symbols from a call, and compares every other place with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.arguments import is_computed_with
from trunnion.model.expr_text import format_expr
from trunnion.model.interval import INT64_MAX
from trunnion.model.plan import ConditionCheck
from trunnion.wording import shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.codegen.exprs import ExprPrinter
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import Binding, LaunchPlan, Source, TensorSlot, ValueCheck

__all__ = [
    "emit_binding",
    "emit_check",
    "slot_name",
    "source_range",
]


def slot_name(plan: LaunchPlan, index: int) -> str:
    """Return the variable that holds a symbol's value."""
    binding = plan.bindings[index]
    return f"v{index}" if binding.candidates else _place(plan, binding.source)[0]


def _place(plan: LaunchPlan, source: Source) -> tuple[str, str, str]:
    """Return the variable, the argument's name and the place's description of a number of the call."""
    if source.kind == "scalar":
        scalar = plan.scalars[source.slot]
        return f"{'i' if is_computed_with(plan, scalar) else 's'}{scalar.index}", scalar.name, "the value"
    letter, word = ("d", "extent") if source.kind == "shape" else ("r", "stride")
    name = plan.tensors[source.slot].name
    return f"{letter}{source.slot}_{source.axis}", name, f"the {word} along dimension {source.axis}"


def _there(plan: LaunchPlan, source: Source) -> list[str]:
    """Return the conditions under which there is a number at a place at all."""
    absent = source.kind != "scalar" and plan.tensors[source.slot].nullable
    return [f"t{source.slot} is not None"] if absent else []


def _live(plan: LaunchPlan, source: Source) -> list[str]:
    """Return the conditions under which the number at a place means anything, beside being there."""
    if source.kind != "stride":
        return []
    return [f"d{source.slot}_{source.axis} > 1", *_has_elements(plan.tensors[source.slot])]


def _has_elements(tensor: TensorSlot) -> list[str]:
    return [f"d{tensor.index}_{axis}" for axis in range(len(tensor.shape))]


def source_range(plan: LaunchPlan, binding: Binding, least_stride: int = 0) -> tuple[int, int]:
    """Return the least and the greatest number that the places which may give a symbol its value can hold.

    Parameters
    ----------
    plan
        The plan.
    binding
        The symbol's.
    least_stride
        The least stride that a tensor can have.
    """
    ranges = {"shape": (0, INT64_MAX), "stride": (least_stride, INT64_MAX)}
    held = [
        ranges.get(source.kind) or plan.scalars[source.slot].dtype.integer_range
        for source in (binding.source, *binding.candidates)
    ]
    return min(low for low, _ in held), max(high for _, high in held)


def emit_binding(out: SourceWriter, plan: LaunchPlan, binding: Binding) -> None:
    """Write the lines that give one symbol its value, and check its bounds."""
    variable, argument, place = _place(plan, binding.source)
    if binding.candidates:
        variable = f"v{binding.slot}"
        out.line(f"{variable} = {_choice(plan, binding, lambda source: _place(plan, source)[0])}")
    least, most = source_range(plan, binding)
    wrong, allowed = [], []
    if binding.min > least or binding.max < most:
        wrong.append(f"not {binding.min} <= {variable} <= {binding.max}")
        allowed.append(_bounds(binding.min, binding.max, least, most))
    if binding.multiple_of > 1:
        wrong.append(f"{variable} % {binding.multiple_of}")
        allowed.append(f"a multiple of {binding.multiple_of}")
    if wrong:
        with out.block(f"if {' or '.join(wrong)}:"):
            blamed = f"{python_string(argument)}, {python_string(place)}"
            if binding.candidates:
                blamed = f"*({_choice(plan, binding, lambda source: _blamed(plan, source))})"
            out.line(f"raise symbol_error({blamed}, {variable}, {python_string(', '.join(allowed))})")


def _blamed(plan: LaunchPlan, source: Source) -> str:
    _, argument, place = _place(plan, source)
    return f"({python_string(argument)}, {python_string(place)})"


def _bounds(low: int, high: int, least: int, most: int) -> str:
    """Return what a symbol may be, without a bound that its place has anyway."""
    if high >= most:
        return f"at least {low}"
    return f"at most {high}" if low < least else f"{low} to {high}"


def _choice(plan: LaunchPlan, binding: Binding, text_of: Callable[[Source], str]) -> str:
    """Return the text of the first live candidate, else of the first that is there, else of an error."""
    conditions = {source: [*_there(plan, source), *_live(plan, source)] for source in binding.candidates}
    conditioned = [(source, conditions[source]) for source in binding.candidates]
    conditioned += [(source, _there(plan, source)) for source in binding.candidates]
    text = ""
    for source, needed in conditioned:
        if not needed:
            return text + text_of(source)
        text += f"{text_of(source)} if {' and '.join(needed)} else "
    places = python_tuple([python_string(_mention(plan, source)) for source in binding.candidates])
    return f"{text}unbound({python_string(binding.symbol)}, {places})"


def _mention(plan: LaunchPlan, source: Source) -> str:
    word = "dimension" if source.kind == "shape" else "stride"
    return f"{word} {source.axis} of {shorten(plan.tensors[source.slot].name)}, which is None in this call"


def emit_check(
    out: SourceWriter, plan: LaunchPlan, check: ValueCheck | ConditionCheck, printer: ExprPrinter
) -> None:
    """Write the lines of one check."""
    if isinstance(check, ConditionCheck):
        with out.block(f"if not {printer.text(check.condition)}:"):
            out.line(f"raise condition_error({python_string(check.message)})")
        return
    there = _there(plan, check.source)
    if there:
        with out.block(f"if {there[0]}:"):
            _emit_value_check(out, plan, check, printer)
    else:
        _emit_value_check(out, plan, check, printer)


def _emit_value_check(out: SourceWriter, plan: LaunchPlan, check: ValueCheck, printer: ExprPrinter) -> None:
    source = check.source
    variable, argument, _ = _place(plan, source)
    out.line(f"want = {printer.text(check.expected)}")
    text, name = _author_text(plan, check), python_string(argument)
    with out.block(f"if {' and '.join([f'{variable} != want', *_live(plan, source)])}:"):
        if source.kind == "scalar":
            out.line(f"raise value_error({name}, {variable}, want, {text})")
        else:
            word = "extent" if source.kind == "shape" else "stride"
            out.line(f"raise {word}_error({name}, {source.axis}, {variable}, want, {text})")


def _author_text(plan: LaunchPlan, check: ValueCheck) -> str:
    """Return the expected value as the author wrote it, over symbols' names."""
    source = check.source
    if source.kind == "scalar":
        symbol = plan.signature.scalars[source.slot].symbol
        return python_string("" if symbol is None else symbol.name)
    tensor = plan.signature.tensors[source.slot]
    exprs = tensor.shape if source.kind == "shape" else tensor.strides or ()
    return python_string(format_expr(exprs[source.axis]))
