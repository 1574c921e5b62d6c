"""What a launcher lets through: the last number that a type holds, and strides that nobody walks."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from trunnion.errors import ArgumentTypeError, ArgumentValueError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, eq, le, symbols

CODE = DeviceCode("cuda", "//")

# The least magnitude that rounds to infinity: the greatest finite value and half a unit.
LIMITS = {
    "float16": 65504.0 + 16.0,
    "bfloat16": 255.0 * 2.0**120 + 2.0**119,
    "float32": 16777215.0 * 2.0**104 + 2.0**103,
}
GREATEST = {
    "float16": struct.pack("<e", 65504.0),
    "bfloat16": bytes.fromhex("7f7f"),
    "float32": bytes.fromhex("ffff7f7f"),
}


def taking(kind: str) -> Any:
    p = ProgramBuilder("p", CODE)
    s = p.scalar("s", kind)
    p.launch("k", (s,), 1, 1)
    return p.build()


@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_scalar_goes_up_to_what_rounds_to_infinity(rig: Any, kind: str, sign: int) -> None:
    r = rig(taking(kind))
    r.program.call((sign * math.nextafter(LIMITS[kind], 0),), device=0)
    (passed,) = r.facade.launched[0].parameters
    assert (passed[:-1], passed[-1] & 0x7F) == (GREATEST[kind][:-1], GREATEST[kind][-1])
    with pytest.raises(ArgumentValueError) as caught:
        r.program.call((sign * LIMITS[kind],), device=0)
    assert caught.value.argument == "s"
    assert len(r.facade.launched) == 1


def test_the_limit_of_float16_is_in_plain_numbers(rig: Any) -> None:
    r = rig(taking("float16"))
    r.program.call((65519.99,), device=0)
    with pytest.raises(ArgumentValueError):
        r.program.call((65520.0,), device=0)


def test_a_double_has_no_limit(rig: Any) -> None:
    r = rig(taking("float64"))
    r.program.call((1.7976931348623157e308,), device=0)
    assert r.facade.launched[0].parameters == (struct.pack("<d", 1.7976931348623157e308),)


def test_the_strides_of_an_empty_tensor_do_not_matter(rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("p", CODE)
    m, n = symbols("m n")
    x = p.input("x", "float32", (m, n))
    y = p.input("y", "float32", (3, m), strides=(m + 8, 1))
    p.launch("k", (x, y), 1, 1)
    r = rig(p.build())
    r.program.call((tensor("float32", 0, 4), tensor("float32", 3, 0, strides=(1, 9))))
    r.program.call((tensor("float32", 2, 4), tensor("float32", 3, 2, strides=(10, 1))))
    assert len(r.facade.launched) == 2
    with pytest.raises(ArgumentValueError) as caught:
        r.program.call((tensor("float32", 2, 4), tensor("float32", 3, 2, strides=(1, 9))))
    assert caught.value.argument == "y"


def switched() -> Any:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    f = Symbol("f", max=1)
    x = p.input("x", "float32", (n,))
    p.scalar("flag", "bool", f)
    p.check(le(n * f, 100), "at most 100 elements where there is a flag")
    p.launch("k", (x, n * f + f), n + f, 32)
    p.launch("only", (x,), 1, 32, when=f)
    p.launch("otherwise", (x,), 1, 32, when=eq(f, 0))
    return p.build()


def test_a_boolean_under_a_symbol_is_0_or_1_in_expressions_of_every_call(rig: Any, tensor: Any) -> None:
    r, x = rig(switched()), tensor("float32", 7)
    for flag in (False, True, False, True):
        r.facade.launched.clear()
        r.program.entry(x, flag)
        first, second = r.facade.launched
        assert struct.unpack("<q", first.parameters[1]) == (8 * flag,)
        assert first.shape[0] == 7 + flag
        assert second.kernel == ("only" if flag else "otherwise")
    r.program.entry(tensor("float32", 101), False)
    with pytest.raises(ArgumentValueError):
        r.program.entry(tensor("float32", 101), True)


def test_a_boolean_under_a_symbol_is_still_no_number(rig: Any, tensor: Any) -> None:
    r = rig(switched())
    for other in (0, 1, 1.0, None):
        with pytest.raises(ArgumentTypeError) as caught:
            r.program.entry(tensor("float32", 7), other)
        assert caught.value.argument == "flag"
    assert not r.facade.launched


def test_a_boolean_under_a_symbol_is_an_extent_that_is_an_integer(rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("p", CODE)
    f = Symbol("f", max=1)
    x = p.input("x", "float32", (4,))
    given = p.scalar("flag", "bool", f)
    y = p.output("y", "float32", (f, 3))
    p.launch("k", (x, given, y), 1, 32)
    r = rig(p.build())
    found = r.program.entry(tensor("float32", 4), True)
    assert tuple(found.shape) == (1, 3)
    assert type(found.shape[0]) is int
    assert r.facade.launched[0].parameters[1] == b"\x01"
