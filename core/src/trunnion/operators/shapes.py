"""Expressions over sizes that a trace does not know yet: what a launcher computes, computed with torch's symbols."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

from trunnion.launcher.arithmetic import divisor, evaluate, shift_count
from trunnion.model.expr import Binary, Cast, Const, Expr, Select, Slot
from trunnion.model.expr_text import brief_expr
from trunnion.model.op import Op

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["symbolic_condition", "symbolic_value"]


def symbolic_value(expr: Expr, values: Sequence[Any], names: Sequence[str]) -> Any:
    """Return the value of a plan's expression, an int where all values are, else maybe a ``torch.SymInt``.

    Only what depends on a comparison asks a symbol for its value, as ``if`` does, and so does a common divisor, which
    torch's symbols lack: torch then compiles once for each answer. A comparison of a number that only memory knows has
    none yet, and is part of the value. Whether a symbolic value fits 64 bits the call itself checks.

    Parameters
    ----------
    expr
        The expression, over slots.
    values
        The slots' values.
    names
        What the slots are called, for messages.

    Raises
    ------
    ExprError
        If all is known, and a value does not fit; if it divides by what is known to be zero, or shifts too far.
    """
    if all(type(value) is int for value in values):
        return evaluate(expr, values, names)
    match expr:
        case Const(value):
            return value
        case Slot(index):
            return values[index]
        case Select(condition, then, otherwise):
            return _chosen(
                symbolic_condition(condition, values, names),
                lambda: symbolic_value(then, values, names),
                lambda: symbolic_value(otherwise, values, names),
            )
        case Cast(operand):
            return symbolic_value(operand, values, names)
        case Binary(op, left, right):
            a, b = symbolic_value(left, values, names), symbolic_value(right, values, names)
            return _computed(op, a, _admitted(expr, b, names))
    raise TypeError(f"a plan's expression holds a {type(expr).__name__}")


def symbolic_condition(expr: Expr, values: Sequence[Any], names: Sequence[str]) -> Any:
    """Return whether an expression is not 0, a bool where all values are known, else maybe a ``torch.SymBool``.

    Of what is a comparison as a whole no symbol is asked: the graph can assert it. Parameters and errors are those of
    `symbolic_value`.
    """
    if isinstance(expr, Binary) and expr.op in _COMPARISONS:
        left, right = (symbolic_value(one, values, names) for one in (expr.left, expr.right))
        return _COMPARISONS[expr.op](left, right)
    return symbolic_value(expr, values, names) != 0


_COMPARISONS: Final = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def _chosen(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """Return one of two values; both as one if only memory knows which."""
    if type(condition) is bool or condition.node.has_hint():
        return then() if condition else otherwise()
    holds = condition.__sym_ite__(1, 0)
    return holds * then() + (1 - holds) * otherwise()


def _admitted(expr: Binary, right: Any, names: Sequence[str]) -> Any:
    """Return the right operand, if what is known of it is allowed."""
    if expr.op.shifts:
        return shift_count(right, brief_expr(expr, names))
    if expr.op.divides and type(right) is int:
        return divisor(right, brief_expr(expr, names))
    return right


def _computed(op: Op, left: Any, right: Any) -> Any:
    if op in _COMPARISONS:
        return _chosen(_COMPARISONS[op](left, right), lambda: 1, lambda: 0)
    if op in (Op.MIN, Op.MAX):
        import torch  # noqa: PLC0415 - importing trunnion must not import torch

        chosen: Any = torch.sym_min if op is Op.MIN else torch.sym_max  # without annotations
        return chosen(left, right)
    return op.compute(left, right)
