"""The binary operations of expressions: spelling, value and bounds of each, in one place."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING

from trunnion.model.interval import SHIFTS, Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Op"]


class Op(enum.StrEnum):
    """A binary operation; the value is its spelling in text."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    FLOORDIV = "//"
    MOD = "%"
    SHL = "<<"
    SHR = ">>"
    AND = "&"
    OR = "|"
    XOR = "^"
    CEILDIV = "ceildiv"
    MIN = "minimum"
    MAX = "maximum"
    GCD = "gcd"
    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"

    @property
    def is_infix(self) -> bool:
        """Whether the operation is written between its operands."""
        return self in _INFIX

    @property
    def divides(self) -> bool:
        """Whether the right operand must not be zero."""
        return self in _DIVIDES

    @property
    def shifts(self) -> bool:
        """Whether the right operand is a number of bits, 0 to 63."""
        return self in _SHIFTS

    def admits(self, right: int) -> bool:
        """Whether the right operand may have this value."""
        return right != 0 if self.divides else not self.shifts or right in SHIFTS

    def compute(self, left: int, right: int) -> int:
        """Return the exact value, of any size.

        Raises
        ------
        ZeroDivisionError
            If the operation divides and ``right`` is 0.
        ValueError
            If the operation shifts and ``right`` is not 0 to 63.
        """
        return _COMPUTE[self](left, right)

    def bounds(self, left: Interval, right: Interval) -> Interval:
        """Return bounds of the exact value, over all operands within the given ones."""
        rule = _BOUNDS.get(self)
        return rule(left, right) if rule else Interval(0, 1)


def _bits(count: int) -> int:
    if count in SHIFTS:
        return count
    raise ValueError(f"got a shift by {count}, expected {SHIFTS}")


_SHIFTS = frozenset({Op.SHL, Op.SHR})
_INFIX = frozenset({Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.MOD, Op.AND, Op.OR, Op.XOR, *_SHIFTS})
_DIVIDES = frozenset({Op.FLOORDIV, Op.MOD, Op.CEILDIV})

_BOUNDS: Mapping[Op, Callable[[Interval, Interval], Interval]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.FLOORDIV: lambda a, b: a // b,
    Op.MOD: lambda a, b: a % b,
    Op.SHL: lambda a, b: a << b,
    Op.SHR: lambda a, b: a >> b,
    Op.AND: lambda a, b: a & b,
    Op.OR: lambda a, b: a | b,
    Op.XOR: lambda a, b: a ^ b,
    Op.CEILDIV: lambda a, b: a.ceildiv(b),
    Op.GCD: lambda a, b: a.gcd(b),
    Op.MIN: lambda a, b: Interval(min(a.low, b.low), min(a.high, b.high)),
    Op.MAX: lambda a, b: Interval(max(a.low, b.low), max(a.high, b.high)),
}

_COMPUTE: Mapping[Op, Callable[[int, int], int]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.FLOORDIV: lambda a, b: a // b,
    Op.MOD: lambda a, b: a % b,
    Op.SHL: lambda a, b: a << _bits(b),
    Op.SHR: lambda a, b: a >> _bits(b),
    Op.AND: lambda a, b: a & b,
    Op.OR: lambda a, b: a | b,
    Op.XOR: lambda a, b: a ^ b,
    Op.CEILDIV: lambda a, b: -(-a // b),
    Op.GCD: math.gcd,
    Op.MIN: min,
    Op.MAX: max,
    Op.EQ: lambda a, b: int(a == b),
    Op.NE: lambda a, b: int(a != b),
    Op.LT: lambda a, b: int(a < b),
    Op.LE: lambda a, b: int(a <= b),
    Op.GT: lambda a, b: int(a > b),
    Op.GE: lambda a, b: int(a >= b),
}
