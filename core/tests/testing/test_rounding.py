from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunnion.testing.rounding import SIZES, OutOfRangeError, encode_float, encode_integer, is_nan


@pytest.mark.parametrize(
    ("value", "name", "code"),
    [
        (0.0, "float16", 0x0000),
        (-0.0, "float16", 0x8000),
        (1.0, "float16", 0x3C00),
        (65504.0, "float16", 0x7BFF),
        (65519.99, "float16", 0x7BFF),
        (2.0**-24, "float16", 0x0001),
        (2.0**-25, "float16", 0x0000),  # a tie, to even
        (1.5 * 2.0**-24, "float16", 0x0002),  # a tie, to even
        (1.0 + 2.0**-11, "float16", 0x3C00),  # a tie, to even
        (1.0 + 3 * 2.0**-11, "float16", 0x3C02),  # a tie, to even
        (math.inf, "float16", 0x7C00),
        (-math.inf, "bfloat16", 0xFF80),
        (1.0, "bfloat16", 0x3F80),
        (1.00390625, "bfloat16", 0x3F80),  # a tie, to even
        (1.01171875, "bfloat16", 0x3F82),  # a tie, to even
        (1.00390625 + 2.0**-40, "bfloat16", 0x3F81),  # through float32 it would be rounded twice, to a tie
        (1.0, "float64", 0x3FF0000000000000),
        (5e-324, "float64", 1),
    ],
)
def test_codes(value, name, code):
    assert encode_float(value, name) == code.to_bytes(SIZES[name], "little")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (65520.0, "float16"),
        (-65520.0, "float16"),
        (3.4e38, "bfloat16"),
        (3.5e38, "float32"),
        (1e300, "float32"),
    ],
)
def test_what_would_become_infinite_is_out_of_range(value, name):
    with pytest.raises(OutOfRangeError):
        encode_float(value, name)


@settings(max_examples=300)
@given(st.floats(allow_nan=False), st.sampled_from([("float16", "<e"), ("float32", "<f"), ("float64", "<d")]))
def test_agrees_with_struct(value, kind):
    name, code = kind
    try:
        packed = struct.pack(code, value)
    except OverflowError:
        with pytest.raises(OutOfRangeError):
            encode_float(value, name)
        return
    assert encode_float(value, name) == packed


def test_integers_and_truth_values():
    assert encode_integer(-2, "int16") == b"\xfe\xff"
    assert encode_integer(2**64 - 1, "uint64") == b"\xff" * 8
    assert encode_integer(True, "bool") == b"\x01"
    for value, name in ((128, "int8"), (-1, "uint8"), (2, "bool"), (2**32, "uint32")):
        with pytest.raises(OutOfRangeError):
            encode_integer(value, name)


def test_nans():
    assert is_nan(bytes.fromhex("007e"), "float16")
    assert is_nan(bytes.fromhex("c0ff"), "bfloat16")
    assert not is_nan(bytes.fromhex("007c"), "float16")
    assert not is_nan(bytes.fromhex("0000c07f"), "float16")
    with pytest.raises(ValueError, match="no single encoding"):
        encode_float(math.nan, "float32")


@pytest.mark.parametrize(
    ("value", "name", "code"),
    [
        (448.0, "float8_e4m3fn", 0x7E),
        (464.0, "float8_e4m3fn", 0x7E),  # a tie, to even
        (2.0**-9, "float8_e4m3fn", 0x01),
        (-0.0, "float8_e4m3fn", 0x80),
        (57344.0, "float8_e5m2", 0x7B),
        (math.inf, "float8_e5m2", 0x7C),
        (240.0, "float8_e4m3fnuz", 0x7F),
        (1.0, "float8_e4m3fnuz", 0x40),
        (-1e-9, "float8_e4m3fnuz", 0x00),  # a negative zero would be the NaN
        (57344.0, "float8_e5m2fnuz", 0x7F),
        (1.0, "float8_e8m0fnu", 127),
        (1.5, "float8_e8m0fnu", 128),  # a tie, to the even significand
        (1.49, "float8_e8m0fnu", 127),
        (2.0**-127, "float8_e8m0fnu", 0),
        (2.0**127, "float8_e8m0fnu", 254),
    ],
)
def test_codes_of_eight_bits(value, name, code):
    assert encode_float(value, name) == bytes([code])


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (465.0, "float8_e4m3fn"),
        (math.inf, "float8_e4m3fn"),
        (61440.0, "float8_e5m2"),
        (248.0, "float8_e4m3fnuz"),
        (-math.inf, "float8_e5m2fnuz"),
        (0.0, "float8_e8m0fnu"),
        (-1.0, "float8_e8m0fnu"),
        (2.0**-128, "float8_e8m0fnu"),
        (1.5 * 2.0**127, "float8_e8m0fnu"),
    ],
)
def test_what_eight_bits_cannot_hold(value, name):
    with pytest.raises(OutOfRangeError):
        encode_float(value, name)


def test_nans_of_eight_bits():
    for data, name in (
        ("7f", "float8_e4m3fn"),
        ("80", "float8_e4m3fnuz"),
        ("fd", "float8_e5m2"),
        ("ff", "float8_e8m0fnu"),
    ):
        assert is_nan(bytes.fromhex(data), name)
    for data, name in (
        ("7e", "float8_e4m3fn"),
        ("7f", "float8_e5m2fnuz"),
        ("7c", "float8_e5m2"),
        ("7f", "float8_e8m0fnu"),
    ):
        assert not is_nan(bytes.fromhex(data), name)
