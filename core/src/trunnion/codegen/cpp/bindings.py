"""The part of a C++ launcher that reads symbols from a call, and compares every other place with them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from trunnion.codegen.cpp.conditions import both
from trunnion.codegen.cpp.places import place_of, tensor_rule
from trunnion.codegen.cpp.text import MOST_UNROLLED
from trunnion.codegen.literals import cpp_name, cpp_string
from trunnion.model.interval import INT64_MAX, INT64_MIN
from trunnion.model.plan import ConditionCheck, ValueCheck
from trunnion.model.plan.places import allowed_values, author_text, mention, source_range

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.codegen.cpp.places import Place
    from trunnion.codegen.cpp.text import CallText
    from trunnion.model.expr import Expr
    from trunnion.model.plan import Binding, LaunchPlan

__all__ = ["emit_binding", "emit_checks"]


def emit_binding(text: CallText, plan: LaunchPlan, binding: Binding) -> None:
    """Write the lines that give one symbol its value, and check its bounds."""
    place = place_of(plan, binding.source)
    if not binding.candidates:
        _emit_bounds(text, plan, binding, (place.variable, place.argument, place.words))
        return
    variable = text.member("int64_t", f"v{binding.slot}")
    with text.out.block("{", "}"):
        bounded = bool(_conditions(plan, binding, variable))
        if bounded:
            text.line("const Name* blamed = nullptr;")
            text.line('const char* words = "";')
        _emit_choice(text, plan, binding, blamed=bounded)
        _emit_bounds(text, plan, binding, (variable, "*blamed", "words"))


def _emit_choice(text: CallText, plan: LaunchPlan, binding: Binding, *, blamed: bool) -> None:
    """Write the choice of the first live candidate, else of the first that is there, else the error.

    Where the symbol has bounds of its own, what is chosen is remembered for the error.
    """
    places = [place_of(plan, source) for source in binding.candidates]
    branches = [(both(place.there, place.live), place) for place in places]
    branches += [(place.there, place) for place in places]
    for index, (condition, place) in enumerate(branches):
        always = condition == "true"
        opener = "{" if always else f"if ({condition}) {{"
        with text.out.block(opener if index == 0 else f"}} else {opener}"):
            text.line(f"v{binding.slot} = {place.variable};")
            if blamed:
                text.line(f"blamed = &{place.argument};")
                text.line(f"words = {place.words};")
        if always:
            text.line("}")
            return
    with text.out.block("} else {", "}"):
        mentions = [cpp_name(mention(plan, source)) for source in binding.candidates]
        text.line(f"static constexpr Name kPlaces[] = {{{', '.join(mentions)}}};")
        text.line(f"return raise_unbound({cpp_name(binding.symbol)}, kPlaces, {len(mentions)});")


def _emit_bounds(text: CallText, plan: LaunchPlan, binding: Binding, value: tuple[str, str, str]) -> None:
    variable, argument, words = value
    wrong = _conditions(plan, binding, variable)
    if wrong:
        held = least, most = source_range(plan, binding, INT64_MIN)
        shown = _unsigned(variable) if least >= 0 and most > INT64_MAX else variable
        allowed = cpp_string(allowed_values(binding, held))
        raised = f"raise_symbol({argument}, {words}, {shown}, {allowed})"
        text.refuse(" || ".join(wrong), raised)


def _conditions(plan: LaunchPlan, binding: Binding, variable: str) -> list[str]:
    """Return what a symbol's value must not be, as conditions."""
    least, most = source_range(plan, binding, INT64_MIN)
    wrong = []
    if binding.min > least or binding.max < most:
        # A uint64 beyond 63 bits is negative here: beyond every symbol.
        low = max(binding.min, least)
        wrong += [f"{variable} < {low}"] if low > INT64_MIN else []
        wrong += [f"{variable} > {binding.max}"] if binding.max < INT64_MAX else []
    if binding.multiple_of > 1:
        wrong.append(f"{variable} % {binding.multiple_of} != 0")
    return wrong


def _unsigned(variable: str) -> str:
    return f"static_cast<uint64_t>({variable})"


def emit_checks(text: CallText, plan: LaunchPlan, checks: Iterable[ValueCheck | ConditionCheck]) -> None:
    """Write the lines of checks, in their order."""
    for alike, group in groupby(checks, lambda check: _extent(plan, check)):
        run = list(group)
        if alike is None or len(run) <= MOST_UNROLLED:
            for check in run:
                _emit_check(text, plan, check)
        else:
            _emit_extents(text, [check.source.slot for check in run if isinstance(check, ValueCheck)], *alike)


def _extent(plan: LaunchPlan, check: ValueCheck | ConditionCheck) -> tuple[int, Expr, str] | None:
    """Return the dimension of a tensor that is checked, and what it must be; None for any other check."""
    if isinstance(check, ConditionCheck) or check.source.kind != "shape":
        return None
    if plan.tensors[check.source.slot].nullable:
        return None
    return check.source.axis, check.expected, author_text(plan, check)


def _emit_extents(text: CallText, tensors: list[int], axis: int, expected: Expr, author: str) -> None:
    """Write the check that tensors have one extent along one dimension."""
    with text.out.block("{", "}"):
        text.line(f"const int64_t want = {text.expr(expected)};")

        def compared(index: str) -> str:
            got = f"t[{index}]->shape[{axis}]"
            raised = (
                f'raise_unequal({tensor_rule(index)}.name, "extent", {axis}, {got}, want, {cpp_name(author)})'
            )
            return f"if ({got} != want) return {raised};"

        text.each([(index,) for index in tensors], compared)


def _emit_check(text: CallText, plan: LaunchPlan, check: ValueCheck | ConditionCheck) -> None:
    with text.out.block("{", "}"):
        if isinstance(check, ConditionCheck):
            text.line(f"const int64_t holds = {text.expr(check.condition)};")
            text.refuse("holds == 0", f"raise_condition({cpp_name(check.message)})")
            return
        place = place_of(plan, check.source)
        with text.when(place.there):
            _emit_value_check(text, plan, check, place)


def _emit_value_check(text: CallText, plan: LaunchPlan, check: ValueCheck, place: Place) -> None:
    text.line(f"const int64_t want = {text.expr(check.expected)};")
    author = cpp_name(author_text(plan, check))
    wrong = f"{place.variable} != want"
    if check.source.kind == "scalar":
        wide = plan.scalars[check.source.slot].dtype.integer_range[1] > INT64_MAX
        shown = _unsigned(place.variable) if wide else place.variable
        text.refuse(
            f"{place.variable} < 0 || {wrong}" if wide else wrong,
            f"raise_value({place.argument}, {shown}, want, {author})",
        )
        return
    word = "extent" if check.source.kind == "shape" else "stride"
    raised = (
        f'raise_unequal({place.argument}, "{word}", {check.source.axis}, {place.variable}, want, {author})'
    )
    text.refuse(both(wrong, place.live), raised)
