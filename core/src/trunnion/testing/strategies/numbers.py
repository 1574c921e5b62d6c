"""Random numbers, addresses and bytes that fit a parameter."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Complex, Real
from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import strategies as st

from trunnion.testing.arithmetic import integer_range
from trunnion.testing.reference_numbers import encode_number
from trunnion.testing.rounding import COMPLEX, FORMATS, OutOfRangeError

if TYPE_CHECKING:
    from trunnion.model.params import PointerParam, StructParam
    from trunnion.testing.rounding import Format

__all__ = [
    "BytesSpec",
    "Indexable",
    "Pair",
    "Raiser",
    "RaiserSpec",
    "edges",
    "fits",
    "numbers",
    "pointers",
    "structs",
]

_FLOATS = (
    0.0, -0.0, 1.0, -1.5, 0.1, 1 / 3, 1.5, 2.0**-24, 2.0**-127, 2.0**-149, 1e-320, -1e-9, 1e-7, 240.0, 448.0, 463.9,
    57344.0, 65504.0, 65519.999, 1.0 + 2.0**-11, 1.00390625, 1.005859375, 3.3895e38, math.inf, -math.inf, math.nan,
)  # fmt: skip
_LAST_ADDRESS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Indexable:
    """An integer of another class, as array libraries have them."""

    value: int
    """The integer."""

    def __index__(self) -> int:
        return self.value


@Complex.register
@dataclass(frozen=True, slots=True)
class Pair:
    """A complex number of another class."""

    real: float
    """Its real part."""

    imag: float
    """Its imaginary part."""

    def __complex__(self) -> complex:
        return complex(self.real, self.imag)


@Real.register
@dataclass(frozen=True, slots=True)
class Beyond:
    """A finite number beyond every double, as wider floating-point types have them: as a double it is infinite."""

    def __float__(self) -> float:
        return math.inf


@dataclass(frozen=True, slots=True)
class BytesSpec:
    """Bytes to be passed in a call."""

    data: bytes
    """The bytes."""

    form: str = "bytes"
    """What holds them: ``"bytes"``, ``"bytearray"``, ``"memoryview"`` or ``"structure"``; ``"words"``, a buffer of
    items of several bytes if so many there are; or a buffer in which they do not lie one behind the other:
    ``"every other"``, or ``"columns"``, an even number in two rows, column by column."""

    def make(self) -> object:
        """Return the object to be passed."""
        if self.form == "structure":
            kind: Any = type(
                "Struct", (ctypes.Structure,), {"_fields_": [("data", ctypes.c_ubyte * len(self.data))]}
            )
            return kind.from_buffer_copy(self.data)
        if self.form == "words":
            return memoryview(self.data).cast(
                "I" if len(self.data) % 4 == 0 else "H" if len(self.data) % 2 == 0 else "b"
            )
        if self.form == "every other":
            return memoryview(bytes(byte for one in self.data for byte in (one, 0)))[::2]
        if self.form == "columns":
            return _in_columns(self.data)
        return {"bytes": bytes, "bytearray": bytearray, "memoryview": memoryview}[self.form](self.data)


class _Buffer(ctypes.Structure):
    """``Py_buffer`` (Python/C API reference, "Buffer Protocol")."""

    _fields_: ClassVar[list[tuple[str, Any]]] = [
        ("buf", ctypes.c_char_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]  # fmt: skip


def _in_columns(data: bytes) -> memoryview:
    """Return two rows of bytes that lie in memory column by column, as Fortran's arrays do."""
    pair = ctypes.c_ssize_t * 2
    buffer = _Buffer(data, None, len(data), 1, 1, 2, b"B", pair(2, len(data) // 2), pair(1, 2), None, None)
    of_buffer = ctypes.pythonapi.PyMemoryView_FromBuffer
    of_buffer.restype, of_buffer.argtypes = ctypes.py_object, (ctypes.POINTER(_Buffer),)
    made: memoryview = of_buffer(ctypes.byref(buffer))
    return made


class RaisedByArgumentError(Exception):
    """What a `Raiser` raises: no backend knows it."""


class Raiser:
    """What raises whatever it is asked, its class too: of a call it can only be a wrong argument."""

    def _raises(self) -> Any:
        raise RaisedByArgumentError

    __class__ = property(_raises)
    __index__ = __int__ = __float__ = __complex__ = __bool__ = __len__ = __iter__ = _raises


@dataclass(frozen=True, slots=True)
class RaiserSpec:
    """A `Raiser` to be passed in a call; the oracle, which it would hinder, is told this in its place."""

    def make(self) -> Raiser:
        """Return the object to be passed."""
        return Raiser()


def fits(kind: str, number: complex) -> bool:
    """Whether a type can hold a number.

    Parameters
    ----------
    kind
        The type's name.
    number
        The number.
    """
    try:
        encode_number(kind, number)
    except (OutOfRangeError, OverflowError):
        return False
    return True


@functools.cache
def edges(kind: str) -> tuple[float, ...]:
    """Return numbers around which a float type decides: what it just holds or does not, and both sides of ties.

    Parameters
    ----------
    kind
        The type's name.
    """
    form = FORMATS[kind]
    normal, one = 1 << form.fraction_bits, form.bias << form.fraction_bits
    found: list[float] = []
    # Neighbours whose lower one is even, and odd: of a tie the even one is taken.
    for code in sorted({0, 1, normal - 1, one, one + 1, form.greatest - 1, form.greatest}):
        here, above = _value(form, code), _value(form, code + 1)
        for exact in (here, (here + above) / 2):
            with contextlib.suppress(OverflowError):  # beyond every double
                found.append(float(exact))
        found += [math.nextafter(found[-1], 0.0), math.nextafter(found[-1], math.inf)]
    both = [sign * number for number in found for sign in (1.0, -1.0)]
    # A double is what is rounded: an int becomes one first, once, though it may lie on a tie's other side.
    wholes = [2**24 + 1, 2**53 + 1, 2**53 + 2**29 + 1, -(2**53) - 3, 2**64 - 1]
    return tuple(dict.fromkeys([*both, *wholes]))


def _value(form: Format, code: int) -> Fraction:
    """Return what a code without a sign stands for; of the one above the greatest, what would come next."""
    if not form.signed:
        return Fraction(2) ** (code - form.bias)
    exponent, fraction = divmod(code, 1 << form.fraction_bits)
    leading = (1 << form.fraction_bits) if exponent else 0
    return Fraction(leading + fraction) * Fraction(2) ** (max(exponent, 1) - form.bias - form.fraction_bits)


@functools.cache
def numbers(kind: str) -> st.SearchStrategy[complex]:
    """Return a strategy of numbers that a type can hold: its edges, ties of rounding, and others.

    Parameters
    ----------
    kind
        The type's name.
    """
    if kind == "bool":
        return st.booleans()
    if kind in COMPLEX:
        part = numbers(COMPLEX[kind])
        return st.one_of(st.builds(lambda real, imag: complex(real.real, imag.real), part, part), part)
    if kind in FORMATS:
        wide = st.floats(-60000.0, 60000.0).filter(lambda number: fits(kind, number))
        if not FORMATS[kind].signed:
            wide = st.floats(2.0**-100, 2.0**100)
        special, near = (tuple(x for x in some if fits(kind, x)) for some in (_FLOATS, edges(kind)))
        few = st.sampled_from((*special, 1, 2, 3, 7))
        return st.one_of(st.sampled_from(near), st.sampled_from(near), few, wide)
    low, high = integer_range(kind)
    # With a double's help the last one or two of 64 bits would be lost.
    inner = (low + 1, high - 1, *(number for number in (2**53 + 1, -(2**53) - 1) if low < number < high))
    return st.one_of(st.sampled_from((low, high, 0)), st.sampled_from(inner), st.integers(low, high))


def pointers(param: PointerParam) -> st.SearchStrategy[object]:
    """Return a strategy of addresses that fit a parameter.

    Parameters
    ----------
    param
        The parameter.
    """
    unit = param.alignment
    numbers_ = st.one_of(
        st.sampled_from((unit, (_LAST_ADDRESS // unit) * unit, -(-(1 << 63) // unit) * unit)),
        st.integers(1, _LAST_ADDRESS // unit).map(lambda count: count * unit),
    )
    choices: list[st.SearchStrategy[object]] = [numbers_, numbers_, numbers_.map(Indexable)]
    if param.nullable:
        choices += [st.sampled_from((None, 0))]
    return st.one_of(choices)


def structs(param: StructParam) -> st.SearchStrategy[BytesSpec]:
    """Return a strategy of bytes that fit a parameter.

    Parameters
    ----------
    param
        The parameter.
    """
    # A pattern of a few bytes: thousands of random ones would use up what hypothesis can draw.
    data = st.binary(min_size=1, max_size=8).map(
        lambda seed: (seed * (param.nbytes // len(seed) + 1))[: param.nbytes]
    )
    return st.builds(
        BytesSpec, data, st.sampled_from(("bytes", "words", "bytearray", "memoryview", "structure"))
    )
