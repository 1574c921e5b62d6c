"""Calls in which a floating-point expression shows how it was computed: at ties, limits, and where shortcuts differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol
from trunnion.model.float_expr import real, sqrt
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature
from trunnion.model.program import KernelProgram
from trunnion.testing.rounding import FORMATS
from trunnion.testing.strategies.calls import CallSpec
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.limits import Series
from trunnion.testing.strategies.programs import CODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.model.float_expr import FloatCast, FloatExpr

__all__ = ["float_edges"]

_ONES: Final = (Const(1), Const(1), Const(1))
_MOST_CALLS: Final = 16
_LEAST: Final = -(2**63)
_BITS: Final = 53
_WIDE: Final = (2**24 + 1, 2**53 + 1, 2**53 + 3, 2**54 + 2, 2**63 - 1, -(2**53) - 1, -(2**63))
"""Integers that a float or a double rounds; of those that lie midway, both ways."""

_Values = st.SearchStrategy[tuple[int, ...]]


def _tie(draw: st.DrawFn, a: Symbol, _b: Symbol, _c: Symbol) -> tuple[FloatCast, _Values]:
    """Around a number midway between two of a type: at 1, where its greatest one is, and where it begins."""
    kind = choose(draw, ("float16", "bfloat16", "float32", *FORMATS))
    form = FORMATS[kind]
    digits, first = form.fraction_bits + 1, 1 - form.bias
    exponents = (0, 3, (form.greatest >> form.fraction_bits) - form.bias, first, first - (kind != "float64"))
    scale = 2.0 ** (choose(draw, exponents) - _BITS + 1)  # times a number of 53 bits
    step = 1 << (_BITS - digits)
    last = (1 << digits) - 1
    whole = st.sampled_from((1 << (digits - 1), (1 << (digits - 1)) | 1 & last, last - 1, last))
    near = st.tuples(
        whole, st.sampled_from((0, step // 2)), st.sampled_from((0, 1, -1)), st.sampled_from((1, 1, -1))
    )
    values = near.map(lambda parts: ((parts[0] * step + parts[1] + parts[2]) * parts[3],))
    return (real(a) * scale).cast(kind), values


def _quotient(draw: st.DrawFn, a: Symbol, b: Symbol, _c: Symbol) -> tuple[FloatCast, _Values]:
    """Where integers would be divided otherwise, and by 0."""
    value = choose(draw, (a / b, a / (real(b) + 0.5), (a // 2) / b))
    numbers = st.sampled_from((1, 7, 10, -7, -1, 0, 100, *_WIDE))
    divisors = st.sampled_from((3, 10, 7, -3, 2**53 + 1, 6, 11, 3, 10, 7, -7, 0))
    return value.cast(choose(draw, ("float64", "float64", "float32"))), st.tuples(numbers, divisors)


def _root(draw: st.DrawFn, a: Symbol, _b: Symbol, _c: Symbol) -> tuple[FloatCast, _Values]:
    value: FloatExpr = choose(draw, (sqrt(a), 1 / sqrt(a), sqrt(real(a) * 0.3)))
    numbers = st.sampled_from((2, 3, 5, 64, 128, 2**53 + 1, 2**63 - 1, 7, 10, 1, 0, -1))
    return value.cast(choose(draw, ("float64", "float64", "float32"))), numbers.map(lambda number: (number,))


def _fused(draw: st.DrawFn, a: Symbol, b: Symbol, c: Symbol) -> tuple[FloatCast, _Values]:
    """A product that is not exact, less the double that it rounds to: 0, and what a fused operation leaves instead."""
    value = choose(draw, (real(a) * b + c, c + real(a) * b))
    factors = st.tuples(st.integers(2**27, 2**31), st.integers(2**27, 2**31))
    values = factors.map(lambda pair: (*pair, -min(int(float(pair[0] * pair[1])), 2**63 - 1)))
    return value.cast(choose(draw, ("float64", "float32", "bfloat16"))), values


def _between(draw: st.DrawFn, a: Symbol, b: Symbol, _c: Symbol) -> tuple[FloatCast, _Values]:
    """Infinities between, sums that depend on their order, zeros with a sign, integers beyond 2**53."""
    forms = (
        1 / (1 / real(a)),
        (real(a) + b) - b,
        real(a) * 0.1 * b,
        -real(a) * 0.0,
        real(a),
        real(a) * 1e300 * b,
    )
    numbers = st.sampled_from((0, 1, -1, 3, *_WIDE))
    return choose(draw, forms).cast(choose(draw, ("float64", "float64", "float32"))), st.tuples(
        numbers, numbers
    )


_CASES: Final[tuple[Callable[[st.DrawFn, Symbol, Symbol, Symbol], tuple[FloatCast, _Values]], ...]] = (
    _tie, _quotient, _root, _fused, _between,
)  # fmt: skip


@st.composite
def float_edges(draw: st.DrawFn) -> Series:
    """Draw a program that computes floating-point numbers from integers, and integers that show how.

    Every program has an argument of each kind, because a launcher that takes long to build is asked for few programs.

    Parameters
    ----------
    draw
        Hypothesis's.
    """
    arguments, given, params = [], [], []
    for index, case in enumerate(draw(st.permutations(_CASES))):
        a, b, c = (Symbol(f"{name}{index}", min=_LEAST) for name in "abc")
        argument, values = case(draw, a, b, c)
        arguments.append(argument)
        given.append(values)
        params.append([ScalarParam(symbol.name, dtype("int64"), symbol) for symbol in (a, b, c)])
    calls = []
    for _ in range(draw(st.integers(1, _MOST_CALLS))):
        drawn = [draw(values) for values in given]
        calls.append(CallSpec(args=tuple(n for row in drawn for n in (*row, 1, 1)[:3]), device=0))
    launch = KernelLaunch("k", tuple(arguments), _ONES, _ONES)
    signature = Signature(tuple(param for row in params for param in row))
    return Series(KernelProgram("p", signature, (CODE,), (launch,)), tuple(calls))
