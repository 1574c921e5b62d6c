"""Random constants and moved addresses among the arguments of launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from trunnion.model.constant import Constant, const
from trunnion.model.expr import Const, minimum
from trunnion.testing.rounding import SIZES
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.expressions import expressions
from trunnion.testing.strategies.numbers import numbers

if TYPE_CHECKING:
    from trunnion.model.expr import Expr
    from trunnion.model.moved_address import MovedAddress
    from trunnion.model.passed_memory import PassedMemory
    from trunnion.testing.strategies.draft import Draft

__all__ = ["draw_fixed", "draw_like"]


def draw_fixed(draft: Draft) -> list[Constant | MovedAddress]:
    """Draw a constant, a moved address, or both: at least one.

    Parameters
    ----------
    draft
        The program.
    """
    draw = draft.draw
    form = choose(draw, ("moved", "number", "null", "both") if draft.memories else ("number", "null"))
    found: list[Constant | MovedAddress] = []
    if form in ("number", "both"):
        kind = choose(draw, tuple(SIZES))
        found.append(const(draw(numbers(kind)), kind))
    elif form == "null":
        found.append(const(None))
    if form in ("moved", "both"):
        found.append(_draw_moved(draft, choose(draw, draft.memories)))
    return found


def draw_like(draft: Draft, argument: Constant | MovedAddress) -> Constant | MovedAddress:
    """Draw an argument that fits the same parameter of a kernel.

    Parameters
    ----------
    draft
        The program.
    argument
        What the parameter was given before.
    """
    if isinstance(argument, Constant):
        kind = argument.dtype
        return const(None) if kind is None else const(draft.draw(numbers(kind.name)), kind)
    alike = [one for one in draft.memories if one.dtype == argument.memory.dtype]
    return _draw_moved(draft, choose(draft.draw, alike))


def _draw_moved(draft: Draft, memory: PassedMemory) -> MovedAddress:
    """Draw a moved address that mostly lies within its memory, its end included; seldom one that few calls allow."""
    draw = draft.draw
    span = memory.span()
    forms: list[Expr] = [span, span // 2, minimum(span, 1), Const(0), Const(1)]
    if draft.symbols:
        forms += [choose(draw, draft.symbols), draw(expressions(draft.symbols, 2))]
    offset = forms[draw(st.integers(0, len(forms) - 1))]
    possible = offset.bounds.high >= 0 and offset.bounds.low <= span.bounds.high
    return memory.at(offset if possible else span)
