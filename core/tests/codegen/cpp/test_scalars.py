"""Numbers, addresses and bytes that real calls bring to C++ become what they become in the Python launcher."""

from __future__ import annotations

import ctypes
import math
import struct
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from trunnion.codegen.cpp.formats import format_line, format_pointer, stored_type
from trunnion.codegen.cpp.payload import fields_of, typed_error
from trunnion.errors import ArgumentError, ArgumentTypeError
from trunnion.launcher import scalars
from trunnion.model.dtypes import DTYPES, Kind, dtype
from trunnion.model.scalars import FLOAT_FORMATS, scalar_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.tvm_ffi_abi

NAME = "it's"
SCALARS = [row.name for row in DTYPES.values() if row.struct_code]
POWERS = [
    sign * 2**bits + near
    for bits in (7, 8, 15, 16, 31, 32, 63, 64)
    for sign in (-1, 1)
    for near in (-1, 0, 1)
]
LONG = [2**120 + 1, -(2**126), 2**53 + 1, 2**54 + 2, 2**64 + 2**11, 2**65 + 2**12, 2**65 + 2**12 + 1]
VAST = [2**200, 2**200 + 2**147, 2**200 + 2**147 + 1, -(2**1023), 2**1024, 10**400]
VAST += [
    sign * 2**bits + near
    for bits in (127, 128, 191, 192, 255, 256, 319)
    for sign in (-1, 1)
    for near in (-1, 0, 1)
]
FLOATS = [
    *(
        0.0,
        -0.0,
        0.1,
        -1.5,
        1e-320,
        2.0**-133,
        2.0**-134,
        3e-46,
        448.0,
        464.0,
        464.1,
        480.0,
        57344.0,
        61440.0,
        65504.0,
    ),
    *(65519.999, 65520.0, 3.3895e38, 3.4e38, 3.4028235677973366e38, 1e39, -1e300, 1e22, math.inf, -math.inf),
]
OTHERS = [
    True,
    False,
    None,
    "",
    "a",
    "it's",
    'a"b' * 9,
    "é" * 90,
    "1" * 81,
    b"",
    b"abc",
    b"12345678",
    torch.tensor(3),
]
NUMPYS = [np.int32(5), np.int64(-3), np.float32(1.5), np.float64(0.1), np.uint8(200), Fraction(1, 3)]
VALUES = [0, 1, -1, 5, *POWERS, *LONG, *VAST, *FLOATS, *OTHERS, *NUMPYS]


@pytest.fixture(scope="module")
def module(native_module: Any) -> Any:
    rows = [row for row in DTYPES.values() if row.struct_code and row.kind in (Kind.FLOAT, Kind.COMPLEX)]
    lines = [format_line(name) for name in FLOAT_FORMATS if name not in ("float32", "float64")]
    for row in rows:
        reader = "read_float" if row.kind is Kind.FLOAT else "read_complex"
        read = f'{reader}(given[0], kName, "{row.name}", {format_pointer(row)}, value)'
        lines.append(f"READ({row.name}, {stored_type(row)}, {read})")
    return native_module("scalars", "\n".join(lines) + "\n")


def outcome(function: Callable[..., bytes], *args: Any) -> bytes | ArgumentError:
    try:
        return function(*args)
    except ArgumentError as error:
        return error


def in_cpp(function: Callable[..., bytes], *args: Any) -> bytes | ArgumentError | None:
    """Return what C++ makes of an argument; None: this TVM-FFI cannot carry it at all."""
    try:
        return bytes(function(*args))
    except OverflowError:
        assert isinstance(args[0], int)
        return None
    except (TypeError, ValueError) as error:
        return as_typed(error)


def as_typed(error: Exception) -> ArgumentError:
    typed = typed_error(fields_of(error), ())
    assert isinstance(typed, ArgumentError), error
    return typed


def assert_same(value: object, got: bytes | ArgumentError | None, wanted: bytes | ArgumentError) -> None:
    if got is None:
        return
    if not isinstance(wanted, ArgumentError):
        assert got == wanted, value
        return
    assert type(got) is type(wanted), value
    if type(value) in (bool, int, float, str, bytes, torch.Tensor, type(None)):
        assert str(got) == str(wanted)
    else:
        assert got.argument == wanted.argument


def in_python(kind: str, value: Any) -> bytes:
    row = dtype(kind)
    number = scalars.number(NAME, value, row)
    if row.is_integer:
        return (number % 2**64).to_bytes(8, "little")
    return scalar_bytes(number, row, NAME)


@pytest.mark.parametrize("kind", SCALARS)
def test_a_scalar_becomes_what_it_becomes_in_python(module: Any, kind: str) -> None:
    function = module["boolean" if kind == "bool" else kind]
    for value in VALUES:
        if kind.startswith("complex") and isinstance(value, bytes):
            continue  # so travels a prepared one
        assert_same(value, in_cpp(function, value), outcome(in_python, kind, value))


def test_a_nan_stays_one(module: Any) -> None:
    for kind in set(FLOAT_FORMATS) - {"float8_e8m0fnu"}:
        bits = bytes(module[kind](math.nan))
        narrow = torch.frombuffer(bytearray(bits), dtype=getattr(torch, kind))
        assert math.isnan(narrow.to(torch.float64).item())


def test_a_great_number_travels_as_a_pointer_and_a_negative_one_is_none(module: Any) -> None:
    assert in_cpp(module["uint64"], ctypes.c_void_p(2**64 - 1)) == b"\xff" * 8
    assert in_cpp(module["uint64"], ctypes.c_void_p(2**63)) == bytes(7) + b"\x80"
    for kind, value in (
        ("uint64", ctypes.c_void_p(7)),
        ("int64", ctypes.c_void_p(2**63)),
        ("uint32", ctypes.c_void_p(2**63)),
    ):
        assert isinstance(in_cpp(module[kind], value), ArgumentTypeError)


@pytest.mark.parametrize("kind", ["complex32", "complex64", "complex128"])
def test_a_complex_number_travels_as_two_doubles(module: Any, kind: str) -> None:
    values = [
        1 - 2j,
        0.1 + 0.3j,
        complex(math.inf, -0.0),
        complex(65504, 1),
        complex(1, 65520),
        complex(-1e39, 0),
    ]
    for value in values:
        given = struct.pack("<2d", value.real, value.imag)
        assert_same(1.0, in_cpp(module[kind], given), outcome(in_python, kind, value))
    assert isinstance(in_cpp(module[kind], bytes(15)), ArgumentTypeError)


def address(value: Any, alignment: int, nullable: bool) -> bytes:
    return scalars.address(NAME, value, alignment, nullable=nullable).to_bytes(8, "little")


@pytest.mark.parametrize(("alignment", "nullable"), [(1, True), (1, False), (16, True), (256, False)])
def test_an_address_becomes_what_it_becomes_in_python(module: Any, alignment: int, nullable: bool) -> None:
    function = module["address"]
    for value in (*VALUES, 4096, 4097, 4096 + 16, 2**64 - 256):
        wanted = outcome(address, value, alignment, nullable)
        assert_same(value, in_cpp(function, value, alignment, nullable), wanted)
        if type(value) is int and 0 <= value < 2**64:
            assert_same(value, in_cpp(function, ctypes.c_void_p(value), alignment, nullable), wanted)


@pytest.mark.parametrize("nbytes", [1, 7, 8, 100])
def test_a_struct_becomes_what_it_becomes_in_python(module: Any, nbytes: int) -> None:
    data = bytes(range(nbytes))
    values = (
        data,
        bytearray(data),
        data + b"x",
        data[1:],
        b"",
        "a" * nbytes,
        None,
        7,
        True,
        1.5,
        torch.ones(nbytes),
    )
    for value in values:
        wanted = outcome(scalars.struct_bytes, NAME, value, nbytes)
        if isinstance(value, torch.Tensor):
            wanted = ArgumentTypeError(NAME, "Tensor", f"an object with a buffer of {nbytes} bytes")
        assert_same(value, in_cpp(module["bytes"], value, nbytes), wanted)
