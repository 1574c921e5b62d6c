"""The oracle's reading of what travels by value: numbers, addresses and bytes."""

from __future__ import annotations

import math
import numbers
import operator
from typing import TYPE_CHECKING, Any, cast

from trunnion.errors import ArgumentError, ArgumentTypeError, ArgumentValueError
from trunnion.testing.expected import ExpectedNan, ExpectedNumber, ExpectedParts, TensorFacts
from trunnion.testing.rounding import COMPLEX, FORMATS, OutOfRangeError, encode_float, encode_integer

if TYPE_CHECKING:
    from trunnion.errors import TrunnionError
    from trunnion.model.params import PointerParam, StructParam

__all__ = ["WrongArgumentError", "encode_number", "read_number", "read_pointer", "read_struct"]

_ADDRESSES = 1 << 64


class WrongArgumentError(Exception):
    """An argument does not fit its parameter.

    Parameters
    ----------
    errors
        The classes that say so truthfully.
    reason
        For people.
    """

    def __init__(self, errors: tuple[type[TrunnionError], ...], reason: str) -> None:
        super().__init__(reason)
        self.errors = errors


_TYPE = (ArgumentTypeError,)
_VALUE = (ArgumentValueError,)


def read_number(kind: str, given: object) -> complex | bool:
    """Return a scalar argument as the number that it is.

    Parameters
    ----------
    kind
        The type in which it travels.
    given
        What the call passes.

    Raises
    ------
    WrongArgumentError
        If it is no number of that kind, or one that the type cannot hold.
    """
    if isinstance(given, TensorFacts) or (isinstance(given, bool) and kind != "bool"):
        raise WrongArgumentError(_TYPE, f"a {type(given).__name__} for {kind}")
    number: Any = given
    if kind in COMPLEX or kind in FORMATS:
        if not isinstance(given, numbers.Complex if kind in COMPLEX else numbers.Real):
            raise WrongArgumentError(_TYPE, f"a {type(given).__name__} for {kind}")
    elif kind == "bool":
        if not _is_boolean(given):
            raise WrongArgumentError(_TYPE, f"a {type(given).__name__} for {kind}")
        number = bool(given)
    elif isinstance(given, int) or hasattr(given, "__index__"):
        try:
            number = operator.index(cast("Any", given))
        except TypeError as error:  # an array has the method, and refuses
            raise WrongArgumentError(_TYPE, f"a {type(given).__name__} for {kind}") from error
    else:
        raise WrongArgumentError(_TYPE, f"a {type(given).__name__} for {kind}")
    try:
        if not isinstance(number, (int, float, complex)):
            number = _as_double(number) if isinstance(number, numbers.Real) else complex(number)
        encode_number(kind, number)
    except (OutOfRangeError, OverflowError) as error:
        raise WrongArgumentError(_VALUE, str(error)) from error
    return cast("complex | bool", number)


def _is_boolean(given: object) -> bool:
    """Whether it is a bool, Python's or NumPy's."""
    kind = type(given)
    return kind is bool or (kind.__module__, kind.__name__) in (("numpy", "bool"), ("numpy", "bool_"))


def _as_double(number: numbers.Real) -> float:
    """Return the double nearest to a number of another class."""
    double = float(number)
    if math.isinf(double) and number != double:
        raise OverflowError("beyond every double")
    return double


def encode_number(kind: str, number: complex) -> ExpectedNumber:
    """Return what a number must be in memory.

    Parameters
    ----------
    kind
        The type in which it travels.
    number
        The number.

    Raises
    ------
    OutOfRangeError
        If the type cannot hold it.
    OverflowError
        If no double can.
    """
    if kind in FORMATS:
        return _real(kind, cast("float", number))
    if kind not in COMPLEX:
        return encode_integer(int(cast("int", number)), kind)
    parts = tuple(_real(COMPLEX[kind], part) for part in (number.real, number.imag))
    if any(isinstance(part, ExpectedNan) for part in parts):
        return ExpectedParts(parts)
    return b"".join(part for part in parts if isinstance(part, bytes))


def _real(kind: str, number: float) -> bytes | ExpectedNan:
    double = float(number)
    return ExpectedNan(kind) if math.isnan(double) else encode_float(double, kind)


def read_pointer(param: PointerParam, given: object) -> int:
    """Return an address.

    Raises
    ------
    WrongArgumentError
        If the argument is none that the parameter allows.
    """
    if given is None:
        if param.nullable:
            return 0
        raise WrongArgumentError((ArgumentError,), "None for an address")
    if isinstance(given, (bool, TensorFacts)) or not hasattr(given, "__index__"):
        raise WrongArgumentError(_TYPE, f"a {type(given).__name__} for an address")
    address = operator.index(cast("Any", given))
    if not 0 <= address < _ADDRESSES:
        raise WrongArgumentError(_VALUE, f"the address {address}")
    if address == 0 and not param.nullable:
        raise WrongArgumentError(_VALUE, "a null address")
    if address % param.alignment:
        raise WrongArgumentError(_VALUE, f"{address:#x}, not a multiple of {param.alignment}")
    return address


def read_struct(param: StructParam, given: object) -> bytes:
    """Return the bytes of a struct.

    Raises
    ------
    WrongArgumentError
        If the argument has none, or another number of them.
    """
    if isinstance(given, TensorFacts):
        raise WrongArgumentError(_TYPE, "a tensor for a struct")
    try:
        view = memoryview(cast("Any", given))
    except TypeError as error:
        raise WrongArgumentError(_TYPE, f"a {type(given).__name__} for a struct") from error
    if not view.c_contiguous:
        raise WrongArgumentError(_TYPE, "a buffer whose bytes do not lie one behind the other")
    data = view.tobytes()
    if len(data) != param.nbytes:
        raise WrongArgumentError((ArgumentError,), f"{len(data)} bytes for a struct of {param.nbytes}")
    return data
