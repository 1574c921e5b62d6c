"""Floating-point expressions: arguments of a launch that a call computes from integers."""

from __future__ import annotations

import copy
import json
import math
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.errors import ExprError, ProgramError
from trunnion.launcher.float_arithmetic import divided, evaluate_float, float_bytes, rounded, square_root
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.dtypes import DTYPES, dtype
from trunnion.model.expr import Const, Expr, Slot, Symbol, ceildiv, symbols
from trunnion.model.expr_tree import substitute
from trunnion.model.facts import device, occupancy
from trunnion.model.float_expr import (
    FloatBinary,
    FloatCast,
    FloatConst,
    FloatOp,
    IntegerValue,
    SquareRoot,
    integers_of,
    over_integers,
    real,
    sqrt,
)
from trunnion.model.float_text import brief_float, format_float, parse_float
from trunnion.model.params import Check, ScalarParam
from trunnion.model.plan import FloatArgument, KernelParameter
from trunnion.model.plan.steps import ComputeArguments
from trunnion.model.program import KernelProgram
from trunnion.model.scalars import FLOAT_FORMATS
from trunnion.testing.arithmetic import UncomputableError, evaluate
from trunnion.testing.reference_floats import evaluate_float as evaluate_exactly
from trunnion.testing.rounding import nearest_double
from trunnion.testing.strategies.float_expressions import float_expressions

if TYPE_CHECKING:
    from collections.abc import Callable

N, D = symbols("n d")
SYMBOLS = (N, D, Symbol("sqrt"), Symbol('a "b" c'), Symbol("real"), Symbol("select"))
HALF = real(0.5)
NUMBER = ScalarParam("k", dtype("float32"))


def _program(*args: Any, when: Any = None) -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    p.input("x", "float32", (N, D))
    p.launch("k", args, 1, 1, when=when)
    return p.build()


def _symbol(name: str) -> Symbol:
    return next(one for one in SYMBOLS if one.name == name)


def _value(expr: Any, **values: int) -> float:
    slots = {name: Slot(index, -(2**63), 2**63 - 1) for index, name in enumerate(values)}
    over = over_integers(expr, lambda one: substitute(one, lambda symbol: slots[symbol.name]))
    return evaluate_float(over, list(values.values()), list(values))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (N / 2, "(n / 2.0)"),
        (1 / N, "(1.0 / n)"),
        (2.5 / N, "(2.5 / n)"),
        (N / D, "(n / d)"),
        (1 / sqrt(D), "(1.0 / sqrt(d))"),
        (sqrt(2), "sqrt(2.0)"),
        (sqrt(N * D + 1), "sqrt(real((n * d) + 1))"),
        (real(N) * 0.1, "(n * 0.1)"),
        (0.1 * real(N), "(0.1 * n)"),
        (N * HALF, "(n * 0.5)"),
        (N + HALF, "(n + 0.5)"),
        (N - HALF, "(n - 0.5)"),
        (HALF - N, "(0.5 - n)"),
        (HALF + 1 - 2, "((0.5 + 1.0) - 2.0)"),
        (1 + HALF, "(1.0 + 0.5)"),
        (2 - HALF, "(2.0 - 0.5)"),
        (-sqrt(N), "(-1.0 * sqrt(n))"),
        (real(N // 2), "real(n // 2)"),
        (real(ceildiv(N, 2)), "real(ceildiv(n, 2))"),
        (sqrt(SYMBOLS[2]) * SYMBOLS[4], '(sqrt("sqrt") * "real")'),
        (real(1e-5), "1e-05"),
        (real(-0.0), "-0.0"),
        (real(2**62 + 1), "4.611686018427388e+18"),
        (N / device.warp_size, "(n / real(device.warp_size))"),
        (1 / sqrt(occupancy("k)", (8, 4), 16)), '(1.0 / sqrt(real(occupancy("k)", 32, 16))))'),
    ],
)
def test_an_expression_is_its_operations_as_they_are_written(written: Any, text: str) -> None:
    assert str(written) == text
    assert str(written.cast("float32")) == f"cast(float32, {text})"
    assert parse_float(text, _symbol) == written


@given(float_expressions(SYMBOLS))
def test_a_text_is_read_as_the_expression_that_it_was_written_of(expr: Any) -> None:
    again = parse_float(format_float(expr), _symbol)
    assert again == expr
    assert hash(again) == hash(expr)
    assert format_float(again) == format_float(expr)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "got the end"),
        ("n +", "got the end"),
        ("(n", "got the end, expected ')'"),
        ("sqrt n", "got 'n', expected '('"),
        ("real(n", "got the end, expected ')'"),
        ("real(n / 2)", "unexpected character"),
        ("n // 2", "unexpected '//'"),
        ("1e400", "expected a finite float"),
        ("n n", "unexpected 'n'"),
        ("- n", "expected a value"),
        ('"\\q"', "expected a JSON string"),
        ("n ? 2", "unexpected character at 1"),
        ("(" * 200 + "n" + ")" * 200, "at most 100 levels of nesting"),
        ("real(real(n))", "unexpected '('"),
        (7, "expected the text of an expression"),
    ],
)
def test_what_is_no_expression_is_refused(text: Any, said: str) -> None:
    with pytest.raises(ExprError) as caught:
        parse_float(text, _symbol)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: HALF // 2, "a // b"),
        (lambda: 2 % HALF, "a // b"),
        (lambda: N // HALF, "a // b"),
        (lambda: HALF & 1, "expected an integer"),
        (lambda: 1 | HALF, "expected an integer"),
        (lambda: HALF ^ HALF, "expected an integer"),
        (lambda: 1 << HALF, "expected an integer"),
        (lambda: HALF >> 1, "expected an integer"),
        (lambda: ~HALF, "expected an integer"),
        (lambda: HALF < 1, "a launch's arguments alone"),
        (lambda: HALF**2, "a * a"),
        (lambda: 2**HALF, "sqrt(a)"),
        (lambda: bool(HALF), "no truth value"),
        (lambda: HALF + True, "got bool 'True'"),
        (lambda: HALF + "1", "got str '1'"),
        (lambda: real(math.inf), "expected a finite float"),
        (lambda: real(math.nan), "expected a finite float"),
        (lambda: real(2**64), "does not fit 64 signed bits"),
        (lambda: sqrt(NUMBER), "expressions are of integers: compute with it in the kernel"),
        (lambda: HALF * NUMBER, "expressions are of integers: compute with it in the kernel"),
        (lambda: HALF.cast("float32") * 2, "a cast comes last"),
        (lambda: sqrt(HALF.cast("float32")), "a cast comes last"),
        (lambda: HALF.cast("float32").cast("float16"), "a cast comes last"),
        (lambda: N.cast("float32"), "expected an integer type; write real(n).cast('float32')"),
        (lambda: HALF.cast("int32"), "expected a float type"),
        (lambda: HALF.cast("complex64"), "expected a float type"),
        (lambda: HALF.cast("float4_e2m1fn_x2"), "expected a float type"),
        (lambda: FloatConst(1), "expected a finite float"),  # type: ignore[arg-type]  # that is the mistake
        (lambda: Symbol("m", min=N / 2), "expected an integer"),  # type: ignore[arg-type]  # as above
    ],
)
def test_what_an_expression_cannot_do_says_what_can(made: Callable[[], object], said: str) -> None:
    with pytest.raises(ExprError) as caught:
        made()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("made", "field"),
    [
        (lambda p: p.launch("k", (), N / 2, 1), "grid"),
        (lambda p: p.launch("k", (), 1, N / 2), "block"),
        (lambda p: p.launch("k", (), 1, 1, dynamic_smem_bytes=N / 2), "dynamic_smem_bytes"),
        (lambda p: p.launch("k", (), 1, 1, when=N / 2), "when"),
        (lambda p: p.input("y", "float32", (N / 2,)), "shape"),
        (lambda p: p.input("y", "float32", (N,), strides=(N / 2,)), "strides"),
        (lambda p: p.input("y", "float32", (N,)).at(N / 2), "at.offset"),
        (lambda _: Check(N / 2, "no"), "condition"),
    ],
)
def test_where_an_integer_is_needed_a_float_is_refused(made: Callable[[Any], object], field: str) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    with pytest.raises(ProgramError) as caught:
        made(p)
    assert field in str(caught.value)
    assert "got a floating-point expression, expected" in str(caught.value)
    assert "ceildiv(a, b)" in str(caught.value)


def test_equality_is_of_structure_and_tells_zeros_apart() -> None:
    assert real(N) + 1 == real(N) + 1.0
    assert real(N) + 1 != 1 + real(N)
    assert real(0.0) != real(-0.0)
    assert HALF.cast("float32") != HALF.cast("float64")
    assert len({real(0.0), real(-0.0), real(0)}) == 2
    assert copy.deepcopy(1 / sqrt(N)) == 1 / sqrt(N)


def test_nothing_is_folded_or_reordered() -> None:
    assert real(1) / 3 == FloatBinary(FloatOp.DIV, FloatConst(1.0), FloatConst(3.0))
    assert real(N) * 1 + 0 != real(N)
    assert sqrt(4) == SquareRoot(FloatConst(4.0))


def _nested(count: int) -> Any:
    deep: Any = real(N)
    for _ in range(count):
        deep = deep + 1
    return deep


def _doubled(count: int) -> Any:
    wide: Any = real(N)
    for _ in range(count):
        wide = wide + wide
    return wide


def test_a_tree_is_bounded_in_depth_and_in_nodes() -> None:
    deepest = _nested(98)
    assert parse_float(format_float(deepest), _symbol) == deepest
    with pytest.raises(ExprError, match="depth 101"):
        _nested(99)
    with pytest.raises(ExprError, match="nodes"):
        _doubled(11)


@pytest.mark.parametrize("kind", sorted(FLOAT_FORMATS))
def test_every_float_type_goes_through_json_and_the_plan(kind: str) -> None:
    program = _program((1 / sqrt(D)).cast(kind), N.cast("int32"))
    again = KernelProgram.from_json(program.to_json())
    assert again == program
    assert again.to_json() == program.to_json()
    plan = program.plan()
    (launch,) = plan.launches
    slot = Slot(1, 0, 2**63 - 1)
    assert launch.args[0] == FloatArgument(1 / SquareRoot(IntegerValue(slot)), dtype(kind))
    size = DTYPES[kind].itemsize
    unit = "byte" if size == 1 else "bytes"
    assert plan.kernels[0].parameters[0] == KernelParameter(size, size, f"{kind} ({size} {unit})")
    assert "float_expressions" in plan.requires


def test_without_a_cast_it_travels_as_a_double() -> None:
    program = _program(N / 3)
    assert program.launches[0].args == (FloatCast(real(N) / 3, dtype("float64")),)
    (row,) = json.loads(program.to_json())["launches"][0]["args"]
    assert row == {"float": {"expr": "(n / 3.0)", "dtype": "float64"}}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"expr": "n / "}, "launches[0].args[0].float.expr"),
        ({"expr": "m / 2.0"}, "launches[0].args[0].float.expr"),
        ({"expr": 1}, "launches[0].args[0].float.expr"),
        ({"dtype": "int32"}, "launches[0].args[0].float"),
        ({"dtype": None}, "launches[0].args[0].float.dtype"),
        ({"more": 1}, "launches[0].args[0].float: got unknown fields 'more'"),
    ],
)
def test_a_damaged_document_is_refused_by_its_place(changed: dict[str, Any], field: str) -> None:
    document = json.loads(_program(N / 3).to_json())
    document["launches"][0]["args"][0]["float"] |= changed
    with pytest.raises(ProgramError) as caught:
        KernelProgram.from_json(json.dumps(document))
    assert field in str(caught.value)


def test_its_symbols_must_stand_in_the_signature() -> None:
    with pytest.raises(ProgramError, match=r"symbol 'm' does not stand in the signature"):
        _program(Symbol("m") / 2)
    with pytest.raises(ExprError, match="slot 0 of a plan"):
        _program(IntegerValue(Slot(0, 0, 1)))


def test_what_the_tensors_decide_is_computed_with_them_and_a_scalar_s_number_later() -> None:
    count = Symbol("count")
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    p.input("x", "float32", (N,))
    p.scalar("count", "int64", symbol=count)
    p.launch("k", (N / 3, count / 3, real(1) / 3), 1, 1)
    plan = p.build().plan()
    steps = [
        (str(step.phase), step.action.ordinals)
        for step in plan.steps
        if isinstance(step.action, ComputeArguments)
    ]
    assert steps == [("tensors", (0, 2)), ("values", (1,))]


def test_plans_that_differ_in_a_zero_s_sign_have_other_hashes() -> None:
    assert _program(real(N) * 0.0).plan().hash != _program(real(N) * -0.0).plan().hash
    assert _program(real(N) * 0.0).plan() != _program(real(N) * -0.0).plan()


# Values -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (N / D, 7 / 3),
        (1 / (1 / (real(N) - 7)), 0.0),
        (-(real(N) - 7), -0.0),
        (1 / -(real(N) - 7), -math.inf),
        ((real(N) - 7) / (real(D) - 3), math.nan),
        (sqrt(-real(N)), math.nan),
        (sqrt(-(real(N) - 7)), -0.0),
        (real(N) * 1e300 * 1e300, math.inf),
        (real(N * 2**50) * 2**10, 7 * 2.0**60),
    ],
)
def test_in_between_there_is_what_ieee_754_says(expr: Any, value: float) -> None:
    found = _value(expr, n=7, d=3)
    assert math.isnan(found) if math.isnan(value) else struct.pack("d", found) == struct.pack("d", value)


@pytest.mark.parametrize("whole", [2**53 + 1, 2**53 + 3, 2**63 - 1, -(2**63), -(2**53) - 1, 0])
def test_an_integer_becomes_the_nearest_double(whole: int) -> None:
    assert _value(real(N), n=whole) == float(whole)


def _same(found: float, exact: float) -> bool:
    return struct.pack("d", found) == struct.pack("d", exact) or (math.isnan(found) and math.isnan(exact))


@given(float_expressions((N, D)), st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3))
def test_the_launchers_arithmetic_is_that_of_exact_fractions(expr: Any, n: int, d: int) -> None:
    try:
        wholes = [evaluate(one, {"n": n, "d": d}) for one in integers_of(expr)]
    except UncomputableError:
        with pytest.raises(ExprError):
            _value(expr, n=n, d=d)
        return
    assert _same(_value(expr, n=n, d=d), evaluate_exactly(expr, iter(wholes)))


DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@given(DOUBLES, DOUBLES)
def test_the_helpers_are_right_of_every_pair_of_doubles(a: float, b: float) -> None:
    x, y = FloatConst(a), FloatConst(b)
    for expr in (x / y, x * y, x + y, x - y, sqrt(x), sqrt(x * y)):
        assert _same(evaluate_float(expr, (), ()), evaluate_exactly(expr, iter(())))
    assert _same(divided(a, b), evaluate_exactly(x / y, iter(())))
    assert _same(square_root(a), evaluate_exactly(sqrt(x), iter(())))


@given(st.fractions())
def test_the_oracle_rounds_as_the_machine_does(exact: Any) -> None:
    assert _same(nearest_double(exact), float(exact))


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (math.inf, "float64", "the value inf of n / 2.0 is not finite"),
        (-math.inf, "float32", "the value -inf of n / 2.0 is not finite"),
        (math.nan, "float16", "the value nan of n / 2.0 is not finite"),
        (65520.0, "float16", "the value 65520.0 of n / 2.0 does not fit float16"),
        (-3.5e38, "float32", "the value -3.5e+38 of n / 2.0 does not fit float32"),
        (3.4e38, "bfloat16", "the value 3.4e+38 of n / 2.0 does not fit bfloat16"),
        (480.0, "float8_e4m3fn", "the value 480.0 of n / 2.0 does not fit float8_e4m3fn"),
        (0.0, "float8_e8m0fnu", "the value 0.0 of n / 2.0 does not fit float8_e8m0fnu"),
    ],
)
def test_a_result_that_no_type_holds_is_refused_with_its_value(value: float, kind: str, said: str) -> None:
    with pytest.raises(ExprError) as caught:
        rounded(value, kind, "n / 2.0")
    assert str(caught.value) == said


def test_a_result_is_rounded_once() -> None:
    midway = 1 + 2**-11 + 2**-40  # which float32 rounds to a tie of float16
    argument = FloatArgument(FloatConst(midway), dtype("float16"))
    assert float_bytes(argument, (), ()) == struct.pack("<e", 1 + 2**-10)


def test_a_long_text_is_cut_in_a_message() -> None:
    long: Any = real(N)
    for _ in range(30):
        long = long + 0.125
    assert brief_float(long, ()).endswith("...")
    assert len(brief_float(long, ())) == 123
    assert brief_float(1 / sqrt(N), ()) == "1.0 / sqrt(n)"
    assert brief_float(Symbol("\u20ac") / 2, ()) == '"\\u20ac" / 2.0'


def test_a_constant_beside_nothing_is_an_integer_s_nearest_double() -> None:
    assert real(Const(3)) == FloatConst(3.0)
    assert isinstance(real(N), IntegerValue)
    assert not isinstance(real(N), Expr)
