"""The binary operations of expressions: spelling, value and bounds of each, in one place."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from trunnion.model.interval import Interval

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
    CEILDIV = "ceildiv"
    MIN = "minimum"
    MAX = "maximum"
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

    def compute(self, left: int, right: int) -> int:
        """Return the exact value, of any size.

        Raises
        ------
        ZeroDivisionError
            If the operation divides and ``right`` is 0.
        """
        return _COMPUTE[self](left, right)

    def bounds(self, left: Interval, right: Interval) -> Interval:
        """Return bounds of the exact value, over all operands within the given ones."""
        rule = _BOUNDS.get(self)
        return rule(left, right) if rule else Interval(0, 1)


_INFIX = frozenset({Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.MOD})
_DIVIDES = frozenset({Op.FLOORDIV, Op.MOD, Op.CEILDIV})

_BOUNDS: Mapping[Op, Callable[[Interval, Interval], Interval]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.FLOORDIV: lambda a, b: a // b,
    Op.MOD: lambda a, b: a % b,
    Op.CEILDIV: lambda a, b: a.ceildiv(b),
    Op.MIN: lambda a, b: Interval(min(a.low, b.low), min(a.high, b.high)),
    Op.MAX: lambda a, b: Interval(max(a.low, b.low), max(a.high, b.high)),
}

_COMPUTE: Mapping[Op, Callable[[int, int], int]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.FLOORDIV: lambda a, b: a // b,
    Op.MOD: lambda a, b: a % b,
    Op.CEILDIV: lambda a, b: -(-a // b),
    Op.MIN: min,
    Op.MAX: max,
    Op.EQ: lambda a, b: int(a == b),
    Op.NE: lambda a, b: int(a != b),
    Op.LT: lambda a, b: int(a < b),
    Op.LE: lambda a, b: int(a <= b),
    Op.GT: lambda a, b: int(a > b),
    Op.GE: lambda a, b: int(a >= b),
}
