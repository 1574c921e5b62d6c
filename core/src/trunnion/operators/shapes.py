"""Expressions over sizes that a trace does not know yet: what a launcher computes, computed with torch's symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.launcher.arithmetic import evaluate, shift_count
from trunnion.model.expr import Binary, Cast, Const, Expr, Select, Slot
from trunnion.model.expr_text import brief_expr
from trunnion.model.op import Op

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["symbolic_value"]


def symbolic_value(expr: Expr, values: Sequence[Any], names: Sequence[str]) -> Any:
    """Return the value of a plan's expression, an int where all values are, else maybe a ``torch.SymInt``.

    Only what depends on a comparison asks a symbol for its value, as ``if`` does, and so does a common divisor, which
    torch's symbols lack: torch then compiles once for each answer. Whether a symbolic value fits 64 bits the call
    itself checks.

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
        If all is known, and the expression divides by zero, or a value does not fit; if it shifts too far.
    """
    if all(type(value) is int for value in values):
        return evaluate(expr, values, names)
    match expr:
        case Const(value):
            return value
        case Slot(index):
            return values[index]
        case Select(condition, then, otherwise):
            chosen = then if symbolic_value(condition, values, names) else otherwise
            return symbolic_value(chosen, values, names)
        case Cast(operand):
            return symbolic_value(operand, values, names)
        case Binary(op, left, right):
            a, b = symbolic_value(left, values, names), symbolic_value(right, values, names)
            return _computed(op, a, shift_count(b, brief_expr(expr, names)) if op.shifts else b)
    raise TypeError(f"a plan's expression holds a {type(expr).__name__}")


def _computed(op: Op, left: Any, right: Any) -> Any:
    if op in (Op.MIN, Op.MAX):
        import torch  # noqa: PLC0415 - importing trunnion must not import torch

        chosen: Any = torch.sym_min if op is Op.MIN else torch.sym_max  # without annotations
        return chosen(left, right)
    return op.compute(left, right)
