"""Saboteurs of floating-point expressions.

What another machine would compute is said by expressions of the same kind, so that any launcher can be made to: a
double less what remains of it beyond 24 bits is a float (Veltkamp, 1968; see Dekker, *A floating-point technique for
extending the available precision*, 1971).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trunnion.model.float_expr import FloatBinary, FloatOp, IntegerValue, SquareRoot
from trunnion.model.plan import FloatArgument
from trunnion.testing.saboteur import Saboteur, each_launch, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.model.float_expr import FloatExpr
    from trunnion.model.plan import LaunchPlan, PlannedLaunch

__all__ = ["FLOAT_SABOTEURS"]

_SPLITTER = 2.0**29 + 1


def _single(value: FloatExpr) -> FloatExpr:
    """Return a value rounded to 24 bits."""
    wide = value * _SPLITTER
    return wide - (wide - value)


def _changed(value: FloatExpr, change: Callable[[FloatExpr], FloatExpr]) -> FloatExpr:
    """Return an expression with a change of each of its nodes, operands first."""
    match value:
        case FloatBinary(op, left, right):
            value = FloatBinary(op, _changed(left, change), _changed(right, change))
        case SquareRoot(operand):
            value = SquareRoot(_changed(operand, change))
    return change(value)


def _with_values(change: Callable[[FloatExpr], FloatExpr]) -> Callable[[LaunchPlan], LaunchPlan]:
    """Return the change of a plan that changes the value of each floating-point argument."""

    def changed(launch: PlannedLaunch) -> PlannedLaunch:
        args = (replace(x, value=change(x.value)) if isinstance(x, FloatArgument) else x for x in launch.args)
        return replace(launch, args=tuple(args))

    return each_launch(changed)


def _single_root(node: FloatExpr) -> FloatExpr:
    return _single(node) if isinstance(node, SquareRoot) else node


def _integer_quotient(node: FloatExpr) -> FloatExpr:
    match node:
        case FloatBinary(FloatOp.DIV, IntegerValue(left), IntegerValue(right)):
            return IntegerValue(left // right)
    return node


def _fused(node: FloatExpr) -> FloatExpr:
    """Round a product and a sum of integers once."""
    match node:
        case FloatBinary(
            FloatOp.ADD, FloatBinary(FloatOp.MUL, IntegerValue(a), IntegerValue(b)), IntegerValue(c)
        ):
            return IntegerValue(a * b + c)
        case FloatBinary(
            FloatOp.ADD, IntegerValue(c), FloatBinary(FloatOp.MUL, IntegerValue(a), IntegerValue(b))
        ):
            return IntegerValue(a * b + c)
    return node


def _everywhere(change: Callable[[FloatExpr], FloatExpr]) -> Callable[[LaunchPlan], LaunchPlan]:
    return _with_values(lambda value: _changed(value, change))


FLOAT_SABOTEURS: tuple[Saboteur, ...] = (
    saboteur(
        "twice-rounded-floats",
        "Rounds what it computes to float32 first.",
        "V11",
        stage="emitter",
        emitted=_with_values(_single),
    ),
    saboteur(
        "single-square-roots",
        "Takes square roots in single precision.",
        "V11",
        stage="emitter",
        emitted=_everywhere(_single_root),
    ),
    saboteur(
        "integer-quotients",
        "Divides integers where doubles are divided.",
        "V11",
        stage="emitter",
        emitted=_everywhere(_integer_quotient),
    ),
    saboteur(
        "fused-multiply-adds",
        "Rounds a product and a sum once.",
        "V11",
        stage="emitter",
        emitted=_everywhere(_fused),
    ),
)
"""The saboteurs."""
