"""What travels by value, against bytes that were worked out by hand."""

from __future__ import annotations

import ctypes
import math

import pytest

from trunnion.errors import ArgumentTypeError, ArgumentValueError
from trunnion.model.params import PointerParam, StructParam
from trunnion.testing.expected import ExpectedNan, ExpectedParts
from trunnion.testing.reference_numbers import (
    WrongArgumentError,
    encode_number,
    read_number,
    read_pointer,
    read_struct,
)
from trunnion.testing.strategies import Indexable


@pytest.mark.parametrize(
    ("kind", "number", "data"),
    [
        ("complex64", 1.5 - 2j, b"\0\0\xc0\x3f\0\0\0\xc0"),
        ("complex32", 1, b"\0\x3c\0\0"),
        ("complex128", -1j, bytes(7) + b"\x80" + bytes(6) + b"\xf0\xbf"),
        ("float8_e4m3fn", 448, b"\x7e"),
        ("float8_e5m2", -1.0, b"\xbc"),
        ("float8_e8m0fnu", 2.0, b"\x80"),
        ("int16", -2, b"\xfe\xff"),
        ("bool", True, b"\x01"),
    ],
)
def test_numbers(kind, number, data):
    assert encode_number(kind, read_number(kind, number)) == data


def test_parts_that_are_no_numbers():
    assert encode_number("float8_e5m2fnuz", math.nan) == ExpectedNan("float8_e5m2fnuz")
    assert encode_number("complex32", complex(1.0, math.nan)) == ExpectedParts(
        (b"\0\x3c", ExpectedNan("float16"))
    )


@pytest.mark.parametrize(
    ("kind", "given", "error"),
    [
        ("float8_e4m3fn", 465.0, ArgumentValueError),
        ("float8_e4m3fn", math.inf, ArgumentValueError),
        ("float8_e8m0fnu", 0.0, ArgumentValueError),
        ("complex32", complex(0, 1e6), ArgumentValueError),
        ("complex64", 10**400, ArgumentValueError),
        ("float32", 1j, ArgumentTypeError),
        ("complex64", True, ArgumentTypeError),
        ("int8", Indexable(128), ArgumentValueError),
        ("int8", 1.0, ArgumentTypeError),
    ],
)
def test_what_is_no_such_number(kind, given, error):
    with pytest.raises(WrongArgumentError) as caught:
        read_number(kind, given)
    assert caught.value.errors == (error,)


def test_addresses():
    plain, null = PointerParam("p", alignment=16), PointerParam("q", nullable=True)
    assert read_pointer(plain, 2**64 - 16) == 2**64 - 16
    assert read_pointer(plain, Indexable(32)) == 32
    assert read_pointer(null, None) == read_pointer(null, 0) == 0
    for param, given in (
        (plain, 0),
        (plain, None),
        (plain, 8),
        (plain, True),
        (null, 2**64),
        (null, "1"),
        (null, -1),
    ):
        with pytest.raises(WrongArgumentError):
            read_pointer(param, given)


def test_structs():
    class Pair(ctypes.Structure):
        _fields_ = (("a", ctypes.c_int16), ("b", ctypes.c_int16))

    param = StructParam("s", 4, 2)
    assert read_struct(param, Pair(1, -1)) == b"\x01\0\xff\xff"
    assert read_struct(param, bytearray(4)) == bytes(4)
    for given in (bytes(3), bytes(5), 4, "abcd", None):
        with pytest.raises(WrongArgumentError):
            read_struct(param, given)
