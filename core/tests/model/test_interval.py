from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunnion.model.interval import INT64, INT64_MAX, INT64_MIN, Interval

EDGES = st.sampled_from((INT64_MIN, INT64_MIN + 1, -1, 0, 1, 2, INT64_MAX - 1, INT64_MAX))
NUMBERS = st.integers(-9, 9) | EDGES | st.integers(INT64_MIN, INT64_MAX)
INTERVALS = st.tuples(NUMBERS, NUMBERS).map(lambda pair: Interval(min(pair), max(pair)))


def test_int64_is_what_a_register_holds() -> None:
    assert (INT64.low, INT64.high) == (-(2**63), 2**63 - 1)


@given(INTERVALS, INTERVALS)
def test_joined_is_the_least_hull(a: Interval, b: Interval) -> None:
    hull = a.joined(b)
    assert a.within(hull)
    assert b.within(hull)
    assert {hull.low, hull.high} <= {a.low, a.high, b.low, b.high}


@given(INTERVALS, INTERVALS, NUMBERS)
def test_clipped_is_the_intersection_or_one_value(a: Interval, b: Interval, value: int) -> None:
    cut = a.clipped(b)
    assert cut.within(b)
    if a.low <= b.high and b.low <= a.high:
        assert (value in cut) == (value in a and value in b)
    else:
        assert cut.low == cut.high


@given(INTERVALS, NUMBERS)
def test_contains(a: Interval, value: int) -> None:
    assert (value in a) == (a.low <= value <= a.high)


def test_a_quotient_by_nothing_but_zero_has_some_bounds() -> None:
    assert Interval(1, 5) // Interval(0, 0) == Interval(0, 0)
