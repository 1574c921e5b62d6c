"""Divisors that are expressions: the quotients are right, and the numbers those that CUTLASS would compute."""

from __future__ import annotations

from real_programs.fast_division import fast_divmod, fast_divmod_by, fast_divmod_shifted

from trunnion import Symbol
from trunnion.model.constant import Constant
from trunnion.testing.arithmetic import evaluate


def numbers(divisor, **values):
    """Return a divisor's three numbers in a call that brings these values."""
    return tuple(
        one.value if isinstance(one, Constant) else evaluate(one, values) for _, one in divisor.fields
    )


def test_divisors_that_follow_from_a_call_divide():
    n, power = Symbol("n", min=1, max=1 << 20), Symbol("power", min=1, max=10)
    for number in (1, 2, 3, 4, 7, 640, 1023, 1025, 1 << 20, (1 << 20) - 1):
        found = [numbers(fast_divmod(n, 20), n=number)]
        found += [numbers(fast_divmod_shifted(n, power, 20), n=number, power=shift) for shift in (1, 5)]
        assert numbers(fast_divmod_by(number)) == found[0]
        for divisor, multiplier, shift in found:
            for dividend in (0, 1, divisor - 1, divisor, 12345, (1 << 31) - 1):
                quotient = dividend if divisor == 1 else (dividend * multiplier >> 32) >> shift
                assert quotient == dividend // divisor
