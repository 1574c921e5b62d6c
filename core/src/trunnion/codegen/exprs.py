"""Expressions over slots, as text of a host language.

One printer for all languages: a language is a table. What interval analysis could not prove is printed as a call of a
checked operation; the rest is plain arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.model.expr import Binary, Cast, Const, Expr, Select, Slot
from trunnion.model.op import Op

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trunnion.model.dtypes import DType

__all__ = ["PYTHON", "ExprLanguage", "ExprPrinter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExprLanguage:
    """How one host language spells arithmetic; operands arrive printed and in parentheses where needed."""

    operations: Mapping[Op, str]
    """A format of ``{a}`` and ``{b}`` for each operation, with floor semantics."""

    fits: str
    """A format of ``{a}``: the value if it fits 64 signed bits, else an error."""

    divisor: str
    """A format of ``{a}``: the value if it is not 0, else an error."""

    select: str
    """A format of ``{c}``, ``{a}`` and ``{b}``; the one not chosen is not computed."""

    cast: str
    """A format of ``{a}``, ``{low}``, ``{high}`` and ``{name}``: the value if it is in range, else an error."""


PYTHON = ExprLanguage(
    operations={
        Op.ADD: "({a} + {b})",
        Op.SUB: "({a} - {b})",
        Op.MUL: "({a} * {b})",
        Op.FLOORDIV: "({a} // {b})",
        Op.MOD: "({a} % {b})",
        Op.CEILDIV: "(-(-{a} // {b}))",
        Op.MIN: "min({a}, {b})",
        Op.MAX: "max({a}, {b})",
        Op.EQ: "(+({a} == {b}))",
        Op.NE: "(+({a} != {b}))",
        Op.LT: "(+({a} < {b}))",
        Op.LE: "(+({a} <= {b}))",
        Op.GT: "(+({a} > {b}))",
        Op.GE: "(+({a} >= {b}))",
    },
    fits="fits({a})",
    divisor="divisor({a})",
    select="({a} if {c} else {b})",
    cast='in_range({a}, {low}, {high}, "{name}")',
)
"""Python, with the checked operations of `trunnion.codegen.python.support`.

A comparison gives a bool, which tensor libraries refuse for an extent; its plus sign makes it an int.
"""


class ExprPrinter:
    """Print expressions of one plan.

    Parameters
    ----------
    language
        The table of the host language.
    slot
        Gives the text of a value slot: an identifier.
    """

    def __init__(self, language: ExprLanguage, slot: Callable[[int], str]) -> None:
        self._language = language
        self._slot = slot

    def text(self, expr: Expr) -> str:
        """Return the text of an expression over slots."""
        match expr:
            case Const(value):
                return str(value) if value >= 0 else f"({value})"
            case Slot(index):
                return self._slot(index)
            case Binary():
                return self._binary(expr)
            case Select(condition, then, otherwise):
                parts = {"c": self.text(condition), "a": self.text(then), "b": self.text(otherwise)}
                return self._language.select.format(**parts)
            case Cast(operand, to):
                return self._cast(self.text(operand), to) if expr.may_be_out_of_range else self.text(operand)
        raise TypeError(f"a plan's expression holds a {type(expr).__name__}")

    def _binary(self, expr: Binary) -> str:
        right = self.text(expr.right)
        if expr.may_divide_by_zero:
            right = self._language.divisor.format(a=right)
        text = self._language.operations[expr.op].format(a=self.text(expr.left), b=right)
        return self._language.fits.format(a=text) if expr.may_overflow else text

    def _cast(self, operand: str, to: DType) -> str:
        low, high = to.integer_range
        return self._language.cast.format(a=operand, low=low, high=high, name=to.name)
