"""Random integer expressions, some of which have no value in some calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from trunnion.errors import ExprError
from trunnion.model.expr import Const, Expr, Op, Symbol, binary, select
from trunnion.testing.strategies.choices import choose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.facts import DeviceFact

__all__ = ["INTEGERS", "expressions", "extents"]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
"""The names of the integer types."""

_EDGES = (
    0,
    1,
    -1,
    2,
    3,
    7,
    127,
    128,
    255,
    256,
    2**15,
    2**31 - 1,
    2**31,
    2**32,
    2**62,
    2**63 - 1,
    -(2**31),
    -(2**63),
)
_SMALL = range(10)
_OPERATIONS = tuple(Op)


@st.composite
def expressions(draw: st.DrawFn, symbols: Sequence[Symbol | DeviceFact] = (), depth: int = 3) -> Expr:
    """Draw an expression over ``symbols``, which may be facts of the device.

    Parameters
    ----------
    draw
        Hypothesis's.
    symbols
        The symbols that may occur.
    depth
        The greatest height; a leaf has 0.
    """
    kind = choose(draw, ("leaf", "binary", "binary", "binary", "select", "cast")) if depth else "leaf"
    if kind == "leaf":
        leaves: list[Sequence[int | Symbol | DeviceFact]] = [
            _SMALL,
            _EDGES,
            *([symbols] * 3 if symbols else []),
        ]
        leaf = choose(draw, choose(draw, leaves))
        return Const(leaf) if isinstance(leaf, int) else leaf
    parts = [
        draw(expressions(symbols, depth - 1)) for _ in range({"binary": 2, "select": 3, "cast": 1}[kind])
    ]
    try:
        if kind == "binary":
            return binary(choose(draw, _OPERATIONS), parts[0], parts[1])
        if kind == "select":
            return select(parts[0], parts[1], parts[2])
        return parts[0].cast(choose(draw, INTEGERS))
    except ExprError:
        return parts[0]  # it has a value in no call, and the model says so at once


@st.composite
def extents(draw: st.DrawFn, symbols: Sequence[Symbol], *, bare: bool = False) -> Expr:
    """Draw an extent that is small and never negative while each of ``symbols`` is.

    Parameters
    ----------
    draw
        Hypothesis's.
    symbols
        Symbols of extents.
    bare
        Whether only symbols and numbers may be drawn.
    """
    number = choose(draw, (1, 2, 3, 4, 5, 8, 0))
    if not symbols or draw(st.integers(0, 3)) == 0:
        return Const(number)
    symbol: Expr = choose(draw, symbols)
    if bare:
        return symbol
    other: Expr = choose(draw, symbols)
    forms: tuple[Expr, ...] = (
        symbol,
        symbol,
        symbol * 2,
        symbol + number,
        symbol // 2,
        binary(Op.CEILDIV, symbol, number or 1),
        binary(Op.MAX, symbol - number, 0),
        binary(Op.MIN, symbol, other),
        select(binary(Op.EQ, symbol % 2, 0), symbol // 2, other),
    )
    return choose(draw, forms)
