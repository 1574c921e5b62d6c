"""Checked arithmetic, at the ends of 64 signed bits."""

from __future__ import annotations

import pytest

from trunnion.errors import ExprError
from trunnion.launcher.arithmetic import ceiling, divisor, fits, in_range, quotient, remainder
from trunnion.model.interval import INT64_MAX, INT64_MIN


def test_checked_arithmetic() -> None:
    for fine in (INT64_MIN, 0, INT64_MAX):
        assert fits(fine, "n + 1") == fine
    for wrong in (INT64_MIN - 1, INT64_MAX + 1):
        with pytest.raises(ExprError, match=rf"the value {wrong} of n \+ 1 does not fit 64 signed bits"):
            fits(wrong, "n + 1")
    assert divisor(-3, "n // m") == -3
    with pytest.raises(ExprError, match="division by zero in n // m"):
        divisor(0, "n // m")
    for left, right in ((7, -2), (-7, 2), (INT64_MIN, 1), (0, -1)):
        assert quotient(left, right, "q") == left // right
        assert remainder(left, right, "r") == left % right
        assert ceiling(left, right, "c") == -(-left // right)
    for divide in (quotient, remainder, ceiling):
        with pytest.raises(ExprError, match="division by zero in n // m"):
            divide(INT64_MIN, 0, "n // m")
    for divide in (quotient, ceiling):
        with pytest.raises(ExprError, match="of n // m does not fit 64 signed bits"):
            divide(INT64_MIN, -1, "n // m")
    assert in_range(5, 0, 5, "int8", "n") == 5
    for wrong in (-1, 6):
        with pytest.raises(ExprError, match=rf"the value {wrong} of n does not fit int8 \(0 to 5\)"):
            in_range(wrong, 0, 5, "int8", "n")
