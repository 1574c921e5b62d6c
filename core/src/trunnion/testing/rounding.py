"""The oracle's own scalar encoding: bytes from exact fractions, with neither ``struct`` nor an array library."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from trunnion.testing.arithmetic import integer_range

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FORMATS", "SIZES", "OutOfRangeError", "encode_float", "encode_integer", "is_nan"]

FORMATS: Mapping[str, tuple[int, int]] = {
    "float16": (5, 10),
    "bfloat16": (8, 7),
    "float32": (8, 23),
    "float64": (11, 52),
}
"""Bits of the exponent and of the fraction (IEEE 754-2019, table 3.5; bfloat16 is a truncated binary32)."""

SIZES: Mapping[str, int] = {
    "bool": 1,
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{name: (1 + sum(widths)) // 8 for name, widths in FORMATS.items()},
}
"""Bytes of each type that travels as a scalar."""


class OutOfRangeError(ArithmeticError):
    """A type cannot hold a value."""


def encode_integer(value: int, name: str) -> bytes:
    """Return an integer, or a truth value, in the bytes of type ``name``, least first.

    Raises
    ------
    OutOfRangeError
        If the type cannot hold it.
    """
    least, greatest = (0, 1) if name == "bool" else integer_range(name)
    if not least <= value <= greatest:
        raise OutOfRangeError(f"{value} does not fit {name}")
    size = SIZES[name]
    return (int(value) % (1 << 8 * size)).to_bytes(size, "little")


def encode_float(value: float, name: str) -> bytes:
    """Return a double, rounded once to the nearest value of type ``name`` (ties to even), least byte first.

    Raises
    ------
    OutOfRangeError
        If a finite value would become infinite.
    ValueError
        If the value is not a number: no single pattern stands for that.
    """
    exponent_bits, fraction_bits = FORMATS[name]
    if math.isnan(value):
        raise ValueError("a NaN has no single encoding")
    infinity = (2**exponent_bits - 1) << fraction_bits
    magnitude = (
        infinity if math.isinf(value) else _magnitude(Fraction(abs(value)), exponent_bits, fraction_bits)
    )
    if magnitude >= infinity and not math.isinf(value):
        raise OutOfRangeError(f"{value!r} does not fit {name}")
    sign = 1 if math.copysign(1.0, value) < 0 else 0
    return (magnitude | sign << (exponent_bits + fraction_bits)).to_bytes(SIZES[name], "little")


def _magnitude(exact: Fraction, exponent_bits: int, fraction_bits: int) -> int:
    """Return the code of a non-negative number: the count of representable numbers below it."""
    if exact == 0:
        return 0
    bias = (1 << (exponent_bits - 1)) - 1
    exponent: int = exact.numerator.bit_length() - exact.denominator.bit_length()
    if _power(exponent) > exact:
        exponent -= 1
    exponent = max(exponent, 1 - bias)  # below lie the subnormal numbers, which share one exponent
    steps = round(exact / _power(exponent - fraction_bits))  # a Fraction rounds halves to even
    return steps + (exponent + bias - 1) * (1 << fraction_bits)


def _power(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def is_nan(data: bytes, name: str) -> bool:
    """Whether bytes are one of the patterns of type ``name`` that are not a number."""
    exponent_bits, fraction_bits = FORMATS[name]
    code = int.from_bytes(data, "little") & ((1 << (exponent_bits + fraction_bits)) - 1)
    return len(data) == SIZES[name] and code > (2**exponent_bits - 1) << fraction_bits
