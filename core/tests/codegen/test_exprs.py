from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trunnion.codegen.cpp.exprs import CPP
from trunnion.codegen.exprs import PYTHON, ExprLanguage, ExprPrinter
from trunnion.errors import ExprError
from trunnion.launcher import arithmetic
from trunnion.model.expr import (
    Binary,
    Cast,
    Const,
    Expr,
    Op,
    Select,
    Slot,
    Symbol,
    binary,
    ceildiv,
    gcd,
    lt,
    select,
)
from trunnion.model.interval import INT64, INT64_MAX, INT64_MIN, Interval

EDGES = (INT64_MIN, INT64_MIN + 1, -(2**31), -1, 0, 1, 127, 128, 2**31 - 1, 2**32, INT64_MAX - 1, INT64_MAX)
NAMES = ("x", "y", "z")
NUMBERS = st.integers(-5, 5) | st.sampled_from(EDGES) | st.integers(INT64_MIN, INT64_MAX)


class NoValueError(Exception):
    """Exact arithmetic has no value here."""


def exact(expr: Expr, values: tuple[int, ...]) -> int:
    """Compute with Python's integers, and look at each intermediate value; knows nothing of bounds."""
    match expr:
        case Const(value):
            return value
        case Slot(index):
            return values[index]
        case Select(condition, then, otherwise):
            return exact(then if exact(condition, values) else otherwise, values)
        case Cast(operand, to):
            value = exact(operand, values)
            low, high = to.integer_range
            if not low <= value <= high:
                raise NoValueError
            return value
        case Binary(op, left, right):
            a, b = exact(left, values), exact(right, values)
            if not op.admits(b):
                raise NoValueError
            result = op.compute(a, b)
            if result not in INT64:
                raise NoValueError
            return result
    raise AssertionError


def build(make: object, *args: object) -> Expr:
    try:
        return make(*args)
    except ExprError:  # fails in every call
        return args[0]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Expr, tuple[int, ...]]:
    slots, values = [], []
    for index in range(3):
        low, value, high = sorted(draw(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
        slots.append(Slot(index, low, high))
        values.append(value)
    trees = st.recursive(
        st.sampled_from(slots) | NUMBERS.map(Const),
        lambda inner: (
            st.builds(
                lambda op, a, b: build(lambda x, y: binary(op, x, y), a, b), st.sampled_from(Op), inner, inner
            )
            | st.builds(select, inner, inner, inner)
            | st.builds(
                lambda to, a: build(lambda e: e.cast(to), a),
                st.sampled_from(("int8", "uint8", "int32", "int64", "uint64")),
                inner,
            )
        ),
        max_leaves=12,
    )
    return draw(trees), tuple(values)


def run(expr: Expr, values: tuple[int, ...]) -> int:
    text = ExprPrinter(PYTHON, lambda index: f"v{index}", NAMES).text(expr)
    names = {f"v{index}": value for index, value in enumerate(values)}
    return eval(text, {name: getattr(arithmetic, name) for name in arithmetic.__all__}, names)  # noqa: S307 - what is tested


@settings(max_examples=600)
@given(cases())
@example((Slot(0, INT64_MIN, 0) // Slot(1, -1, 1), (INT64_MIN, -1)))
@example((Slot(0, INT64_MIN, 0) << Slot(1, -1, 64), (-1, 63)))
@example((Slot(0, INT64_MIN, 0) >> Slot(1, 0, 64), (INT64_MIN, 64)))
@example((gcd(Slot(0, INT64_MIN, 0), Slot(1, 0, 0)), (INT64_MIN, 0)))
@example((Slot(0, 0, INT64_MAX) * Slot(1, 0, INT64_MAX), (2**32, 2**31)))
@example((ceildiv(Slot(0, INT64_MIN, 0), Slot(1, -1, -1)), (INT64_MIN, -1)))
def test_printed_text_is_exact_arithmetic(case: tuple[Expr, tuple[int, ...]]) -> None:
    """An equal value, or an `ExprError` exactly where an intermediate value does not exist: so no flag is missing."""
    expr, values = case
    try:
        expected = exact(expr, values)
    except NoValueError:
        with pytest.raises(ExprError):
            run(expr, values)
    else:
        got = run(expr, values)
        assert got == expected
        assert type(got) is int
        assert got in expr.bounds


def test_nothing_is_checked_that_is_proven() -> None:
    small = Slot(0, 0, 100)
    expr = ceildiv(small * 4 + 1, 3).cast("int32")
    assert ExprPrinter(PYTHON, "v{}".format, NAMES).text(expr) == "-(-((v0 * 4) + 1) // 3)"


@pytest.mark.parametrize(
    ("expr", "call"),
    [
        (Slot(0, 0, INT64_MAX) + 1, "fits(v + 1, 'x + 1')"),
        (1 // Slot(0, 0, 5), "quotient(1, v, '1 // x')"),
        (Slot(0, 0, 300) << Slot(0, 0, 64), "shifted_left(v, v, 'x << x')"),
        (Slot(0, 0, 300) >> Slot(0, -1, 6), "shifted_right(v, v, 'x >> x')"),
        (Slot(0, 0, INT64_MAX) << 3, "shifted_left(v, 3, 'x << 3')"),
        ((Slot(0, 0, 300) << 3) ^ gcd(Slot(0, 0, 9), 6), "((v << 3) ^ gcd(v, 6))"),
        (Slot(0, 0, 300).cast("uint8"), "in_range(v, 0, 255, \"uint8\", 'x')"),
    ],
)
def test_what_is_not_proven_is_checked(expr: Expr, call: str) -> None:
    assert call == ExprPrinter(PYTHON, lambda _: "v", NAMES).text(expr)


@pytest.mark.parametrize("language", [PYTHON, CPP])
def test_what_names_the_parts_of_a_deep_expression_does_not_grow_with_its_depth(
    language: ExprLanguage,
) -> None:
    expr: Expr = Slot(0, INT64_MIN, INT64_MAX)
    lengths = []
    for level in range(99):
        expr = expr * Slot(1, INT64_MIN, INT64_MAX)
        if level in (48, 98):
            lengths.append(len(ExprPrinter(language, "v{}".format, ("n" * 9, "m" * 9)).text(expr)))
    assert lengths[1] < 2.5 * lengths[0]
    assert lengths[1] < 99 * 200


def test_a_comparison_is_an_integer_wherever_it_ends_up() -> None:
    assert type(run(lt(Slot(0, 0, 9), 5), (3,))) is int
    assert run(lt(Slot(0, 0, 9), 5) * 7, (3,)) == 7


def test_the_branch_not_taken_is_not_computed() -> None:
    x = Slot(0, 0, 9)
    assert run(select(x, 12 // x, -1), (0,)) == -1


def test_symbols_are_not_printed() -> None:
    with pytest.raises(TypeError, match="Symbol"):
        ExprPrinter(PYTHON, str, NAMES).text(Symbol("n"))


def test_every_operation_is_spelled() -> None:
    assert set(PYTHON.operations) == set(Op)
    assert Interval(0, 1).within(INT64)
