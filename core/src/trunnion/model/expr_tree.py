"""Expressions as trees: walk over the nodes, replace the symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.errors import ExprError
from trunnion.model.expr import Binary, Cast, Expr, Select, Slot, Symbol
from trunnion.model.facts import Fact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["facts_of", "substitute", "symbols_of", "walk"]


def _children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Binary():
            return (expr.left, expr.right)
        case Select():
            return (expr.condition, expr.then, expr.otherwise)
        case Cast():
            return (expr.operand,)
    return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield every node, operands before the operation, left before right."""
    pending: list[tuple[Expr, bool]] = [(expr, False)]  # a node, and whether its operands were yielded
    while pending:
        node, done = pending.pop()
        children = () if done else _children(node)
        if children:
            pending.append((node, True))
            pending += ((child, False) for child in reversed(children))
        else:
            yield node


def symbols_of(expr: Expr) -> Iterator[Symbol]:
    """Yield every occurrence of a symbol, from left to right.

    Raises
    ------
    ExprError
        If the expression holds a plan's slot: those mean nothing in a program.
    """
    for node in walk(expr):
        if isinstance(node, Slot):
            raise ExprError(f"got slot {node.index} of a plan, expected symbols and numbers")
        if isinstance(node, Symbol):
            yield node


def facts_of(expr: Expr) -> Iterator[Fact]:
    """Yield every occurrence of a fact of the device, from left to right."""
    yield from (node for node in walk(expr) if isinstance(node, Fact))


def substitute(expr: Expr, leaf: Callable[[Symbol | Fact], Expr]) -> Expr:
    """Return the expression with every symbol, and every fact of the device, replaced by ``leaf`` of it."""
    match expr:
        case Symbol() | Fact():
            return leaf(expr)
        case Binary():
            return Binary(expr.op, substitute(expr.left, leaf), substitute(expr.right, leaf))
        case Select():
            parts = (substitute(part, leaf) for part in _children(expr))
            return Select(*parts)
        case Cast():
            return Cast(substitute(expr.operand, leaf), expr.to)
    return expr
