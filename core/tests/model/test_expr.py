from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.errors import ExprError, ProgramError
from trunnion.model.dtypes import DTYPES, dtype
from trunnion.model.expr import (
    Binary,
    Cast,
    Const,
    Op,
    Select,
    Slot,
    Symbol,
    as_expr,
    binary,
    ceildiv,
    eq,
    gcd,
    ge,
    gt,
    le,
    lt,
    maximum,
    minimum,
    ne,
    select,
    symbols,
)
from trunnion.model.interval import INT64, INT64_MAX, INT64_MIN, Interval
from trunnion.model.params import PointerParam, ScalarParam, TensorParam

if TYPE_CHECKING:
    from collections.abc import Callable

N, M = symbols("n m")
SMALL = Symbol("small", min=-4, max=4)
FACTOR, COUNT, NAMED = (
    ScalarParam("f", "float32"),
    ScalarParam("count", "int32"),
    ScalarParam("i", "int64", N),
)
VECTOR, ADDRESS = TensorParam("x", "float32", (N,)), PointerParam("p")


@pytest.mark.parametrize(
    ("built", "op", "left", "right"),
    [
        (N + M, Op.ADD, N, M),
        (3 + N, Op.ADD, Const(3), N),
        (N - 3, Op.SUB, N, Const(3)),
        (3 - N, Op.SUB, Const(3), N),
        (N * 3, Op.MUL, N, Const(3)),
        (3 * N, Op.MUL, Const(3), N),
        (N // 3, Op.FLOORDIV, N, Const(3)),
        (3 // N, Op.FLOORDIV, Const(3), N),
        (N % 3, Op.MOD, N, Const(3)),
        (3 % N, Op.MOD, Const(3), N),
        (N << 3, Op.SHL, N, Const(3)),
        (3 << N, Op.SHL, Const(3), N),
        (N >> 3, Op.SHR, N, Const(3)),
        (3 >> N, Op.SHR, Const(3), N),
        (N & 3, Op.AND, N, Const(3)),
        (3 & N, Op.AND, Const(3), N),
        (N | 3, Op.OR, N, Const(3)),
        (3 | N, Op.OR, Const(3), N),
        (N ^ 3, Op.XOR, N, Const(3)),
        (3 ^ N, Op.XOR, Const(3), N),
        (gcd(N, 3), Op.GCD, N, Const(3)),
        (-N, Op.SUB, Const(0), N),
        (ceildiv(N, 3), Op.CEILDIV, N, Const(3)),
        (minimum(N, 3), Op.MIN, N, Const(3)),
        (maximum(3, N), Op.MAX, Const(3), N),
        (eq(N, M), Op.EQ, N, M),
        (ne(N, M), Op.NE, N, M),
        (lt(N, M), Op.LT, N, M),
        (le(N, M), Op.LE, N, M),
        (gt(N, M), Op.GT, N, M),
        (ge(N, M), Op.GE, N, M),
    ],
)
def test_what_operators_build(built: Binary, op: Op, left: object, right: object) -> None:
    assert built == Binary(op, left, right)


@given(st.sampled_from(Op), st.integers(-50, 50), st.integers(-50, 50))
def test_constants_are_folded(op: Op, a: int, b: int) -> None:
    if not op.admits(b):
        with pytest.raises(
            ExprError, match="division by zero" if op.divides else f"a shift by {b}, whatever"
        ):
            binary(op, a, b)
    elif op.compute(a, b) not in INT64:  # a shift of a small number
        with pytest.raises(ExprError, match="64 signed bits"):
            binary(op, a, b)
    else:
        assert binary(op, a, b) == Const(op.compute(a, b))


def test_neutral_elements_vanish() -> None:
    for same in (N + 0, 0 + N, N - 0, N * 1, 1 * N, N // 1):
        assert same is N
    for other in (0 - N, 1 // N, N % 1, ceildiv(N, 1)):
        assert isinstance(other, Binary)


def test_equality_is_structural_and_truth_is_refused() -> None:
    assert symbols("n")[0] + M == N + M
    assert N + M != M + N
    assert hash(N + M) == hash(symbols("n")[0] + M)
    assert Symbol("n", max=5) != N
    for expr in (N, N + 1, Const(0), lt(N, M)):
        with pytest.raises(ExprError, match="no truth value"):
            bool(expr)


@pytest.mark.parametrize("value", [INT64_MIN, INT64_MAX, 0])
def test_constants_fit_64_bits(value: int) -> None:
    assert Const(value).bounds == Interval(value, value)


@pytest.mark.parametrize("value", [INT64_MIN - 1, INT64_MAX + 1])
def test_constants_beyond_64_bits_are_refused(value: int) -> None:
    with pytest.raises(ExprError, match="64 signed bits"):
        Const(value)
    with pytest.raises(ExprError):
        as_expr(value)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Const(INT64_MAX) + 1,
        lambda: Const(INT64_MIN) // -1,
        lambda: ceildiv(INT64_MIN, -1),
        lambda: -Const(INT64_MIN),
        lambda: Const(2**32) * 2**32,
        lambda: Symbol("n", min=1) + INT64_MAX,
        lambda: Symbol("n", min=2) * INT64_MAX,
        lambda: N // 0,
        lambda: N % 0,
        lambda: ceildiv(N, 0),
        lambda: N // Symbol("z", max=0),
        lambda: N << 64,
        lambda: N << -1,
        lambda: N >> 64,
        lambda: 1 >> N - INT64_MAX - 1,
        lambda: Const(1) << 63,
        lambda: Symbol("n", min=1) << 63,
        lambda: gcd(INT64_MIN, 0),
        lambda: N & True,
        lambda: N | 1.5,
        lambda: Symbol("n", min=128).cast("int8"),
        lambda: Symbol("n", min=-9, max=-1).cast("uint64"),
        lambda: N.cast("float32"),
        lambda: N.cast("bool"),
        lambda: N + 1.5,
        lambda: N + True,
        lambda: N * None,
        lambda: "a" + N,
        lambda: select(None, 1, 2),
        lambda: symbols(" "),
    ],
)
def test_what_fails_in_every_call_fails_at_once(build: object) -> None:
    with pytest.raises(ExprError):
        build()


@pytest.mark.parametrize(
    ("expr", "overflow", "zero"),
    [
        (N + M, True, False),
        (N - M, False, False),
        (SMALL * SMALL, False, False),
        (N * M, True, False),
        (N // SMALL, False, True),
        (N % (SMALL + 5), False, False),
        (Symbol("a", min=INT64_MIN) // Symbol("b", min=-1), True, True),
        (Symbol("a", min=INT64_MIN) % Symbol("b", min=1), False, False),
        (ceildiv(N, Symbol("b", min=1)), False, False),
        (lt(N, M), False, False),
        (N << 1, True, False),
        (SMALL << 61, True, False),
        (SMALL << 60, False, False),
        (N >> M, False, False),
        (N & M, False, False),
        (N ^ SMALL, False, False),
        (gcd(N, M), False, False),
        (gcd(Symbol("a", min=INT64_MIN), M), True, False),
    ],
)
def test_only_real_risks_are_flagged(expr: Binary, overflow: bool, zero: bool) -> None:
    assert expr.may_overflow is overflow
    assert expr.may_divide_by_zero is zero
    assert expr.bounds.within(INT64)


def test_only_shifts_that_may_go_too_far_are_flagged() -> None:
    narrow = Symbol("bits", max=63)
    for expr in (N >> SMALL, 1 << Symbol("bits", max=64), N >> M):
        assert expr.may_shift_too_far
    for expr in (N >> narrow, 1 << narrow, N // SMALL, N & M):
        assert not expr.may_shift_too_far


@pytest.mark.parametrize("name", [row.name for row in DTYPES.values() if row.is_integer])
def test_casts_know_their_range(name: str) -> None:
    wide = Symbol("w", min=INT64_MIN).cast(name)
    low, high = dtype(name).integer_range
    assert wide.range == Interval(max(low, INT64_MIN), min(high, INT64_MAX))
    assert wide.may_be_out_of_range is (name != "int64")
    assert wide.bounds == wide.range
    assert not Symbol("s", min=0, max=127).cast(name).may_be_out_of_range


def test_select_joins_and_folds() -> None:
    chosen = select(lt(N, M), SMALL, 9)
    assert chosen == Select(lt(N, M), SMALL, Const(9))
    assert chosen.bounds == Interval(-4, 9)
    assert select(1, N, M) is N
    assert select(0, N, M) is M
    for values in ((N, "no value"), ("no value", N)):
        for condition in (0, 1, N):
            with pytest.raises(ExprError, match="no value"):
                select(condition, *values)


@pytest.mark.parametrize(
    "fields",
    [
        {"min": 5, "max": 4},
        {"multiple_of": 0},
        {"multiple_of": -1},
        {"max": 2**63},
        {"min": -(2**63) - 1},
        {"multiple_of": 2**63},
    ],
)
def test_symbols_with_impossible_bounds_are_refused(fields: dict[str, int]) -> None:
    with pytest.raises(ProgramError, match="symbol 'n'"):
        Symbol("n", **fields)


def test_symbols_takes_words() -> None:
    for names in ("m n\tk", "m, n, k", " m,n ,k, ", "m\nn,k"):
        assert symbols(names) == (Symbol("m"), Symbol("n"), Symbol("k"))


@pytest.mark.parametrize(
    "names", ["", " ", ",", "m,,n", ", m", "m, , n", ["m", "n"], ("m",), None, 3, b"m n"]
)
def test_symbols_are_named_in_one_text(names: object) -> None:
    with pytest.raises(ExprError, match=r"expected one text of names, such as 'm n k' or 'm, n, k'$"):
        symbols(names)


def test_size_is_bounded() -> None:
    deep = N
    for _ in range(99):
        deep = deep + M
    assert deep.depth == 100
    with pytest.raises(ExprError, match="at most 100"):
        deep + M
    wide = minimum(N, M)
    for _ in range(10):
        wide = minimum(wide, wide)
    assert wide.nodes == 2**12 - 1
    with pytest.raises(ExprError, match="at most 100 and 4096"):
        minimum(minimum(wide, wide), N)


@pytest.mark.parametrize("expr", [N, Const(3), N + 1, select(N, 1, M), N.cast("int8"), Slot(0, 0, 5)])
def test_expressions_copy_and_pickle(expr: object) -> None:
    for other in (copy.deepcopy(expr), pickle.loads(pickle.dumps(expr))):  # noqa: S301 - our own bytes
        assert other == expr
        assert (other.bounds, other.depth, other.nodes) == (expr.bounds, expr.depth, expr.nodes)


def test_nodes_match_by_position() -> None:
    match N + 1:
        case Binary(Op.ADD, Symbol("n"), Const(1)):
            pass
        case other:
            pytest.fail(str(other))
    assert Cast.__match_args__ == ("operand", "to")


@pytest.mark.parametrize(("low", "high", "unit"), [(1, 7, 8), (-7, -1, 8), (9, 15, 8)])
def test_a_symbol_that_no_call_could_give_a_value_is_refused(low: int, high: int, unit: int) -> None:
    with pytest.raises(ExprError, match="no multiple of 8"):
        Symbol("n", min=low, max=high, multiple_of=unit)
    assert Symbol("n", min=low, max=high + 1, multiple_of=unit).multiple_of == unit


@pytest.mark.parametrize(
    ("compare", "instead"),
    [
        (lambda: N < 3, "lt(a, b)"),
        (lambda: N <= 3, "le(a, b)"),
        (lambda: N > 3, "gt(a, b)"),
        (lambda: N >= 3, "ge(a, b)"),
        (lambda: ceildiv(N / 3, 2), "ceildiv(a, b)"),
        (lambda: N // (N / 3), "ceildiv(a, b)"),
        (lambda: N * 1.5, "real(n) * 1.5"),
        (lambda: ~N, "-1 - a"),
        (lambda: N**2, "a * a"),
        (lambda: 2**N, "1 << a"),
        (lambda: N + 128.0, "; write 128"),
        (lambda: N * 1.5, "n * 3 // 2"),
        (lambda: N * float("inf"), "n * 3 // 2"),
        (lambda: FACTOR * 0.5, "expressions are of integers: compute with it in the kernel"),
        (lambda: 1 - FACTOR, "expressions are of integers: compute with it in the kernel"),
        (lambda: COUNT + 1, "give it a symbol: scalar('count', 'int32', symbol=n), and write n"),
        (lambda: N * COUNT, "give it a symbol: scalar('count', 'int32', symbol=n), and write n"),
        (lambda: COUNT < 3, "give it a symbol: scalar('count', 'int32', symbol=n), and write n"),
        (lambda: -NAMED, "write its symbol, n"),
        (lambda: NAMED << 2, "write its symbol, n"),
        (lambda: VECTOR + N, "its address is moved by at: x.at(offset)"),
        (lambda: N + VECTOR, "its address is moved by at: x.at(offset)"),
        (lambda: VECTOR // 2, "its extents are the symbols of its shape"),
        (lambda: ADDRESS + 8, "compute with it in the kernel"),
        (lambda: COUNT.cast("int64"), "give it a symbol: scalar('count', 'int32', symbol=n), and write n"),
        (lambda: VECTOR.cast("int64"), "its extents are the symbols of its shape"),
        (lambda: VECTOR[N], "its address is moved by at: x.at(offset)"),
        (lambda: VECTOR[0], "its address is moved by at: x.at(offset)"),
        (lambda: ceildiv(VECTOR, 2), "its extents are the symbols of its shape"),
    ],
)
def test_what_an_expression_cannot_do_says_what_can(compare: Callable[[], object], instead: str) -> None:
    with pytest.raises(ExprError) as caught:
        compare()
    assert instead in str(caught.value)


def test_what_has_no_items_is_no_sequence() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        iter(VECTOR)


@pytest.mark.parametrize("value", [N == 1, N != 1])
def test_a_comparison_by_python_is_refused_with_what_compares(value: bool) -> None:
    with pytest.raises(ExprError, match=r"use eq\(a, b\), not =="):
        as_expr(value)
