"""Random floating-point expressions, some of which have no finite value in some calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from trunnion.model.expr import maximum
from trunnion.model.float_expr import FloatCast, FloatExpr, real, sqrt
from trunnion.testing.rounding import FORMATS
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.expressions import expressions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.expr import Symbol
    from trunnion.testing.strategies.draft import Draft

__all__ = ["draw_float", "float_expressions", "like_float"]

_NUMBERS = (0.5, 1.0, 3.0, 0.1, -2.5, 0.0, -0.0, 1e-300, 1e300, 2.0**53, 5e-324)
_OPERATIONS = ("+", "-", "*", "/", "root")


@st.composite
def float_expressions(draw: st.DrawFn, symbols: Sequence[Symbol] = (), depth: int = 3) -> FloatExpr:
    """Draw a floating-point expression over ``symbols``.

    Parameters
    ----------
    draw
        Hypothesis's.
    symbols
        The symbols that may occur.
    depth
        The greatest height above numbers and integer expressions.
    """
    kind = choose(draw, _OPERATIONS) if depth and draw(st.integers(0, 3)) else "leaf"
    if kind == "leaf":
        form = choose(draw, ("number", "integer", *(["symbol", "symbol"] if symbols else [])))
        if form == "number":
            return real(choose(draw, _NUMBERS))
        return real(choose(draw, symbols) if form == "symbol" else draw(expressions(symbols, 1)))
    left = draw(float_expressions(symbols, depth - 1))
    if kind == "root":
        return sqrt(left)
    right = draw(float_expressions(symbols, depth - 1))
    return {"+": left + right, "-": left - right, "*": left * right, "/": left / right}[kind]


def draw_float(draft: Draft) -> FloatCast:
    """Draw a floating-point argument: mostly one that every call has, sometimes one that few do.

    Parameters
    ----------
    draft
        The program.
    """
    kind = choose(draft.draw, ("float32", "float32", "float64", *FORMATS))
    return _value(draft, kind).cast(kind)


def like_float(draft: Draft, argument: FloatCast) -> FloatCast:
    """Draw an argument that fits the same parameter of a kernel.

    Parameters
    ----------
    draft
        The program.
    argument
        What the parameter was given before.
    """
    return _value(draft, argument.to.name).cast(argument.to)


def _value(draft: Draft, kind: str) -> FloatExpr:
    draw = draft.draw
    if not draft.symbols or draw(st.integers(0, 7)) == 0:
        return draw(float_expressions(draft.symbols, 2))
    symbol = choose(draw, draft.symbols)
    safe = maximum(symbol, 1) if draw(st.integers(0, 7)) else symbol
    forms = [1 / sqrt(safe), 1.0 / real(safe), 2 / safe]
    if kind in ("float32", "float64", "bfloat16"):
        forms += [symbol / 3, real(symbol) * 0.1 + 1, sqrt(safe) - 0.25]
    return choose(draw, forms)
