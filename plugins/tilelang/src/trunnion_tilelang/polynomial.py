"""Polynomials: whether two expressions are equal in every call, however they are written.

TileLang simplifies as it lowers, so that a stride that is ``(n + 3) * 4`` by its shape is written ``n * 4 + 12``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from trunnion.model.expr import Binary, Cast, Const, Expr, Op, Select, as_expr

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["divided", "equal", "holds", "product"]

_Monomial = tuple[Expr, ...]
_MOST_TERMS = 256  # beyond, an expression stays as it is: two such are then equal only if they look alike


def _terms(expr: Expr) -> Mapping[_Monomial, int]:
    """Return the coefficient of each product of atoms: of whatever is no sum, difference or product."""
    match expr:
        case Const(value=value):
            return {(): value} if value else {}
        case Cast(operand=operand):  # the same value, or an error at the call
            return _terms(operand)
        case Binary(op=Op.ADD | Op.SUB as op, left=left, right=right):
            found = Counter(_terms(left))
            for atoms, factor in _terms(right).items():
                found[atoms] += factor if op is Op.ADD else -factor
        case Binary(op=Op.MUL, left=left, right=right):
            ours, theirs = _terms(left), _terms(right)
            if len(ours) * len(theirs) > _MOST_TERMS:
                return {(expr,): 1}
            found = Counter()
            for a, x in ours.items():
                for b, y in theirs.items():
                    found[tuple(sorted((*a, *b), key=repr))] += x * y
        case _:
            return {(expr,): 1}
    return {atoms: factor for atoms, factor in found.items() if factor}


def equal(left: Expr, right: Expr) -> bool:
    """Whether two expressions are equal in every call; False if that is not seen."""
    return left == right or _terms(left) == _terms(right)


def product(factors: tuple[Expr, ...]) -> Expr:
    """Return the product of all factors; 1 of none."""
    result = as_expr(1)
    for factor in factors:
        result = result * factor
    return result


def divided(expr: Expr, divisor: int) -> Expr | None:
    """Return an expression divided by a positive constant; None unless the quotient is exact in every call."""
    if divisor == 1:
        return expr
    match expr:
        case Const(value=value):
            return as_expr(value // divisor) if value % divisor == 0 else None
        case Cast(operand=operand):
            return divided(operand, divisor)
        case Binary(op=Op.MUL, left=left, right=right):
            for factor, other in ((left, right), (right, left)):
                quotient = divided(factor, divisor)
                if quotient is not None:
                    return quotient * other
        case Binary(op=Op.ADD | Op.SUB as op, left=left, right=right):
            first, second = divided(left, divisor), divided(right, divisor)
            if first is not None and second is not None:
                return first + second if op is Op.ADD else first - second
    return None


def holds(condition: Expr) -> bool:
    """Whether a condition holds in every call; False if that is not seen."""
    if condition.bounds.low > 0 or condition.bounds.high < 0:
        return True
    match condition:
        case Binary(op=op, left=left, right=right) if op in _CERTAIN:
            return _certain(op, left, right)
        case Select(condition=test, then=then, otherwise=otherwise):
            return holds(then) and (holds(otherwise) or holds(test))
    return False


def _is_multiple(left: Expr, right: Expr) -> bool:
    """Whether the left side is a remainder that is 0 in every call, and the right side is 0."""
    match left:
        case Binary(op=Op.MOD, left=value, right=Const(value=divisor)) if divisor > 0:
            return right == as_expr(0) and divided(value, divisor) is not None
    return False


_CERTAIN = frozenset({Op.EQ, Op.LE, Op.GE, Op.LT, Op.GT})


def _certain(op: Op, left: Expr, right: Expr) -> bool:
    low, high = left.bounds, right.bounds
    match op:
        case Op.EQ:
            return equal(left, right) or _is_multiple(left, right)
        case Op.LE:
            return low.high <= high.low or equal(left, right)
        case Op.GE:
            return low.low >= high.high or equal(left, right)
        case Op.LT:
            return low.high < high.low
    return low.low > high.high
