"""Expressions of a host function: each computes, over trunnion's integers, what its author meant."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from trunnion import Symbol
from trunnion.model.expr import as_expr
from trunnion.testing.arithmetic import evaluate
from trunnion_tilelang.arithmetic import Arithmetic
from trunnion_tilelang.errors import Refusal
from trunnion_tilelang.nodes import Binary, Call, Cast, Float, Int, Load, Not, Select, Str, Unknown, Var

N, S, U = Var(1, "n", "int32"), Var(2, "s", "int32"), Var(3, "u", "uint32")
SYMBOLS = {
    N.key: Symbol("n", max=2**31 - 1),
    S.key: Symbol("s", min=-(2**31), max=2**31 - 1),
    U.key: Symbol("u", max=2**32 - 1),
}


def no(*_):
    raise Refusal("nothing is loaded here")


def translated(node):
    return Arithmetic(SYMBOLS, no, no).expr(node)


def computed(node, n=10, s=-7, u=5):
    return evaluate(translated(node), {"n": n, "s": s, "u": u})


def op(name, left, right, dtype="int32"):
    return Binary(name, left, right, dtype)


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (op("add", N, Int(3)), 13),
        (op("sub", N, S), 17),
        (op("mul", N, S), -70),
        (op("floordiv", S, Int(2)), -4),
        (op("floormod", S, Int(4)), 1),
        (op("div", N, Int(3)), 3),
        (op("mod", N, Int(3)), 1),
        (op("div", S, Int(3)), -2),
        (op("mod", S, Int(3)), -1),
        (op("min", N, S), -7),
        (op("max", N, S), 10),
        (op("eq", N, Int(10), "bool"), 1),
        (op("ne", N, Int(10), "bool"), 0),
        (op("lt", N, Int(10), "bool"), 0),
        (op("le", N, Int(10), "bool"), 1),
        (op("gt", N, S, "bool"), 1),
        (op("ge", S, N, "bool"), 0),
        (op("and", op("lt", S, N, "bool"), op("lt", N, Int(5), "bool"), "bool"), 0),
        (op("or", op("lt", S, N, "bool"), op("lt", N, Int(5), "bool"), "bool"), 1),
        (Not(op("eq", N, Int(10), "bool")), 0),
        (Cast("int64", N), 10),
        (Cast("bool", S), 1),
        (Select(op("lt", N, Int(5), "bool"), S, N), 10),
        (Call("shift_right", (S, Int(1))), -4),
        (Call("shift_left", (S, Int(3))), -56),
        (Call("bitwise_and", (S, Int(15))), 9),
        (Call("bitwise_and", (Int(7), N)), 2),
        (Call("bitwise_and", (N, Int(6))), 2),
        (Call("bitwise_or", (N, Int(6))), 14),
        (Call("bitwise_xor", (S, N)), -13),
        (Call("shift_left", (S, N)), -7168),
        (Call("shift_right", (S, N)), -1),
        (Call("likely", (N,)), 10),
    ],
)
def test_the_value(node, value):
    assert computed(node) == value


@pytest.mark.parametrize("n", [1, 2, 7, 2**31 - 1])
@pytest.mark.parametrize("s", [-(2**31), -7, -1, 1, 2, 7, 2**31 - 1])
def test_a_quotient_that_truncates_and_what_it_leaves(n, s):
    for left, right, numbers in ((N, S, (n, s)), (S, N, (s, n)), (S, S, (s, s))):
        quotient = computed(op("div", left, right), n=n, s=s)
        assert quotient == math.trunc(Fraction(*numbers))
        assert computed(op("mod", left, right), n=n, s=s) == numbers[0] - numbers[1] * quotient


def test_a_quotient_that_cannot_be_negative_is_rounded_down():
    assert translated(op("div", N, Int(3))) == SYMBOLS[N.key] // 3
    assert translated(op("mod", N, Int(3))) == SYMBOLS[N.key] % 3


def test_a_comparison_of_a_condition_with_a_number_is_a_condition():
    both = op("and", N, Int(4), "bool")
    assert computed(both, n=2) == 1


def test_a_cast_that_can_cut_nothing_off_is_nothing():
    assert translated(Cast("int64", N)) == SYMBOLS[N.key]
    assert translated(Cast("int8", N)) == SYMBOLS[N.key].cast("int8")


def test_an_unsigned_operation_that_would_wrap_is_an_error_at_the_call():
    node = op("floordiv", op("sub", U, Int(6, "uint32"), "uint32"), Int(2, "uint32"), "uint32")
    assert computed(node, u=8) == 1
    with pytest.raises(ArithmeticError, match="uint32"):
        computed(node, u=5)


@pytest.mark.parametrize("count", [Int(20, "uint32"), U])
def test_an_unsigned_shift_that_would_cut_bits_off_is_an_error_at_the_call(count):
    node = op("floordiv", Call("shift_left", (U, count), "uint32"), Int(2, "uint32"), "uint32")
    assert computed(node, u=20) == 20 << 19
    with pytest.raises(ArithmeticError, match="uint32"):
        computed(node, u=1 << 12 if count is not U else 29)


@pytest.mark.parametrize("name", ["shift_right", "bitwise_and", "bitwise_or", "bitwise_xor"])
def test_an_unsigned_operation_that_cannot_wrap_is_no_more_than_itself(name):
    signed, unsigned = (translated(Call(name, (U, Int(6, "uint32")), dtype)) for dtype in ("int32", "uint32"))
    assert signed == unsigned


def test_a_choice_that_is_known_leaves_the_other_side_alone():
    assert translated(Select(Int(1, "bool"), N, Float(1.0, "float32"))) == SYMBOLS[N.key]
    assert translated(Select(Int(0, "bool"), Unknown("Ramp"), Int(3))) == as_expr(3)


@pytest.mark.parametrize(
    ("node", "named"),
    [
        (Call("shift_right", (N, Int(-1))), "shift by -1"),
        (Call("shift_left", (N, Int(64))), "shift by 64"),
        (Call("bitwise_not", (N,)), "bitwise_not"),  # of an unsigned number it is another one
        (Call("log2", (N,)), "log2"),
        (Float(0.5, "float32"), "0.5"),
        (Str("x"), "x"),
        (Unknown("Ramp"), "Ramp"),
        (Var(9, "flag", "bool"), "flag"),
        (Cast("float32", N), "float32"),
        (Load(Var(9, "somewhere", "handle"), (Int(0),)), "loaded"),
        (Call("isnullptr", (N,)), "loaded"),
        (op("floordiv", N, Int(0)), "zero"),
        (op("mul", Int(2**62), Int(4)), "64"),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(node, named):
    with pytest.raises(Refusal) as caught:
        translated(node)
    assert named in str(caught.value)
