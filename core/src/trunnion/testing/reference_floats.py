"""The oracle's own floating-point arithmetic: exact fractions, rounded to a double once for each operation.

Written against IEEE 754-2019 alone: no operation of this machine's floats is used, so that none of them is trusted. A
double is Python's ``float`` here as a name for its value.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import TYPE_CHECKING

from trunnion.model.float_expr import FloatBinary, FloatConst, IntegerValue, SquareRoot
from trunnion.testing.rounding import nearest_double

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trunnion.model.float_expr import FloatExpr

__all__ = ["evaluate_float"]

_ROOT_BITS = 80
"""Bits of a square root before it is rounded: more than a double's, and one that says whether others follow."""


def _negative(value: float) -> bool:
    return math.copysign(1.0, value) < 0


def _signed(magnitude: float, *, negative: bool) -> float:
    return math.copysign(magnitude, -1.0 if negative else 1.0)


def _sum(left: float, right: float) -> float:
    """Return a sum: infinities of two signs have none, a zero is negative of two such alone (IEEE 754, 6.1, 6.3)."""
    infinite = [one for one in (left, right) if math.isinf(one)]
    if infinite:
        return infinite[0] if len({_negative(one) for one in infinite}) == 1 else math.nan
    exact = Fraction(left) + Fraction(right)
    if exact == 0:
        both = _negative(left) and _negative(right) and left == 0 and right == 0
        return _signed(0.0, negative=both)
    return nearest_double(exact)


def _product(left: float, right: float) -> float:
    negative = _negative(left) != _negative(right)
    if math.isinf(left) or math.isinf(right):
        return math.nan if 0 in (left, right) else _signed(math.inf, negative=negative)
    return _signed(abs(nearest_double(Fraction(left) * Fraction(right))), negative=negative)


def _quotient(left: float, right: float) -> float:
    negative = _negative(left) != _negative(right)
    if math.isinf(left):
        return math.nan if math.isinf(right) else _signed(math.inf, negative=negative)
    if math.isinf(right):
        return _signed(0.0, negative=negative)
    if right == 0:
        return math.nan if left == 0 else _signed(math.inf, negative=negative)
    return _signed(abs(nearest_double(Fraction(left) / Fraction(right))), negative=negative)


def _root(value: float) -> float:
    """Return a square root: that of the integer that the number is times an even power of two, with what it leaves."""
    if value == 0 or math.isnan(value):
        return value
    if _negative(value) or math.isinf(value):
        return math.nan if _negative(value) else value
    exact = Fraction(value)
    half = _ROOT_BITS + exact.denominator.bit_length()  # so that the number times 4**half is whole
    whole = operator.index((exact * 4**half).numerator)
    root = math.isqrt(whole)
    more = int(root * root != whole)
    return nearest_double(Fraction(2 * root + more, 2 * 2**half))


_RULES: Mapping[str, Callable[[float, float], float]] = {
    "+": _sum,
    "-": lambda a, b: _sum(a, -b),
    "*": _product,
    "/": _quotient,
}


def evaluate_float(expr: FloatExpr, integers: Iterator[int]) -> float:
    """Return an expression's value, an infinity or NaN too.

    Parameters
    ----------
    expr
        A floating-point expression over symbols.
    integers
        The values of the integer expressions in it, from left to right.
    """
    match expr:
        case FloatConst():
            return expr.value
        case IntegerValue():
            return nearest_double(Fraction(next(integers)))
        case SquareRoot():
            return _root(evaluate_float(expr.operand, integers))
        case FloatBinary():
            left = evaluate_float(expr.left, integers)
            right = evaluate_float(expr.right, integers)
            if math.isnan(left) or math.isnan(right):
                return math.nan
            return _RULES[expr.op.value](left, right)
    raise TypeError(f"a program cannot hold {type(expr).__name__}")
