from __future__ import annotations

import pytest

from trunnion.model.dtypes import dtype
from trunnion.model.expr import Cast, Symbol, ceildiv, eq, gcd, ge, gt, le, lt, maximum, minimum, ne, select
from trunnion.testing.arithmetic import UncomputableError, evaluate, integer_range

M, N = Symbol("m", min=-(2**63)), Symbol("n", min=-(2**63))


@pytest.mark.parametrize(
    ("expr", "m", "n", "value"),
    [
        (M // N, 7, -2, -4),
        (M // N, -7, 2, -4),
        (M // N, -7, -2, 3),
        (M // N, 6, -2, -3),
        (M % N, 7, -2, -1),
        (M % N, -7, 2, 1),
        (M % N, -7, -2, -1),
        (ceildiv(M, N), 7, 2, 4),
        (ceildiv(M, N), -7, 2, -3),
        (ceildiv(M, N), 7, -2, -3),
        (M * N - 3, 5, 4, 17),
        (minimum(M, N), 5, -4, -4),
        (maximum(M, N), 5, -4, 5),
        (eq(M, N), 5, 5, 1),
        (ne(M, N), 5, 5, 0),
        (lt(M, N), 5, 5, 0),
        (le(M, N), 5, 5, 1),
        (gt(M, N), 6, 5, 1),
        (ge(M, N), 4, 5, 0),
        (M & N, -4, 7, 4),
        (M & N, -(2**63), -1, -(2**63)),
        (M | N, -8, 3, -5),
        (M | N, 2**53, 2**62, 2**53 + 2**62),
        (M ^ N, -1, 5, -6),
        (M ^ N, -(2**63), 2**63 - 1, -1),
        (M << N, -1, 63, -(2**63)),
        (M << N, 5, 0, 5),
        (M >> N, -(2**63), 63, -1),
        (M >> N, -7, 1, -4),
        (gcd(M, N), -12, 18, 6),
        (gcd(M, N), 0, -5, 5),
        (gcd(M, N), 0, 0, 0),
        (gcd(M, N), -(2**63), 2**62, 2**62),
        (Cast(M, dtype("uint8")), 255, 0, 255),
        (M + N, 2**63 - 1, 0, 2**63 - 1),
    ],
)
def test_values(expr, m, n, value):
    assert evaluate(expr, {"m": m, "n": n}) == value


@pytest.mark.parametrize(
    ("expr", "m", "n"),
    [
        (M + N, 2**63 - 1, 1),
        (M - N, -(2**63), 1),
        (M * N, 2**32, 2**31),
        (M // N, 1, 0),
        (M % N, 1, 0),
        (ceildiv(M, N), 1, 0),
        (M // N, -(2**63), -1),
        (M << N, 0, 64),
        (M << N, 0, -1),
        (M << N, 1, 63),
        (M >> N, 0, 64),
        (M >> N, 0, -(2**63)),
        (gcd(M, N), -(2**63), 0),
        (gcd(M, N), -(2**63), -(2**63)),
        (Cast(M, dtype("uint8")), 256, 0),
        (Cast(M, dtype("int8")), -129, 0),
        ((M + N) - N, 2**63 - 1, 1),
    ],
)
def test_what_has_no_value(expr, m, n):
    with pytest.raises(UncomputableError):
        evaluate(expr, {"m": m, "n": n})


def test_a_selection_computes_one_branch():
    expr = select(eq(N, 0), 5, M // N)
    assert evaluate(expr, {"m": 8, "n": 0}) == 5
    assert evaluate(expr, {"m": 8, "n": 2}) == 4


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_ranges_agree_with_the_table(name):
    assert integer_range(name) == dtype(name).integer_range
