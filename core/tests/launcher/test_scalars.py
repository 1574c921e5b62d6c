"""Numbers, addresses and bytes on their way into a kernel's parameters."""

from __future__ import annotations

import array
import ctypes
import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trunnion.errors import ArgumentTypeError, ArgumentValueError
from trunnion.launcher.scalars import (
    address,
    bfloat16_bits,
    boolean,
    complex_parts,
    integer,
    real,
    small_float,
    struct_bytes,
)
from trunnion.model.builder import ProgramBuilder
from trunnion.model.dtypes import DTYPES, Kind, dtype
from trunnion.model.program import DeviceCode
from trunnion.model.scalars import scalar_bytes

CODE = DeviceCode("cuda", "//")
SMALL = [name for name in DTYPES if name.startswith("float8")]
NUMBERS: dict[Kind, Any] = {
    Kind.BOOL: True,
    Kind.INT: -3,
    Kind.UINT: 200,
    Kind.FLOAT: 0.3,
    Kind.COMPLEX: 0.3 - 7j,
}
SCALARS = [row.name for row in DTYPES.values() if row.struct_code]


def taking(kind: str) -> Any:
    p = ProgramBuilder("p", CODE)
    p.launch("k", (p.scalar("s", kind), p.scalar("t", "int8")), 1, 1)
    return p.build()


@pytest.mark.parametrize("kind", SCALARS)
def test_a_scalar_of_every_type_travels_as_its_bytes(rig: Any, kind: str) -> None:
    value = NUMBERS[dtype(kind).kind]
    r = rig(taking(kind))
    r.program.call((value, 5), device=0)
    assert r.facade.launched[0].parameters == (scalar_bytes(value, dtype(kind), "s"), b"\x05")


@pytest.mark.parametrize("flag", [np.True_, np.False_], ids=str)
def test_a_bool_of_numpy_is_a_bool_as_its_integers_are_integers(rig: Any, flag: Any) -> None:
    r = rig(taking("bool"))
    r.program.call((flag, 5), device=0)
    assert r.facade.launched[0].parameters == (bytes([bool(flag)]), b"\x05")
    for wrong in (np.int64(1), np.array(True)):
        with pytest.raises(ArgumentTypeError, match="True or False"):
            r.program.call((wrong, 5), device=0)


@pytest.mark.parametrize("kind", SMALL)
@given(value=st.floats(allow_nan=False, allow_infinity=False) | st.floats(-500, 500))
def test_a_float_of_eight_bits_is_the_models(kind: str, value: float) -> None:
    bits = None
    try:
        bits = scalar_bytes(value, dtype(kind), "s")[0]
    except ValueError:
        with pytest.raises(ArgumentValueError, match=kind):
            small_float("s", value, kind)
    else:
        assert small_float("s", value, kind) == bits


def test_floats_of_eight_bits_at_their_ends() -> None:
    assert small_float("s", 448.0, "float8_e4m3fn") == 0x7E
    assert small_float("s", 463.99, "float8_e4m3fn") == 0x7E
    assert small_float("s", Fraction(1, 2), "float8_e5m2") == 0x38
    assert small_float("s", math.nan, "float8_e4m3fn") == 0x7F
    assert small_float("s", math.inf, "float8_e5m2") == 0x7C
    for value, kind in ((464.1, "float8_e4m3fn"), (math.inf, "float8_e4m3fn"), (0.0, "float8_e8m0fnu")):
        with pytest.raises(ArgumentValueError, match=kind):
            small_float("s", value, kind)
    for wrong in (True, "1", None, 1j):
        with pytest.raises(ArgumentTypeError):
            small_float("s", wrong, "float8_e5m2")


def test_a_complex_number_is_two_of_its_parts() -> None:
    assert complex_parts("s", 1 - 2j, "complex128") == (1.0, -2.0)
    assert complex_parts("s", 3, "complex128") == (3.0, 0.0)
    for wrong in (True, "1", None, [1j]):
        with pytest.raises(ArgumentTypeError):
            complex_parts("s", wrong, "complex128")
    for beyond in (65520.0, 1j * 65520, complex(0, -1e300)):
        with pytest.raises(ArgumentValueError):
            complex_parts("s", beyond, "complex32")


class Index:
    def __index__(self) -> int:
        return 4096


def test_addresses() -> None:
    assert address("p", Index(), 8, nullable=False) == 4096
    assert address("p", None, 8, nullable=True) == 0
    assert address("p", 0, 8, nullable=True) == 0
    for wrong in (True, 1.0, "1"):
        with pytest.raises(ArgumentTypeError):
            address("p", wrong, 1, nullable=True)
    with pytest.raises(ArgumentTypeError, match="not nullable"):
        address("p", None, 1, nullable=False)
    for value, alignment in ((0, 1), (-1, 1), (1 << 64, 1), (4100, 8)):
        with pytest.raises(ArgumentValueError):
            address("p", value, alignment, nullable=False)


def test_a_tensor_is_no_address(rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("p", CODE)
    p.launch("k", (p.pointer("q", nullable=True, alignment=16), p.pointer("w")), 1, 1)
    r = rig(p.build())
    with pytest.raises(ArgumentTypeError):
        r.program.call((tensor("float32", 3), 5), device=0)
    r.program.call((None, (1 << 64) - 1), device=0)
    r.program.call((Index(), Index()), device=0)
    assert [launch.parameters for launch in r.facade.launched] == [
        (bytes(8), b"\xff" * 8),
        (struct.pack("<Q", 4096),) * 2,
    ]
    for wrong in ((8, 5), (None, 0), (None, None)):
        with pytest.raises((ArgumentValueError, ArgumentTypeError)):
            r.program.call(wrong, device=0)


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_double))


def test_structs(rig: Any) -> None:
    p = ProgramBuilder("p", CODE)
    p.launch("k", (p.scalar("n", "int8"), p.struct("q", 16, 8)), 1, 1)
    r = rig(p.build())
    pair = Pair(3, 0.5)
    for given_struct in (
        pair,
        bytes(pair),
        bytearray(pair),
        memoryview(bytes(pair)),
        array.array("d", bytes(pair)),
    ):
        r.program.call((1, given_struct), device=0)
        assert r.facade.launched[-1].parameters == (b"\x01", bytes(pair))
    for wrong, error in (
        (b"short", ArgumentValueError),
        (bytes(17), ArgumentValueError),
        (7, ArgumentTypeError),
        ("x" * 16, ArgumentTypeError),
        (memoryview(bytes(32))[::2], ArgumentTypeError),
        (None, ArgumentTypeError),
    ):
        with pytest.raises(error) as caught:
            r.program.call((1, wrong), device=0)
        assert caught.value.argument == "q"


def test_a_structs_bytes_are_copied() -> None:
    source = bytearray(b"abcd")
    taken = struct_bytes("q", source, 4)
    source[0] = 0
    assert taken == b"abcd"


class Tensor:
    """What looks like a tensor without dimensions."""

    def data_ptr(self) -> int:
        return 64

    def __index__(self) -> int:
        return 3


@pytest.mark.parametrize("kind", SCALARS)
def test_a_tensor_for_a_scalar_is_refused_with_what_to_pass(rig: Any, kind: str) -> None:
    r = rig(taking(kind))
    with pytest.raises(ArgumentTypeError, match=r"\.item\(\)"):
        r.program.call((Tensor(), 5), device=0)


def test_a_tensor_for_an_address_is_refused_with_what_to_pass() -> None:
    with pytest.raises(ArgumentTypeError, match=r"\.data_ptr\(\)"):
        address("p", Tensor(), 1, nullable=False)


LIMIT = (2.0 - 2.0**-8) * 2.0**127


def value_of(bits: int) -> Fraction:
    """The exact value of a finite bfloat16."""
    (single,) = struct.unpack("<f", struct.pack("<I", bits << 16))
    return Fraction(single)


@given(
    st.floats(
        allow_nan=False,
        allow_infinity=False,
        min_value=-LIMIT,
        max_value=LIMIT,
        exclude_min=True,
        exclude_max=True,
    )
)
@example(1.00390625)  # a tie, to even below
@example(1.01171875)  # a tie, to even above
@example(1.00390625 + 2**-40)  # float32 would make it a tie first
@example(1.00390625 - 2**-40)
@example(-(1.01171875 - 2**-40))
@example(2.0**-134)  # half of the least subnormal: a tie, to zero
@example(2.0**-134 * (1 + 2**-50))
@example(5e-324)
@example(-5e-324)
@example(-0.0)
@example(2.0**-126 - 2.0**-170)
@example(math.nextafter(LIMIT, 0))
def test_bfloat16_is_the_nearest_with_ties_to_even(value: float) -> None:
    bits = bfloat16_bits(value)
    magnitude = bits & 0x7FFF
    assert magnitude < 0x7F80, "finite"
    assert bits >> 15 == (math.copysign(1, value) < 0)
    target = abs(Fraction(value))
    here = abs(target - value_of(magnitude))
    for other in (magnitude - 1, magnitude + 1):
        if 0 <= other < 0x7F80:
            there = abs(target - value_of(other))
            assert here < there or (here == there and magnitude % 2 == 0)


def test_bfloat16_of_what_is_not_finite() -> None:
    assert bfloat16_bits(math.inf) == 0x7F80
    assert bfloat16_bits(-math.inf) == 0xFF80
    assert bfloat16_bits(math.nan) == 0x7FC0


class Five:
    def __index__(self) -> int:
        return 5


class TensorlikeFive(Five):
    def data_ptr(self) -> int:
        return 0


@pytest.mark.parametrize(("value", "result"), [(3, 3), (-8, -8), (7, 7), (Five(), 5)])
def test_integer_takes(value: object, result: int) -> None:
    assert integer("x", value, -8, 7) == result


@pytest.mark.parametrize("value", [True, 1.0, "1", None, TensorlikeFive(), [1], 1j])
def test_integer_refuses_types(value: object) -> None:
    with pytest.raises(ArgumentTypeError, match="argument 'x'"):
        integer("x", value, -8, 7)


@pytest.mark.parametrize("value", [8, -9, 10**6000, -(10**6000)], ids=["8", "-9", "huge", "-huge"])
def test_integer_refuses_values(value: int) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        integer("x", value, -8, 7)
    assert caught.value.argument == "x"
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("value", "result"),
    [(1, 1.0), (1.5, 1.5), (Fraction(1, 4), 0.25), (-math.inf, -math.inf), (65519.99, 65519.99)],
)
def test_real_takes(value: object, result: float) -> None:
    assert real("x", value, "float16") == result
    assert math.isnan(real("x", math.nan, "float16"))


@pytest.mark.parametrize("value", [True, "1", None, 1j, TensorlikeFive(), [1.0]])
def test_real_refuses_types(value: object) -> None:
    with pytest.raises(ArgumentTypeError):
        real("x", value, "float16")


@pytest.mark.parametrize(
    "value", [65520, -65520.0, 1e300, 10**400, 10**6000, Fraction(10**6000)], ids=lambda v: type(v).__name__
)
def test_real_refuses_values(value: object) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        real("x", value, "float16")
    assert len(str(caught.value)) < 300


def test_boolean() -> None:
    assert boolean("x", True) is True
    for wrong in (0, 1, None, "True"):
        with pytest.raises(ArgumentTypeError):
            boolean("x", wrong)
