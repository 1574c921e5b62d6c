"""CUTLASS's ``FastDivmod``: a division by a number that the call decides becomes a multiplication and a shift."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from trunnion import const, eq, gt, select, struct

if TYPE_CHECKING:
    from trunnion import Expr
    from trunnion.model.struct import Struct


def fast_divmod(divisor: Expr, bits: int = 31) -> Struct:
    """Return the three numbers with which an int is divided by one from 1 to ``2 ** bits``, ``bits`` at most 31."""
    rounded_up, one = _log2(divisor, bits), eq(divisor, 1)
    return struct(
        ("divisor", divisor.cast("int32")),
        ("multiplier", select(one, 0, _multiplier(divisor, rounded_up)).cast("uint32")),
        ("shift_right", select(one, 0, rounded_up - 1).cast("uint32")),
    )


def fast_divmod_shifted(divisor: Expr, power: Expr, bits: int = 31) -> Struct:
    """Return the same for ``divisor << power``, with a power of at least 1: it counts for the shift alone."""
    rounded_up = _log2(divisor, bits)
    return struct(
        ("divisor", (divisor << power).cast("int32")),
        ("multiplier", _multiplier(divisor, rounded_up).cast("uint32")),
        ("shift_right", (rounded_up + power - 1).cast("uint32")),
    )


def fast_divmod_by(divisor: int) -> Struct:
    """Return the same for a divisor that no call decides."""
    power = (divisor - 1).bit_length()
    multiplier = -(-(1 << (31 + power)) // divisor)
    numbers = (multiplier, power - 1) if divisor > 1 else (0, 0)
    names = ("multiplier", "shift_right")
    fields = ((name, const(number, "uint32")) for name, number in zip(names, numbers, strict=True))
    return struct(("divisor", const(divisor, "int32")), *fields)


def _log2(divisor: Expr, bits: int) -> Expr:
    """Return the least power of two that is no less."""
    return reduce(add, (gt(divisor, 1 << power) for power in range(bits)))


def _multiplier(divisor: Expr, rounded_up: Expr) -> Expr:
    return ((1 << (rounded_up + 31)) + divisor - 1) // divisor
