"""The numbers, addresses and bytes of a call, as a Python launcher takes them: the slow halves of its checks."""

from __future__ import annotations

import functools
import math
import numbers
import struct
import sys
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from trunnion.errors import ArgumentError
from trunnion.messages import describe, type_name
from trunnion.model.dtypes import Kind
from trunnion.model.plan import refusals
from trunnion.model.scalars import FLOAT_FORMATS, overflow_limit
from trunnion.plain import ForeignError, asked, index_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.errors import ArgumentTypeError
    from trunnion.model.dtypes import DType
    from trunnion.model.plan.refusals import RefusalRow

__all__ = [
    "address",
    "bfloat16_bits",
    "boolean",
    "complex_parts",
    "integer",
    "number",
    "real",
    "small_float",
    "struct_bytes",
]

_ADDRESSES = 1 << 64
_NO_INTEGER = refusals.NO_INTEGER, refusals.TENSOR_FOR_INTEGER
_NO_REAL = refusals.NO_REAL, refusals.TENSOR_FOR_REAL
_NO_BOOLEAN = refusals.NO_BOOLEAN, refusals.TENSOR_FOR_BOOLEAN
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _type_error(
    name: str,
    value: Any,
    rows: tuple[RefusalRow[ArgumentTypeError], RefusalRow[ArgumentTypeError]],
    *wanted: Any,
) -> ArgumentTypeError:
    """Return the error of an argument that is no such number; a tensor never is, not even one without dimensions."""
    return rows[_is_tensor(value)](name, describe(value, facts=False), *wanted)


def _is_tensor(value: Any) -> bool:
    try:
        return asked(lambda: hasattr(value, "data_ptr"))
    except ForeignError:
        return False


def _judged(
    convert: Callable[Concatenate[str, Any, _P], _R],
) -> Callable[Concatenate[str, Any, _P], _R]:
    """Let nothing out of a conversion but its own errors, whatever the code of a foreign number raises."""

    @functools.wraps(convert)
    def judged(name: str, value: Any, /, *args: _P.args, **said: _P.kwargs) -> _R:
        try:
            return asked(lambda: convert(name, value, *args, **said), ArgumentError)
        except ForeignError as error:
            kind = type_name(error.__cause__)
            raise refusals.FOREIGN_NUMBER(name, describe(value, facts=False), kind) from error.__cause__

    return judged


@_judged
def integer(name: str, value: Any, low: int, high: int) -> int:
    """Return an argument as an integer in range; anything with ``__index__`` will do, but not a bool or a tensor.

    Raises
    ------
    ArgumentTypeError
        If it is no integer.
    ArgumentValueError
        If it is out of range.
    """
    result = index_of(value)
    if result is None:
        raise _type_error(name, value, _NO_INTEGER, low, high)
    if not low <= result <= high:
        raise refusals.INTEGER_RANGE(name, describe(result), low, high)
    return result


@_judged
def real(name: str, value: Any, dtype: str) -> float:
    """Return an argument as a float that ``dtype`` can hold after rounding; infinities and NaN pass.

    Parameters
    ----------
    name
        The parameter.
    value
        An int or a float, or another real number.
    dtype
        The name of a float or a complex type.

    Raises
    ------
    ArgumentTypeError
        If it is no real number.
    ArgumentValueError
        If it is finite and too large.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise _type_error(name, value, _NO_REAL, dtype)
    try:
        result = float(value)
    except TypeError as error:  # what says that it is a number, as a stand-in of a test does, need not be one
        raise _type_error(name, value, _NO_REAL, dtype) from error
    except OverflowError as error:
        raise refusals.REAL_RANGE(name, describe(value), dtype) from error
    # A wider float may be finite and lie beyond every double.
    beyond = math.isinf(result) and value != result
    if beyond or (math.isfinite(result) and abs(result) >= overflow_limit(dtype)):
        raise refusals.REAL_RANGE(name, result, dtype)
    return result


@_judged
def boolean(name: str, value: Any) -> bool:
    """Return an argument that must be True or False, Python's or NumPy's.

    Raises
    ------
    ArgumentTypeError
        If it is neither.
    """
    if isinstance(value, bool):
        return value
    numpy = sys.modules.get("numpy")  # whoever has a bool of NumPy's has imported it
    if numpy is not None and isinstance(value, numpy.bool_):
        return bool(value)
    raise _type_error(name, value, _NO_BOOLEAN)


def number(name: str, value: Any, kind: DType) -> complex | bool:
    """Return an argument as the number that travels as an element of a type: a bool, an int, a float or a complex one.

    Errors are those of the conversion to such a type: `boolean`, `integer`, `complex_parts`, `small_float`, `real`.
    """
    if kind.kind is Kind.BOOL:
        return boolean(name, value)
    if kind.is_integer:
        return integer(name, value, *kind.integer_range)
    if kind.kind is Kind.COMPLEX:
        return complex(*complex_parts(name, value, kind.name))
    if kind.is_small_float:
        small_float(name, value, kind.name)
    return real(name, value, kind.name)


def bfloat16_bits(value: float) -> int:
    """Return the bits of the bfloat16 nearest to a double, ties to even, rounded once.

    The double is first brought to float32 by rounding to odd, which keeps the one later rounding exact
    (Boldo and Melquiond, *When double rounding is odd*, 2005).
    """
    if math.isnan(value):
        return 0x7FC0
    if math.isinf(value):
        return 0x7F80 if value > 0 else 0xFF80
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    (single,) = struct.unpack("<f", struct.pack("<f", value))
    if single != value:
        bits = (bits - (abs(single) > abs(value))) | 1
    return (int(bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


@_judged
def small_float(name: str, value: Any, dtype: str) -> int:
    """Return the bits of the value of an 8-bit type that is nearest to a double, ties to even.

    Raises
    ------
    ArgumentTypeError
        If it is no real number.
    ArgumentValueError
        If the type cannot hold it.
    """
    number = real(name, value, dtype)
    bits = FLOAT_FORMATS[dtype].encode(number)
    if bits is None:
        raise refusals.REAL_RANGE(name, number, dtype)
    return bits


@_judged
def complex_parts(name: str, value: Any, dtype: str) -> tuple[float, float]:
    """Return the real and the imaginary part of an argument, each of which ``dtype`` can hold after rounding.

    Parameters
    ----------
    name
        The parameter.
    value
        A complex number; a real one has no imaginary part.
    dtype
        The type's name.

    Raises
    ------
    ArgumentTypeError
        If it is no number.
    ArgumentValueError
        If a part is finite and too large.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Complex):
        raise _type_error(name, value, _NO_REAL, dtype)
    if isinstance(value, numbers.Real):
        return real(name, value, dtype), 0.0
    return real(name, value.real, dtype), real(name, value.imag, dtype)


@_judged
def address(name: str, value: Any, alignment: int, *, nullable: bool) -> int:
    """Return an address: an integer, or None for a null pointer where that is allowed.

    Raises
    ------
    ArgumentTypeError
        If it is neither.
    ArgumentValueError
        If it is out of range, null where that is not allowed, or not aligned.
    """
    if value is None and nullable:
        return 0
    if value is None:
        raise refusals.NO_ADDRESS(name)
    if hasattr(value, "data_ptr"):
        raise refusals.TENSOR_FOR_ADDRESS(name, describe(value, facts=False))
    result = integer(name, value, 0, _ADDRESSES - 1)
    if not result and not nullable:
        raise refusals.NULL_ADDRESS(name)
    if result % alignment:
        raise refusals.ALIGNMENT(name, result, alignment)
    return result


@_judged
def struct_bytes(name: str, value: Any, nbytes: int) -> bytes:
    """Return a copy of an object's bytes.

    Raises
    ------
    ArgumentTypeError
        If it has no buffer, or one whose bytes do not lie one behind the other.
    ArgumentValueError
        If it has another number of bytes.
    """
    try:
        view = memoryview(value)
    except TypeError as error:
        raise refusals.NO_BUFFER(name, describe(value, facts=False), nbytes) from error
    with view:
        if not view.c_contiguous:
            raise refusals.SCATTERED_BUFFER(name, nbytes)
        if view.nbytes != nbytes:
            raise refusals.BUFFER_SIZE(name, view.nbytes, nbytes)
        return view.tobytes()
