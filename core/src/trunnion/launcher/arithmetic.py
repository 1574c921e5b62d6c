"""Checked arithmetic: what a launcher computes with where interval analysis could not prove that a value fits."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from trunnion.model.expr import Binary, Cast, Const, Select, Slot
from trunnion.model.expr_text import brief_expr
from trunnion.model.interval import INT64_MAX, INT64_MIN, SHIFTS
from trunnion.model.plan import refusals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.expr import Expr

__all__ = [
    "ceiling", "divisor", "evaluate", "fits", "gcd", "in_range", "quotient", "remainder", "shift_count", "shifted_left",
    "shifted_right",
]  # fmt: skip


def fits(value: int, text: str) -> int:
    """Return ``value``, that of the expression ``text``, if it fits 64 signed bits.

    Raises
    ------
    ExprError
        If it does not.
    """
    if INT64_MIN <= value <= INT64_MAX:
        return value
    raise refusals.UNFIT(value, text)


def divisor(value: int, text: str) -> int:
    """Return ``value``, by which the expression ``text`` divides, if it is not 0.

    Raises
    ------
    ExprError
        If it is.
    """
    if value:
        return value
    raise refusals.DIVISION(text)


def shift_count(value: int, text: str) -> int:
    """Return ``value``, by how many bits the expression ``text`` shifts, if it is 0 to 63.

    Raises
    ------
    ExprError
        If it is less or more.
    """
    if value in SHIFTS:
        return value
    raise refusals.SHIFT(value, text)


def quotient(left: int, right: int, text: str) -> int:
    """Return the floor of a quotient; errors are those of `divisor` and `fits`."""
    return fits(left // divisor(right, text), text)


def remainder(left: int, right: int, text: str) -> int:
    """Return what floor division leaves; errors are those of `divisor`."""
    return left % divisor(right, text)


def ceiling(left: int, right: int, text: str) -> int:
    """Return the ceiling of a quotient; errors are those of `divisor` and `fits`."""
    return fits(-(-left // divisor(right, text)), text)


def shifted_left(left: int, right: int, text: str) -> int:
    """Return a value times a power of two; errors are those of `shift_count` and `fits`."""
    return fits(left << shift_count(right, text), text)


def shifted_right(left: int, right: int, text: str) -> int:
    """Return the floor of a value divided by a power of two; errors are those of `shift_count`."""
    return left >> shift_count(right, text)


def in_range(value: int, low: int, high: int, name: str, text: str) -> int:
    """Return ``value``, that of the expression ``text``, if the integer type ``name`` can hold it.

    Raises
    ------
    ExprError
        If it cannot.
    """
    if low <= value <= high:
        return value
    raise refusals.CAST(value, low, high, name, text)


def evaluate(expr: Expr, values: Sequence[int], names: Sequence[str], place: str = "") -> int:
    """Return the value of a plan's expression: the left operand first, of a choice only what is chosen.

    Parameters
    ----------
    expr
        The expression, over slots.
    values
        The slots' values.
    names
        What the slots are called, for messages.
    place
        What stands behind the operand of a last cast that does not hold.

    Raises
    ------
    ExprError
        If it divides by zero, shifts by less than 0 or more than 63 bits, or a value does not fit.
    """
    match expr:
        case Const(value):
            return value
        case Slot(index):
            return values[index]
        case Select(condition, then, otherwise):
            return evaluate(then if evaluate(condition, values, names) else otherwise, values, names)
        case Cast(operand, to):
            value = evaluate(operand, values, names)
            return in_range(value, *to.integer_range, to.name, brief_expr(operand, names) + place)
        case Binary(op, left, right):
            a, b = evaluate(left, values, names), evaluate(right, values, names)
            text = brief_expr(expr, names)
            if not op.admits(b):
                b = (shift_count if op.shifts else divisor)(b, text)
            return fits(op.compute(a, b), text)
    raise TypeError(f"a plan's expression holds a {type(expr).__name__}")
