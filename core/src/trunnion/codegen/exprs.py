"""Expressions over slots, as text of a host language.

One printer for all languages: a language is a table. What interval analysis could not prove is printed as a call of a
checked operation, which is given the author's own text of what it computes, for the error; the rest is plain
arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from trunnion.codegen.literals import python_string
from trunnion.model.expr import Binary, Cast, Const, Expr, Select, Slot
from trunnion.model.expr_text import brief_expr
from trunnion.model.interval import SHIFTS
from trunnion.model.op import Op

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["PYTHON", "ExprLanguage", "ExprPrinter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExprLanguage:
    """How one host language spells arithmetic; operands arrive printed and in parentheses where needed.

    What can be an error has a ``{text}``, too: a literal that names the expression.
    """

    operations: Mapping[Op, str]
    """A format of ``{a}`` and ``{b}`` for each operation, with floor semantics."""

    ordered: Mapping[Op, str]
    """The same for operands both of which may be an error: the left one is computed first."""

    checked: Mapping[Op, str]
    """A format of ``{a}``, ``{b}``, ``{text}`` and ``{fallback}`` for each operation: the value if it fits 64 signed
    bits, else an error; the left operand is computed first."""

    right: Mapping[Op, str]
    """A format of ``{a}``, ``{text}`` (of the operation) and ``{fallback}`` for operations that do not take every right
    operand: that operand if it is no divisor of 0, and no shift by less than 0 or more than 63; else an error."""

    whole: Mapping[Op, str]
    """A format of ``{a}``, ``{b}`` and ``{text}`` for operations that check the right operand themselves, and the
    value if it may be too large. The others' right operand is wrapped by `right`."""

    select: str
    """A format of ``{c}``, ``{a}`` and ``{b}``; the one not chosen is not computed."""

    cast: str
    """A format of ``{a}``, ``{low}``, ``{high}``, ``{name}``, ``{text}`` (of the operand) and ``{fallback}``: the value
    if it is in range, else an error."""

    literal: Callable[[int], str]
    """Spells a 64-bit number as an operand."""

    string: Callable[[str], str]
    """Spells a text as a string literal (`trunnion.codegen.literals`)."""


def _python_literal(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"


# CPython takes 200 brackets within each other, and expressions may be 100 deep: each level has one, or two in what can
# fail. A sign binds tighter than every operator here.
_INFIX: Mapping[Op, str] = MappingProxyType(
    {
        Op.ADD: "{a} + {b}",
        Op.SUB: "{a} - {b}",
        Op.MUL: "{a} * {b}",
        Op.FLOORDIV: "{a} // {b}",
        Op.MOD: "{a} % {b}",
        Op.SHL: "{a} << {b}",
        Op.SHR: "{a} >> {b}",
        Op.AND: "{a} & {b}",
        Op.OR: "{a} | {b}",
        Op.XOR: "{a} ^ {b}",
    }
)
_PYTHON_OPERATIONS: Mapping[Op, str] = MappingProxyType(
    {
        **{op: f"({form})" for op, form in _INFIX.items()},
        Op.CEILDIV: "-(-{a} // {b})",
        Op.MIN: "min({a}, {b})",
        Op.MAX: "max({a}, {b})",
        Op.GCD: "gcd({a}, {b})",
        Op.EQ: "+({a} == {b})",
        Op.NE: "+({a} != {b})",
        Op.LT: "+({a} < {b})",
        Op.LE: "+({a} <= {b})",
        Op.GT: "+({a} > {b})",
        Op.GE: "+({a} >= {b})",
    }
)
_PYTHON_WHOLE: Mapping[Op, str] = MappingProxyType(
    {
        Op.FLOORDIV: "quotient({a}, {b}, {text})",
        Op.MOD: "remainder({a}, {b}, {text})",
        Op.CEILDIV: "ceiling({a}, {b}, {text})",
        Op.SHL: "shifted_left({a}, {b}, {text})",
        Op.SHR: "shifted_right({a}, {b}, {text})",
    }
)

PYTHON = ExprLanguage(
    operations=_PYTHON_OPERATIONS,
    ordered=_PYTHON_OPERATIONS,
    checked={
        **{op: f"fits({form}, {{text}})" for op, form in _PYTHON_OPERATIONS.items()},
        **{op: f"fits({form}, {{text}})" for op, form in _INFIX.items()},
        **_PYTHON_WHOLE,
    },
    right={},
    whole=_PYTHON_WHOLE,
    select="({a} if {c} else {b})",
    cast='in_range({a}, {low}, {high}, "{name}", {text})',
    literal=_python_literal,
    string=python_string,
)
"""Python, with the checked operations of `trunnion.launcher.refusals`.

A comparison gives a bool, which tensor libraries refuse for an extent; its plus sign makes it an int.
"""


@dataclass(frozen=True, slots=True)
class _Operand:
    """The text of an operand."""

    text: str
    fails: bool  # whether it can be an error


class ExprPrinter:
    """Print expressions of one plan.

    A checked operation of a language without exceptions goes on after an error: with its fallback, a value within the
    bounds that the rest was proven for.

    Parameters
    ----------
    language
        The table of the host language.
    slot
        Gives the text of a value slot: an identifier.
    names
        What slots are called in messages: the names of their symbols, by index.
    """

    def __init__(self, language: ExprLanguage, slot: Callable[[int], str], names: Sequence[str]) -> None:
        self._language = language
        self._slot = slot
        self._names = names

    def text(self, expr: Expr, place: str = "") -> str:
        """Return the text of an expression over slots; a cast that does not hold says the place behind its operand."""
        return (self._cast(expr, place) if isinstance(expr, Cast) else self._print(expr)).text

    def may_fail(self, expr: Expr) -> bool:
        """Whether the text of an expression holds a checked operation."""
        return self._print(expr).fails

    def _print(self, expr: Expr) -> _Operand:
        match expr:
            case Const(value):
                return _Operand(self._language.literal(value), fails=False)
            case Slot(index):
                return _Operand(self._slot(index), fails=False)
            case Binary():
                return self._binary(expr)
            case Select():
                return self._select(expr)
            case Cast():
                return self._cast(expr)
        raise TypeError(f"a plan's expression holds a {type(expr).__name__}")

    def _binary(self, expr: Binary) -> _Operand:
        left, right = self._print(expr.left), self._print(expr.right)
        refusable = expr.may_divide_by_zero or expr.may_shift_too_far
        if refusable and expr.op in self._language.whole:
            form = self._language.whole[expr.op]
            return _Operand(form.format(a=left.text, b=right.text, text=self._told(expr)), fails=True)
        if refusable:
            right = self._right(right, expr)
        if expr.may_overflow:
            form = self._language.checked[expr.op]
        elif left.fails and right.fails:
            form = self._language.ordered[expr.op]
        else:
            form = self._language.operations[expr.op]
        told = self._told(expr) if expr.may_overflow else ""
        text = form.format(a=left.text, b=right.text, text=told, fallback=self._fallback(expr))
        return _Operand(text, fails=expr.may_overflow or left.fails or right.fails)

    def _right(self, operand: _Operand, operation: Binary) -> _Operand:
        bounds = operation.right.bounds
        allowed = bounds.clipped(SHIFTS).low if operation.op.shifts else 1 if 1 in bounds else -1
        text = self._language.right[operation.op].format(
            a=operand.text, text=self._told(operation), fallback=self._language.literal(allowed)
        )
        return _Operand(text, fails=True)

    def _select(self, expr: Select) -> _Operand:
        condition, then, otherwise = map(self._print, (expr.condition, expr.then, expr.otherwise))
        text = self._language.select.format(c=condition.text, a=then.text, b=otherwise.text)
        return _Operand(text, fails=condition.fails or then.fails or otherwise.fails)

    def _cast(self, expr: Cast, place: str = "") -> _Operand:
        operand = self._print(expr.operand)
        if not expr.may_be_out_of_range:
            return operand
        low, high = expr.to.integer_range
        text = self._language.cast.format(
            a=operand.text,
            low=low,
            high=high,
            name=expr.to.name,
            text=self._told(expr.operand, place),
            fallback=self._fallback(expr),
        )
        return _Operand(text, fails=True)

    def _told(self, expr: Expr, place: str = "") -> str:
        """Return a literal of the author's text."""
        return self._language.string(brief_expr(expr, self._names) + place)

    def _fallback(self, expr: Expr) -> str:
        return self._language.literal(expr.bounds.low)
