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
@example(Op.GCD, (Interval(INT64_MIN, INT64_MIN), INT64_MIN), (Interval(-1, 0), 0))
@example(Op.SHL, (Interval(INT64_MIN, 0), INT64_MIN), (Interval(-1, 64), 63))
@example(Op.XOR, (Interval(-1, 0), -1), (Interval(INT64_MIN, INT64_MAX), INT64_MAX))
@example(Op.CEILDIV, (Interval(INT64_MIN, 0), INT64_MIN), (Interval(-1, 1), -1))
def test_bounds_hold_every_value(op: Op, left: tuple[Interval, int], right: tuple[Interval, int]) -> None:
    (a, x), (b, y) = left, right
    if not op.admits(y):
        with pytest.raises(ZeroDivisionError if op.divides else ValueError):
            op.compute(x, y)
    else:
        assert op.compute(x, y) in op.bounds(a, b)


@pytest.mark.parametrize("op", Op)
def test_bounds_are_tight_on_small_intervals(op: Op) -> None:
    """But for those whose rules are coarse, and comparisons, a bound is a value that is reached."""
    if op in (Op.MOD, Op.GCD, Op.AND, Op.OR, Op.XOR) or op.bounds(Interval(0, 0), Interval(9, 9)) == Interval(
        0, 1
    ):
        return
    spans = [Interval(a, b) for a, b in product(range(-3, 4), repeat=2) if a <= b]
    for a, b in product(spans, spans):
        values = {
            op.compute(x, y)
            for x in range(a.low, a.high + 1)
            for y in range(b.low, b.high + 1)
            if op.admits(y)
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


@pytest.mark.parametrize(
    ("op", "left", "right", "bounds"),
    [
        (Op.AND, (INT64_MIN, INT64_MAX), (7, 7), (0, 7)),
        (Op.AND, (0, 5), (-9, -2), (0, 5)),
        (Op.AND, (-5, 3), (-4, 9), (-16, 9)),
        (Op.AND, (-5, -3), (-4, -2), (-8, -3)),
        (Op.OR, (0, 5), (2, 3), (2, 7)),
        (Op.OR, (-9, -5), (0, 7), (-9, -1)),
        (Op.OR, (-9, 5), (0, 8), (-9, 15)),
        (Op.XOR, (0, 5), (8, 9), (0, 15)),
        (Op.XOR, (-8, -1), (-1, -1), (0, 7)),
        (Op.XOR, (-8, -1), (0, 7), (-8, -1)),
        (Op.XOR, (-8, 0), (0, 7), (-8, 7)),
        (Op.GCD, (0, 9), (-4, 4), (0, 9)),
        (Op.GCD, (0, 9), (-4, -1), (1, 4)),
        (Op.GCD, (1, 3), (-4, 4), (1, 3)),
        (Op.GCD, (1, 9), (2, 4), (1, 4)),
    ],
)
def test_coarse_bounds(
    op: Op, left: tuple[int, int], right: tuple[int, int], bounds: tuple[int, int]
) -> None:
    assert op.bounds(Interval(*left), Interval(*right)) == Interval(*bounds)


@pytest.mark.parametrize("op", [Op.AND, Op.OR, Op.XOR, Op.GCD])
def test_coarse_bounds_hold_on_small_intervals(op: Op) -> None:
    spans = [Interval(a, b) for a, b in product(range(-5, 6), repeat=2) if a <= b]
    for a, b in product(spans, spans):
        bounds = op.bounds(a, b)
        ends = product(range(a.low, a.high + 1), range(b.low, b.high + 1))
        assert all(op.compute(x, y) in bounds for x, y in ends), (op, a, b)


def test_shifts_take_no_more_than_a_value_has_bits() -> None:
    for op in (Op.SHL, Op.SHR):
        assert [op.admits(count) for count in (-1, 0, 63, 64)] == [False, True, True, False]
        for count in (-1, 64, 2**62):
            with pytest.raises(ValueError, match="expected 0 to 63"):
                op.compute(1, count)


def test_which_are_infix_and_which_divide() -> None:
    assert {op.value for op in Op if op.is_infix} == {"+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^"}
    assert {op.value for op in Op if op.shifts} == {"<<", ">>"}
    assert {op.value for op in Op if op.divides} == {"//", "%", "ceildiv"}
