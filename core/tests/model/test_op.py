from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trunnion.model.interval import INT64_MAX, INT64_MIN, Interval
from trunnion.model.op import Op

EDGES = st.sampled_from((INT64_MIN, INT64_MIN + 1, -2, -1, 0, 1, 2, INT64_MAX - 1, INT64_MAX))
NUMBERS = st.integers(-9, 9) | EDGES | st.integers(INT64_MIN, INT64_MAX)


@st.composite
def interval_and_member(draw: st.DrawFn) -> tuple[Interval, int]:
    low, value, high = sorted(draw(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
    return Interval(low, high), value


@given(st.sampled_from(Op), interval_and_member(), interval_and_member())
@example(Op.FLOORDIV, (Interval(INT64_MIN, INT64_MIN), INT64_MIN), (Interval(-1, -1), -1))
@example(Op.CEILDIV, (Interval(INT64_MIN, 0), INT64_MIN), (Interval(-1, 1), -1))
def test_bounds_hold_every_value(op: Op, left: tuple[Interval, int], right: tuple[Interval, int]) -> None:
    (a, x), (b, y) = left, right
    if op.divides and y == 0:
        with pytest.raises(ZeroDivisionError):
            op.compute(x, y)
    else:
        assert op.compute(x, y) in op.bounds(a, b)


@pytest.mark.parametrize("op", Op)
def test_bounds_are_tight_on_small_intervals(op: Op) -> None:
    """But for the remainder and comparisons, whose rules are coarse, a bound is a value that is reached."""
    if op is Op.MOD or op.bounds(Interval(0, 0), Interval(9, 9)) == Interval(0, 1):
        return
    spans = [Interval(a, b) for a, b in product(range(-3, 4), repeat=2) if a <= b]
    for a, b in product(spans, spans):
        values = {
            op.compute(x, y)
            for x in range(a.low, a.high + 1)
            for y in range(b.low, b.high + 1)
            if y or not op.divides
        }
        if values:
            assert op.bounds(a, b) == Interval(min(values), max(values)), (op, a, b)


@given(st.integers(), st.integers().filter(bool))
def test_division_rounds_as_named(a: int, b: int) -> None:
    assert Op.FLOORDIV.compute(a, b) * b + Op.MOD.compute(a, b) == a
    assert Op.CEILDIV.compute(a, b) == -Op.FLOORDIV.compute(-a, b)
    assert 0 <= Op.CEILDIV.compute(a, b) - Op.FLOORDIV.compute(a, b) <= 1


@pytest.mark.parametrize("op", Op)
def test_comparisons_give_one_or_zero(op: Op) -> None:
    if op.value in ("eq", "ne", "lt", "le", "gt", "ge"):
        assert [type(op.compute(a, b)) for a, b in ((1, 2), (2, 2), (3, 2))] == [int] * 3
        python = getattr(int, f"__{op.value}__")
        assert [op.compute(a, 2) for a in (1, 2, 3)] == [int(python(a, 2)) for a in (1, 2, 3)]


def test_which_are_infix_and_which_divide() -> None:
    assert {op.value for op in Op if op.is_infix} == {"+", "-", "*", "//", "%"}
    assert {op.value for op in Op if op.divides} == {"//", "%", "ceildiv"}
