"""Which expressions are seen to be equal, to divide, or to hold in every call."""

from __future__ import annotations

import pytest

from trunnion import Expr, Symbol, eq, ge, gt, le, lt, maximum, select
from trunnion.model.expr import as_expr
from trunnion_tilelang.polynomial import divided, equal, holds, product

N = Symbol("n")
M = Symbol("m", min=-5, max=5)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (N * 4 + 12, (N + 3) * 4),
        (N * M * 2, M * (N + N)),
        ((N - 1) + 1, N),
        (N.cast("int32") * 2, N * 2),
        (maximum(N, 1) * 2, maximum(N, 1) + maximum(N, 1)),
        (product((N, M, as_expr(3))), M * N * 3),
    ],
)
def test_equal_however_they_are_written(left, right):
    assert equal(left, right)
    assert not equal(left + 1, right)


def test_what_only_looks_alike_is_not_equal():
    assert not equal(N // 2 * 2, N)
    assert not equal(N, Symbol("m"))


@pytest.mark.parametrize(
    ("expr", "divisor", "quotient"),
    [
        (N * 4, 2, N * 2),
        (N * 4 + 6, 2, N * 2 + 3),
        (as_expr(12), 4, as_expr(3)),
        (N, 1, N),
        (N * M * 8, 8, N * M),
    ],
)
def test_a_quotient_that_is_exact(expr, divisor, quotient):
    found = divided(expr, divisor)
    assert found is not None
    assert equal(found, quotient)


@pytest.mark.parametrize("expr", [N, N * 3, N * 2 + 1, as_expr(7), N // 2])
def test_a_quotient_that_may_have_a_remainder_is_none(expr):
    assert divided(expr, 2) is None


@pytest.mark.parametrize(
    "condition",
    [
        as_expr(1),
        eq(N * 2, N + N),
        eq((N * 4 + 6) % 2, 0),
        ge(N, 0),
        le(0, N),
        gt(N + 1, 0),
        lt(M, 6),
        le(N, N),
        select(eq(N, 3), eq(N, N), as_expr(1)),
        select(eq(N, 3), as_expr(1), ge(N, 0)),
        select(ge(N, 0), as_expr(1), eq(M, 7)),
    ],
)
def test_what_holds_in_every_call(condition):
    assert holds(condition)


@pytest.mark.parametrize(
    "condition",
    [
        as_expr(0),
        eq(N, 3),
        eq(N % 2, 0),
        eq((N * 2) % 2, 1),
        ge(M, 0),
        lt(N, N),
        gt(N, N),
        select(eq(N, 3), as_expr(1), as_expr(0)),
        N,
    ],
)
def test_what_may_fail_is_not_taken_to_hold(condition):
    assert isinstance(condition, Expr)
    assert not holds(condition)
