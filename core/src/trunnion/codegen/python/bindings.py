"""The part of a launcher that reads symbols from a call, and compares every other place with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.conditions import refuse, when
from trunnion.codegen.python.recalled import is_computed_with
from trunnion.model.plan import ConditionCheck
from trunnion.model.plan.places import (
    allowed_values,
    argument_name,
    author_text,
    mention,
    place_words,
    source_range,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.codegen.exprs import ExprPrinter
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import Binding, LaunchPlan, Source, TensorSlot, ValueCheck

__all__ = ["emit_binding", "emit_check", "live_variables", "place_variable", "presence", "slot_name"]


def slot_name(plan: LaunchPlan, index: int) -> str:
    """Return the variable that holds a symbol's value, or a fact of the device."""
    if index >= len(plan.bindings):
        return f"f{index - len(plan.bindings)}"
    binding = plan.bindings[index]
    return f"v{index}" if binding.candidates else place_variable(plan, binding.source)


def place_variable(plan: LaunchPlan, source: Source) -> str:
    """Return the variable that holds a number of the call."""
    if source.kind == "scalar":
        return f"{'i' if is_computed_with(plan, plan.scalars[source.slot]) else 's'}{source.slot}"
    return f"{'d' if source.kind == 'shape' else 'r'}{source.slot}_{source.axis}"


def presence(tensor: TensorSlot) -> str:
    """Return the condition under which a call has the tensor; ``"True"``: always."""
    return f"t{tensor.index} is not None" if tensor.nullable else "True"


def _there(plan: LaunchPlan, source: Source) -> str:
    """Return the condition under which there is a number at a place at all; ``"True"``: always."""
    return "True" if source.kind == "scalar" else presence(plan.tensors[source.slot])


def _live(plan: LaunchPlan, source: Source) -> list[str]:
    """Return the conditions under which the number at a place means anything, beside being there."""
    if source.kind != "stride":
        return []
    return [f"d{source.slot}_{source.axis} > 1", *live_variables(plan, source)]


def live_variables(plan: LaunchPlan, source: Source) -> list[str]:
    """Return the variables that decide whether the number at a place means anything."""
    if source.kind != "stride":
        return []
    return [f"d{source.slot}_{axis}" for axis in range(len(plan.tensors[source.slot].shape))]


def emit_binding(out: SourceWriter, plan: LaunchPlan, binding: Binding) -> None:
    """Write the lines that give one symbol its value, and check its bounds."""
    variable = slot_name(plan, binding.slot)
    if binding.candidates:
        out.line(f"{variable} = {_choice(plan, binding, lambda source: place_variable(plan, source))}")
    held = source_range(plan, binding)
    wrong = []
    if binding.min > held[0] or binding.max < held[1]:
        wrong.append(f"not {binding.min} <= {variable} <= {binding.max}")
    if binding.multiple_of > 1:
        wrong.append(f"{variable} % {binding.multiple_of}")
    if wrong:
        blamed = _blamed(plan, binding.source)
        if binding.candidates:
            blamed = f"*({_choice(plan, binding, lambda source: f'({_blamed(plan, source)})')})"
        allowed = python_string(allowed_values(binding, held))
        refuse(out, " or ".join(wrong), f"symbol_error({blamed}, {variable}, {allowed})")


def _blamed(plan: LaunchPlan, source: Source) -> str:
    return f"{python_string(argument_name(plan, source))}, {python_string(place_words(source))}"


def _choice(plan: LaunchPlan, binding: Binding, text_of: Callable[[Source], str]) -> str:
    """Return the text of the first live candidate, else of the first that is there, else of an error."""
    conditioned = [(source, [_there(plan, source), *_live(plan, source)]) for source in binding.candidates]
    conditioned += [(source, [_there(plan, source)]) for source in binding.candidates]
    text = ""
    for source, conditions in conditioned:
        needed = [condition for condition in conditions if condition != "True"]
        if not needed:
            return text + text_of(source)
        text += f"{text_of(source)} if {' and '.join(needed)} else "
    places = python_tuple([python_string(mention(plan, source)) for source in binding.candidates])
    return f"{text}unbound({python_string(binding.symbol)}, {places})"


def emit_check(
    out: SourceWriter, plan: LaunchPlan, check: ValueCheck | ConditionCheck, printer: ExprPrinter
) -> None:
    """Write the lines of one check."""
    if isinstance(check, ConditionCheck):
        refuse(
            out, f"not {printer.text(check.condition)}", f"condition_error({python_string(check.message)})"
        )
        return
    with when(out, _there(plan, check.source)):
        _emit_value_check(out, plan, check, printer)


def _emit_value_check(out: SourceWriter, plan: LaunchPlan, check: ValueCheck, printer: ExprPrinter) -> None:
    source = check.source
    variable, name = place_variable(plan, source), python_string(argument_name(plan, source))
    out.line(f"want = {printer.text(check.expected)}")
    text = python_string(author_text(plan, check))
    error = f"value_error({name}, {variable}, want, {text})"
    if source.kind != "scalar":
        word = "extent" if source.kind == "shape" else "stride"
        error = f"{word}_error({name}, {source.axis}, {variable}, want, {text})"
    refuse(out, " and ".join([f"{variable} != want", *_live(plan, source)]), error)
