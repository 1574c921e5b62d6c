"""The oracle's own arithmetic: exact Python integers, checked against 64 bits at every node.

Written against the words of the design alone; it shares no line with the model's evaluation or bounds, so that a
mistake there cannot hide itself here.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from trunnion.model.expr import Binary, Cast, Const, Expr, Select, Symbol
from trunnion.model.facts import Fact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["UncomputableError", "evaluate", "integer_range"]

_LEAST, _GREATEST = -(2**63), 2**63 - 1


class UncomputableError(ArithmeticError):
    """An expression has no value in this call: an overflow, division by zero, a shift too far, a cast out of range."""


def integer_range(name: str) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type, from its name alone.

    Parameters
    ----------
    name
        For example ``"uint16"``.
    """
    bits = int(name.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _floor_divide(left: int, right: int) -> int:
    if right == 0:
        raise UncomputableError("division by zero")
    quotient = abs(left) // abs(right)
    if (left < 0) == (right < 0):
        return quotient
    return -quotient - (1 if abs(left) % abs(right) else 0)


def _power(count: int) -> int:
    if not 0 <= count < 64:  # noqa: PLR2004 - the width of a value
        raise UncomputableError(f"a shift by {count}")
    return int(2**count)


def _euclid(left: int, right: int) -> int:
    while right:
        left, right = right, left - right * _floor_divide(left, right)
    return abs(left)


def _bitwise(rule: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """Return an operation on the 64 bits of two's complement, one by one; the last one counts negative."""

    def combined(left: int, right: int) -> int:
        bits = [rule(left // 2**place % 2, right // 2**place % 2) for place in range(64)]
        return sum(bit << place for place, bit in enumerate(bits)) - (bits[-1] << 64)

    return combined


_RULES: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": _floor_divide,
    "%": lambda a, b: a - b * _floor_divide(a, b),
    "ceildiv": lambda a, b: -_floor_divide(-a, b),
    "<<": lambda a, b: a * _power(b),
    ">>": lambda a, b: _floor_divide(a, _power(b)),
    "&": _bitwise(min),
    "|": _bitwise(max),
    "^": _bitwise(lambda a, b: (a + b) % 2),
    "gcd": _euclid,
    "minimum": min,
    "maximum": max,
    "eq": lambda a, b: 1 if a == b else 0,
    "ne": lambda a, b: 0 if a == b else 1,
    "lt": lambda a, b: 1 if a < b else 0,
    "le": lambda a, b: 1 if a <= b else 0,
    "gt": lambda a, b: 0 if a <= b else 1,
    "ge": lambda a, b: 0 if a < b else 1,
}


def evaluate(expr: Expr, values: Mapping[str, int], fact: Callable[[Fact], int] | None = None) -> int:
    """Return an expression's value.

    Parameters
    ----------
    expr
        An expression over symbols.
    values
        Each symbol's value, by its name.
    fact
        Returns the value of a fact of the device; None: there is none in the expression.

    Raises
    ------
    UncomputableError
        If some node that is computed has no 64-bit value, divides by zero, shifts by no number of 0 to 63, or casts out
        of range. The branch of a selection that is not chosen is not computed.
    KeyError
        If a symbol has no value.
    """
    match expr:
        case Const():
            return expr.value
        case Symbol():
            return values[expr.name]
        case Fact() if fact is not None:
            return fact(expr)
        case Select():
            chosen = expr.then if evaluate(expr.condition, values, fact) != 0 else expr.otherwise
            return evaluate(chosen, values, fact)
        case Cast():
            value = evaluate(expr.operand, values, fact)
            least, greatest = integer_range(expr.to.name)
            if not least <= value <= greatest:
                raise UncomputableError(f"{value} does not fit {expr.to.name}")
            return value
        case Binary():
            left = evaluate(expr.left, values, fact)
            right = evaluate(expr.right, values, fact)
            value = _RULES[expr.op.value](left, right)
            if not _LEAST <= value <= _GREATEST:
                raise UncomputableError(f"{value} does not fit 64 signed bits")
            return value
    raise TypeError(f"a program cannot hold {type(expr).__name__}")
