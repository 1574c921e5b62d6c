"""The oracle's own scalar encoding: bytes from exact fractions, with neither ``struct`` nor an array library."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from trunnion.testing.arithmetic import integer_range

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "COMPLEX",
    "FORMATS",
    "SIZES",
    "Format",
    "OutOfRangeError",
    "encode_float",
    "encode_integer",
    "is_nan",
    "nearest_double",
]


class OutOfRangeError(ArithmeticError):
    """A type cannot hold a value."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a floating-point type spells its values; a code is the bits without the sign."""

    exponent_bits: int
    """Bits of the exponent."""

    fraction_bits: int
    """Bits of the fraction."""

    greatest: int
    """The code of the greatest finite value."""

    bias: int
    """The code of the exponent 0."""

    nans: tuple[int, int]
    """The least and the greatest code that are not a number."""

    infinite: bool = True
    """Whether there are infinities: the code above `greatest`."""

    signed: bool = True
    """Whether there is a sign bit, and with it a zero and subnormal numbers."""

    signed_zero: bool = True
    """Whether 0 has a sign; if not, its pattern is the one NaN."""

    @property
    def sign_bit(self) -> int:
        """The place of the sign bit."""
        return self.exponent_bits + self.fraction_bits


def _ieee(exponent_bits: int, fraction_bits: int) -> Format:
    infinity = (2**exponent_bits - 1) << fraction_bits
    last = (1 << (exponent_bits + fraction_bits)) - 1
    return Format(
        exponent_bits, fraction_bits, infinity - 1, (1 << (exponent_bits - 1)) - 1, (infinity + 1, last)
    )


def _unsigned_zero(exponent_bits: int, fraction_bits: int) -> Format:
    """Return a format of Noune et al., 2022: one NaN, where a negative zero would be, and no infinity."""
    bias = 1 << (exponent_bits - 1)
    return Format(exponent_bits, fraction_bits, 127, bias, (0, -1), infinite=False, signed_zero=False)


FORMATS: Mapping[str, Format] = {
    "float16": _ieee(5, 10),
    "bfloat16": _ieee(8, 7),
    "float32": _ieee(8, 23),
    "float64": _ieee(11, 52),
    "float8_e5m2": _ieee(5, 2),
    "float8_e4m3fn": Format(4, 3, 126, 7, (127, 127), infinite=False),
    "float8_e4m3fnuz": _unsigned_zero(4, 3),
    "float8_e5m2fnuz": _unsigned_zero(5, 2),
    "float8_e8m0fnu": Format(8, 0, 254, 127, (255, 255), infinite=False, signed=False),
}
"""Every float type (IEEE 754-2019, table 3.5; OCP 8-bit floats 1.0; OCP Microscaling 1.0 for the powers of two)."""

COMPLEX: Mapping[str, str] = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
"""The type of the two parts of each complex type."""

SIZES: Mapping[str, int] = {
    "bool": 1,
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{name: (form.sign_bit + form.signed) // 8 for name, form in FORMATS.items()},
    **{name: int(name.removeprefix("complex")) // 8 for name in COMPLEX},
}
"""Bytes of each type that travels as a scalar."""


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
        If the type has nothing near: a finite value would become infinite or exceed the greatest one, an infinity
        where there is none, zero and what is below it where there is no sign.
    ValueError
        If the value is not a number: no single pattern stands for that.
    """
    form = FORMATS[name]
    if math.isnan(value):
        raise ValueError("a NaN has no single encoding")
    negative = math.copysign(1.0, value) < 0
    if math.isinf(value):
        code = form.greatest + 1 if form.infinite else -1
    elif form.signed:
        code = _magnitude(Fraction(abs(value)), form)
    else:
        code = _power_code(Fraction(value), form)
    if code < 0 or (code > form.greatest and not math.isinf(value)) or (negative and not form.signed):
        raise OutOfRangeError(f"{value!r} does not fit {name}")
    sign = negative and (code != 0 or form.signed_zero)
    return (code | sign << form.sign_bit).to_bytes(SIZES[name], "little")


def nearest_double(exact: Fraction) -> float:
    """Return the double nearest to a number, ties to even; infinite from half a unit beyond the greatest one."""
    form = FORMATS["float64"]
    code = _magnitude(abs(exact), form)
    if code > form.greatest:
        return -math.inf if exact < 0 else math.inf
    exponent, fraction = divmod(code, 1 << form.fraction_bits)
    leading = 1 << form.fraction_bits if exponent else 0
    magnitude = math.ldexp(leading + fraction, max(exponent, 1) - form.bias - form.fraction_bits)
    return -magnitude if exact < 0 else magnitude


def _magnitude(exact: Fraction, form: Format) -> int:
    """Return the code of a non-negative number: the count of representable numbers below it."""
    if exact == 0:
        return 0
    exponent = max(
        _exponent(exact), 1 - form.bias
    )  # below lie the subnormal numbers, which share one exponent
    steps = round(exact / _power(exponent - form.fraction_bits))  # a Fraction rounds halves to even
    return steps + (exponent + form.bias - 1) * (1 << form.fraction_bits)


def _power_code(exact: Fraction, form: Format) -> int:
    """Return the code of a power of two near a number; -1 if 0 is as near as the least one."""
    if exact <= _power(-form.bias - 1):
        return -1
    exponent = max(_exponent(exact), -form.bias)
    above = exact >= Fraction(3, 2) * _power(exponent)  # midway, the even significand is the next power's
    return exponent + form.bias + above


def _exponent(exact: Fraction) -> int:
    """Return the greatest exponent whose power of two a positive number is not below."""
    exponent: int = exact.numerator.bit_length() - exact.denominator.bit_length()
    return exponent - 1 if _power(exponent) > exact else exponent


def _power(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def is_nan(data: bytes, name: str) -> bool:
    """Whether bytes are one of the patterns of type ``name`` that are not a number."""
    form = FORMATS[name]
    if len(data) != SIZES[name]:
        return False
    bits = int.from_bytes(data, "little")
    if not form.signed_zero:
        return bits == 1 << form.sign_bit
    code = bits & ((1 << form.sign_bit) - 1)
    return form.nans[0] <= code <= form.nans[1]
