"""Interval arithmetic: which values an expression can take, so that only real risks are checked at each call.

The rules are the textbook ones (Moore, *Interval Analysis*, 1966) for floor division and its remainder. Those of the
remainder, the common divisor and single bits are coarse: a bound may be a value that is never reached. Bounds are
Python integers, so that an interval can say by how far a 64-bit value would overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["INT64", "INT64_MAX", "INT64_MIN", "SHIFTS", "Interval"]

INT64_MIN = -(1 << 63)
INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from `low` to `high`, both included."""

    low: int
    """The least value."""

    high: int
    """The greatest value."""

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"

    def within(self, other: Interval) -> bool:
        """Whether every value of this interval lies in ``other``."""
        return other.low <= self.low and self.high <= other.high

    def clipped(self, other: Interval) -> Interval:
        """Return the part that lies in ``other``; the nearest single value if there is none."""
        low = min(max(self.low, other.low), other.high)
        return Interval(low, max(low, min(self.high, other.high)))

    def joined(self, other: Interval) -> Interval:
        """Return the least interval that holds both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Interval) -> Interval:
        return _hull(a * b for a in (self.low, self.high) for b in (other.low, other.high))

    def __floordiv__(self, other: Interval) -> Interval:
        divisors = [part for part in (_negative(other), _positive(other)) if part is not None]
        if not divisors:
            return Interval(0, 0)
        return _hull(
            a // b for a in (self.low, self.high) for part in divisors for b in (part.low, part.high)
        )

    def __mod__(self, other: Interval) -> Interval:
        low = min(0, other.low + 1) if other.low < 0 else 0
        high = max(0, other.high - 1) if other.high > 0 else 0
        if self.low >= 0 and other.low > 0:
            high = min(high, self.high)
        return Interval(low, high)

    def __lshift__(self, other: Interval) -> Interval:
        factors = _powers(other)
        return self * factors if factors else Interval(0, 0)

    def __rshift__(self, other: Interval) -> Interval:
        divisors = _powers(other)
        return self // divisors if divisors else Interval(0, 0)

    def __invert__(self) -> Interval:
        return Interval(~self.high, ~self.low)

    def __and__(self, other: Interval) -> Interval:
        parts = (self, other)
        # A value without a sign bit takes away from no other than itself; two with one keep it.
        tops = [part.high for part in parts if part.low >= 0]
        if tops:
            return Interval(0, min(tops))
        highs = self.high, other.high
        return Interval(_words(*parts).low, max(highs) if max(highs) >= 0 else min(highs))

    def __or__(self, other: Interval) -> Interval:
        return ~(~self & ~other)

    def __xor__(self, other: Interval) -> Interval:
        words = _words(self, other)
        signs = (
            {value < 0 for value in (self.low, self.high)},
            {value < 0 for value in (other.low, other.high)},
        )
        if len(signs[0]) == len(signs[1]) == 1:
            return Interval(0, words.high) if signs[0] == signs[1] else Interval(words.low, -1)
        return words

    def gcd(self, other: Interval) -> Interval:
        """Return bounds of the greatest common divisor; that of 0 and a number is the number's magnitude."""
        sizes = [max(abs(part.low), abs(part.high)) for part in (self, other)]
        if 0 in self and 0 in other:
            return Interval(0, max(sizes))
        if 0 in self:
            return Interval(1, sizes[1])
        return Interval(1, sizes[0] if 0 in other else min(sizes))

    def ceildiv(self, other: Interval) -> Interval:
        """Return the bounds of the quotient rounded up."""
        floor = Interval(-self.high, -self.low) // other
        return Interval(-floor.high, -floor.low)


def _powers(counts: Interval) -> Interval | None:
    """Return 2 to the power of each count of bits that a shift may have; None if there is none."""
    low, high = max(counts.low, SHIFTS.low), min(counts.high, SHIFTS.high)
    return Interval(1 << low, 1 << high) if low <= high else None


def _words(*parts: Interval) -> Interval:
    """Return all that the fewest bits can say in which each of ``parts`` can be written, a sign bit beside them."""
    bits = max(max(value, ~value).bit_length() for part in parts for value in (part.low, part.high))
    return Interval(-(1 << bits), (1 << bits) - 1)


def _hull(values: Iterable[int]) -> Interval:
    seen = list(values)
    return Interval(min(seen), max(seen))


def _negative(interval: Interval) -> Interval | None:
    return Interval(interval.low, min(interval.high, -1)) if interval.low < 0 else None


def _positive(interval: Interval) -> Interval | None:
    return Interval(max(interval.low, 1), interval.high) if interval.high > 0 else None


INT64 = Interval(INT64_MIN, INT64_MAX)
"""What a 64-bit signed integer can hold."""

SHIFTS = Interval(0, 63)
"""By how many bits a shift may move a value."""
