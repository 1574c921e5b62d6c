"""Constants: arguments of a launch that are the same in every call."""

from __future__ import annotations

import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.errors import ExprError, ProgramError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.constant import const
from trunnion.model.dtypes import DTYPES, dtype
from trunnion.model.expr import Symbol
from trunnion.model.float_expr import sqrt
from trunnion.model.plan import ConstantArgument, KernelParameter
from trunnion.model.program import KernelProgram
from trunnion.testing.strategies.numbers import numbers

TRAVELS = sorted(name for name, row in DTYPES.items() if row.struct_code)


def _program(*args: object) -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    p.launch("k", args, 1, 1)
    return p.build()


@pytest.mark.parametrize(
    ("value", "kind", "data"),
    [
        (0.5, "float32", struct.pack("<f", 0.5)),
        (1, "float64", struct.pack("<d", 1.0)),
        (65519.999, "float16", struct.pack("<e", 65504.0)),
        (1.0 + 2.0**-9, "bfloat16", b"\x80\x3f"),
        (-1, "int8", b"\xff"),
        (2**64 - 1, "uint64", b"\xff" * 8),
        (True, "bool", b"\x01"),
        (1 - 2j, "complex64", struct.pack("<2f", 1.0, -2.0)),
        (448.0, "float8_e4m3fn", b"\x7e"),
        (7, None, struct.pack("<q", 7)),
        (False, None, b"\x00"),
        (None, None, bytes(8)),
    ],
)
def test_a_constant_is_its_bytes(value, kind, data):
    assert const(value, kind).data == data


@pytest.mark.parametrize("kind", TRAVELS)
@given(draws=st.data())
def test_every_type_that_travels_goes_through_json_and_the_plan(kind, draws):
    constant = const(draws.draw(numbers(kind)), kind)
    program = _program(constant, const(None))
    again = KernelProgram.from_json(program.to_json())
    assert again == program
    assert again.to_json() == program.to_json()
    plan = again.plan()
    assert plan.launches[0].args == (
        ConstantArgument(constant.data, dtype(kind)),
        ConstantArgument(bytes(8), None),
    )
    size = dtype(kind).itemsize
    assert [(one.size, one.alignment) for one in plan.kernels[0].parameters] == [(size, size), (8, 8)]


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (const(0.5, "float32"), "const(0.5, float32)"),
        (const(True), "const(True, bool)"),
        (const(1 + 2j, "complex64"), "const((1+2j), complex64)"),
        (const(None), "const(None)"),
    ],
)
def test_a_constant_s_text_is_what_its_author_wrote(one, text):
    assert str(one) == text


def test_a_null_pointer_is_called_one():
    assert _program(const(None)).plan().kernels[0].parameters == (
        KernelParameter(8, 8, "a null pointer (8 bytes)"),
    )


def test_equal_are_those_of_one_type_and_the_same_bytes():
    assert const(0.0, "float32") != const(-0.0, "float32")
    assert const(1, "int32") != const(1, "int64")
    assert const(1, "uint8") != const(True)
    assert const(0, "int64") != const(None)
    assert const(math.nan, "float32") == const(math.nan, "float32")
    assert const(0.1, "float32") == const(struct.unpack("<f", struct.pack("<f", 0.1))[0], "float32")
    assert hash(const(2.0, "float64")) == hash(const(2, "float64"))
    assert const(complex(math.nan, 1.0), "complex64") == const(complex(math.nan, 1.0), "complex64")


@pytest.mark.parametrize(
    ("value", "kind", "field", "text"),
    [
        (0.5, None, "const.dtype", "write const(0.5, 'float32')"),
        (1j, None, "const.dtype", "write const(1j, 'complex64')"),
        (math.inf, None, "const.dtype", "write const(float('inf'), 'float32')"),
        (0.5, "", "const.dtype", "expected"),
        ("0.5", None, "const.dtype", "expected the type of the kernel's parameter"),
        (256, "uint8", "const.value", "got 256, expected a number that fits uint8"),
        (-1, "uint32", "const.value", "expected a number that fits uint32"),
        (1e39, "float32", "const.value", "expected a number that fits float32"),
        (True, "int32", "const.value", "got bool 'True', expected a number that fits int32"),
        (1, "bool", "const.value", "expected a number that fits bool"),
        (0.5, "int32", "const.value", "expected a number that fits int32"),
        (2**63, None, "const.value", "expected a number that fits int64"),
        (1.0, "float4_e2m1fn_x2", "const.value", "expected a number that fits float4_e2m1fn_x2"),
        (1.0, "float31", "const.dtype", "float31"),
        (None, "float32", "const.dtype", "expected no type: const(None)"),
    ],
)
def test_what_no_constant_can_be_is_refused_as_it_is_written(value, kind, field, text):
    with pytest.raises(ProgramError) as caught:
        const(value, kind)
    assert caught.value.field == field
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "write const(0.5, 'float32'); a number of each call is a parameter, scalar('x', 'float32')"),
        (True, "write const(True, 'bool')"),
        (1j, "write const(1j, 'complex64')"),
        (None, "for a null pointer write const(None)"),
        ("n", "an integer expression or a constant"),
        (np.float32(0.5), "write const(value.item(), 'float32'); a number of each call"),
        (np.int32(5), "write const(value.item(), 'int32')"),
    ],
)
def test_a_plain_value_among_arguments_is_refused_with_what_to_write(value, text):
    with pytest.raises(ProgramError) as caught:
        _program(value)
    assert caught.value.field == "launches[0].args[0]"
    assert text in str(caught.value)


def test_a_number_of_another_library_is_refused_with_how_to_make_it_plain():
    for refused in (
        lambda: const(np.float32(0.5), "float32"),
        lambda: Symbol("n") + np.int32(3),
        lambda: sqrt(Symbol("n")) * np.float32(3),
    ):
        with pytest.raises((ProgramError, ExprError), match=r"; a plain number is its \.item\(\)"):
            refused()


def test_a_plain_integer_stays_an_expression():
    assert _program(3).plan().kernels[0].parameters[0].description == "int64 (8 bytes)"


def test_expressions_take_plain_integers():
    with pytest.raises(ExprError, match="an expression takes a plain integer"):
        const(1, "int32") + Symbol("n")


@pytest.mark.parametrize(
    "said",
    [
        {"value": 1, "dtype": None},
        {"value": 0.5, "dtype": "int32"},
        {"value": None, "dtype": "int32"},
        {"value": 1, "dtype": "int32", "more": 1},
        {"value": 1},
        {"dtype": "int32"},
        {"value": "1", "dtype": "int32"},
    ],
)
def test_json_of_no_constant_is_refused(said):
    tree = json.loads(_program(const(1, "int32")).to_json())
    tree["launches"][0]["args"] = [{"const": said}]
    with pytest.raises(ProgramError) as caught:
        KernelProgram.from_json(json.dumps(tree))
    assert caught.value.field.startswith("launches[0].args[0].const")


def test_a_null_pointer_and_an_address_are_one_kind_of_parameter_to_a_kernel():
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    x = p.input("x", "float32", (4,))
    p.launch("k", (x,), 1, 1)
    p.launch("k", (const(None),), 1, 1)
    assert len(p.build().plan().kernels) == 1


def test_a_program_needs_a_backend_that_knows_constants():
    assert _program(const(1, "int32")).plan().requires == {"constants_and_offsets"}
