"""Numbers in the bits of their element type: rounded once from the double, to nearest, ties to even.

Sources: IEEE 754-2019 (binary16, 32, 64); OCP 8-bit Floating Point Specification 1.0 (E4M3, E5M2); OCP Microscaling
Formats 1.0 (E8M0); Noune et al., *8-bit Numerical Formats for Deep Neural Networks*, 2022 (the ``fnuz`` variants).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError
from trunnion.messages import describe
from trunnion.model.dtypes import Kind, item_advice
from trunnion.plain import is_exactly

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.model.dtypes import DType

__all__ = [
    "FLOAT_FORMATS",
    "FloatFormat",
    "overflow_limit",
    "part_name",
    "scalar_bytes",
    "scalar_value",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatFormat:
    """A binary floating-point format."""

    exponent_bits: int
    """Bits of the exponent."""

    mantissa_bits: int
    """Bits of the fraction that are stored."""

    bias: int
    """What is added to the exponent."""

    greatest: int
    """The bits of the greatest finite value."""

    nan: int
    """The bits of the NaN that `encode` gives."""

    infinity: int | None
    """The bits of positive infinity; None: the format has none."""

    signed: bool = True
    """Whether there is a sign bit; without one there is no zero either."""

    negative_zero: bool = True
    """Whether zero keeps its sign."""

    def encode(self, value: float) -> int | None:
        """Return the bits of the nearest value; None if the format cannot hold it.

        Parameters
        ----------
        value
            Any double; a finite one that rounds beyond `greatest` cannot be held, nor an infinity where there is
            none, nor a zero or a negative number without a sign bit.
        """
        if math.isnan(value):
            return self.nan
        negative = math.copysign(1.0, value) < 0
        if not self.signed and (negative or value == 0):
            return None
        bits = self.infinity if math.isinf(value) else self._magnitude(abs(value))
        if bits is None:
            return None
        sign = negative and (bits != 0 or self.negative_zero)
        return bits | (int(sign) << (self.exponent_bits + self.mantissa_bits))

    def decode(self, bits: int) -> float:
        """Return the number that a pattern stands for, exactly.

        Parameters
        ----------
        bits
            As many as the format has.
        """
        sign = self.signed and bits >> (self.exponent_bits + self.mantissa_bits)
        magnitude = bits & ((1 << (self.exponent_bits + self.mantissa_bits)) - 1)
        if magnitude == self.infinity:
            number = math.inf
        elif magnitude > self.greatest or (sign and not magnitude and not self.negative_zero):
            return math.nan
        else:
            exponent, fraction = divmod(magnitude, 1 << self.mantissa_bits)
            normal = exponent > 0 or not self.signed
            significand = fraction + (int(normal) << self.mantissa_bits)
            least = 0 if normal else 1
            number = math.ldexp(significand, exponent + least - self.bias - self.mantissa_bits)
        return -number if sign else number

    @property
    def nbytes(self) -> int:
        """Bytes of one number."""
        return (self.exponent_bits + self.mantissa_bits + int(self.signed)) // 8

    def _magnitude(self, value: float) -> int | None:
        fraction, exponent = math.frexp(value)  # value = fraction * 2**exponent, the fraction in [0.5, 1)
        least = 1 - self.bias if self.signed else -self.bias
        scale = max(exponent - 1, least)
        significand = round(math.ldexp(fraction, exponent - scale + self.mantissa_bits))
        hidden = 1 << self.mantissa_bits
        if significand < hidden:
            return significand if self.signed else None
        # A carry out of the significand raises the exponent by itself, because the fraction is 0 then.
        bits = ((scale - least + int(self.signed)) << self.mantissa_bits) + (significand - hidden)
        return bits if bits <= self.greatest else None


def _ieee(exponent_bits: int, mantissa_bits: int) -> FloatFormat:
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    return FloatFormat(
        exponent_bits=exponent_bits,
        mantissa_bits=mantissa_bits,
        bias=(1 << (exponent_bits - 1)) - 1,
        greatest=infinity - 1,
        nan=infinity | (1 << (mantissa_bits - 1)),
        infinity=infinity,
    )


def _fnuz(exponent_bits: int, mantissa_bits: int) -> FloatFormat:
    return FloatFormat(
        exponent_bits=exponent_bits,
        mantissa_bits=mantissa_bits,
        bias=1 << (exponent_bits - 1),
        greatest=0x7F,
        nan=0x80,
        infinity=None,
        negative_zero=False,
    )


_E4M3FN = FloatFormat(exponent_bits=4, mantissa_bits=3, bias=7, greatest=0x7E, nan=0x7F, infinity=None)
_E8M0 = FloatFormat(
    exponent_bits=8, mantissa_bits=0, bias=127, greatest=0xFE, nan=0xFF, infinity=None, signed=False
)

FLOAT_FORMATS: Mapping[str, FloatFormat] = MappingProxyType(
    {
        "float16": _ieee(5, 10),
        "bfloat16": _ieee(8, 7),
        "float32": _ieee(8, 23),
        "float64": _ieee(11, 52),
        "float8_e4m3fn": _E4M3FN,
        "float8_e4m3fnuz": _fnuz(4, 3),
        "float8_e5m2": _ieee(5, 2),
        "float8_e5m2fnuz": _fnuz(5, 2),
        "float8_e8m0fnu": _E8M0,
    }
)
"""The format of every float type that a single number can have, by the type's name."""

_COMPLEX_PART = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def part_name(name: str) -> str:
    """Return the float type of a complex type's parts; of a float type its own name."""
    return _COMPLEX_PART.get(name, name)


@functools.cache
def overflow_limit(name: str) -> float:
    """Return the least magnitude that rounds to infinity in a type, or in the parts of a complex one.

    Infinity: no double does, or the format has 8 bits, of which `FloatFormat.encode` says what it holds.

    Parameters
    ----------
    name
        The type's name.
    """
    form = FLOAT_FORMATS[part_name(name)]
    if form.nbytes == 1:
        return math.inf
    try:
        return math.ldexp(2.0 - 2.0 ** -(form.mantissa_bits + 1), form.bias)  # half a unit above the greatest
    except OverflowError:
        return math.inf


def scalar_bytes(value: object, dtype: DType, field: str) -> bytes:
    """Return a number as one element of ``dtype``, little-endian.

    Parameters
    ----------
    value
        True or False for ``bool``, an int for an integer type, an int or a float for a float type, and a complex
        number too for a complex one. An instance of a subclass is none of them: pass ``float(value)``.
    dtype
        The element type.
    field
        Where the number stands, for messages.

    Raises
    ------
    ProgramError
        If the type cannot hold it, or holds no single number.
    """
    data = _fitting(value, dtype)
    if data is None:
        said = f"got {describe(value)}, expected a number that fits {dtype}{item_advice(value)}"
        raise ProgramError(said, field=field)
    return data


def _fitting(value: object, dtype: DType) -> bytes | None:
    match dtype.kind:
        case Kind.BOOL:
            if type(value) is bool:
                return bytes([value])
        case Kind.INT | Kind.UINT:
            low, high = dtype.integer_range
            if type(value) is int and low <= value <= high:
                return value.to_bytes(dtype.itemsize, "little", signed=low < 0)
        case Kind.COMPLEX if is_exactly(value, int, float, complex):
            real, imag = value.real, value.imag  # type: ignore[attr-defined]  # each of the three has both
            parts = [_float_bytes(part, _COMPLEX_PART[dtype.name]) for part in (real, imag)]
            return None if None in parts else b"".join(parts)  # type: ignore[arg-type]  # there is no None
        case Kind.FLOAT if is_exactly(value, int, float) and dtype.name in FLOAT_FORMATS:
            return _float_bytes(value, dtype.name)  # type: ignore[arg-type]  # the guard says which
    return None


def _float_bytes(value: float, name: str) -> bytes | None:
    form = FLOAT_FORMATS[name]
    try:
        bits = form.encode(float(value))
    except OverflowError:  # an int beyond every double
        return None
    return None if bits is None else bits.to_bytes(form.nbytes, "little")


def scalar_value(data: bytes, dtype: DType) -> complex | bool:
    """Return the number that `scalar_bytes` wrote: a bool, an int, a float or a complex number, as the type is.

    Parameters
    ----------
    data
        One element, little-endian, of as many bytes as the type has.
    dtype
        The element type, one that a single number can have.
    """
    match dtype.kind:
        case Kind.BOOL:
            return any(data)
        case Kind.INT | Kind.UINT:
            return int.from_bytes(data, "little", signed=dtype.kind is Kind.INT)
        case Kind.COMPLEX:
            form = FLOAT_FORMATS[_COMPLEX_PART[dtype.name]]
            parts = (data[: form.nbytes], data[form.nbytes :])
            return complex(*(form.decode(int.from_bytes(part, "little")) for part in parts))
        case Kind.FLOAT:
            return FLOAT_FORMATS[dtype.name].decode(int.from_bytes(data, "little"))
