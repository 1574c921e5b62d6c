"""Expressions and statements as trees: what they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion_tilelang.nodes import Binary, Call, Cast, Load, Node, Not, Select, Seq, Var

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion_tilelang.nodes import Stmt

__all__ = ["children", "leaves", "straight", "subexpressions"]


def children(node: Node) -> tuple[Node, ...]:
    """Return the operands of an expression."""
    match node:
        case Binary(left=left, right=right):
            return (left, right)
        case Not(operand=operand) | Cast(operand=operand):
            return (operand,)
        case Select(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case Call(args=args):
            return args
        case Load(indices=indices):
            return indices
    return ()


def subexpressions(node: Node) -> Iterator[Node]:
    """Yield an expression and all that it is made of."""
    yield node
    for child in children(node):
        yield from subexpressions(child)


def leaves(node: Node) -> Iterator[Var | Load]:
    """Yield the variables of an expression, and the elements of buffers that it loads."""
    for each in subexpressions(node):
        if isinstance(each, (Var, Load)):
            yield each


def straight(statement: Stmt) -> Iterator[Stmt]:
    """Yield the statements that every call runs, in order."""
    match statement:
        case Seq(body=body):
            for each in body:
                yield from straight(each)
        case _:
            yield statement
