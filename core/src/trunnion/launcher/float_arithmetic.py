"""Floating-point expressions in a Python launcher: what IEEE 754 says where Python raises, and what results may be.

``+ - *`` of Python's floats are those of binary64, each rounded once to nearest even; ``/`` and ``math.sqrt`` are too,
but raise where the result is an infinity or NaN.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trunnion.launcher.arithmetic import evaluate
from trunnion.launcher.scalars import bfloat16_bits
from trunnion.messages import type_name
from trunnion.model.dtypes import dtype
from trunnion.model.float_expr import FloatBinary, FloatConst, FloatOp, IntegerValue, SquareRoot
from trunnion.model.float_text import brief_float
from trunnion.model.plan import refusals
from trunnion.model.scalars import FLOAT_FORMATS, overflow_limit, scalar_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trunnion.model.float_expr import FloatExpr
    from trunnion.model.plan import FloatArgument

__all__ = ["divided", "float_bytes", "rounded", "square_root"]


def divided(left: float, right: float) -> float:
    """Return a quotient; by zero it is an infinity with the product of both signs, and 0 / 0 is NaN."""
    if right:
        return left / right
    if not left or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def square_root(value: float) -> float:
    """Return a square root; below 0 it is NaN, and that of -0.0 is -0.0."""
    return math.nan if value < 0 else math.sqrt(value)


def rounded(value: float, name: str, text: str) -> float:
    """Return the value of an expression as ``struct`` packs one of a type: itself, or its bits where there is no code.

    Parameters
    ----------
    value
        The double.
    name
        The name of the float type in which it travels.
    text
        The author's text of the expression.

    Raises
    ------
    ExprError
        If it is not finite, or the type cannot hold it once it is rounded.
    """
    if not math.isfinite(value):
        raise refusals.NOT_FINITE(value, text)
    if name == "float64":
        return value
    small = dtype(name).is_small_float
    bits = FLOAT_FORMATS[name].encode(value) if small else 0
    if bits is None or abs(value) >= overflow_limit(name):
        raise refusals.FLOAT_UNFIT(value, text, name)
    if small:
        return bits
    return bfloat16_bits(value) if name == "bfloat16" else value


_OPERATIONS: Mapping[FloatOp, Callable[[float, float], float]] = {
    FloatOp.ADD: lambda a, b: a + b,
    FloatOp.SUB: lambda a, b: a - b,
    FloatOp.MUL: lambda a, b: a * b,
    FloatOp.DIV: divided,
}


def evaluate_float(expr: FloatExpr, values: Sequence[int], names: Sequence[str]) -> float:
    """Return the value of a plan's floating-point expression: the left operand first.

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
        If an integer expression in it has no value.
    """
    match expr:
        case FloatConst(value):
            return value
        case IntegerValue(operand):
            return float(evaluate(operand, values, names))
        case SquareRoot(operand):
            return square_root(evaluate_float(operand, values, names))
        case FloatBinary(op, left, right):
            a = evaluate_float(left, values, names)
            return _OPERATIONS[op](a, evaluate_float(right, values, names))
    raise TypeError(f"a plan's expression holds a {type_name(expr)}")


def float_bytes(
    argument: FloatArgument, values: Sequence[int], names: Sequence[str], place: str = ""
) -> bytes:
    """Return a launch's floating-point number as it travels; errors are those of `evaluate_float` and `rounded`.

    Parameters
    ----------
    argument
        The argument.
    values
        The slots' values.
    names
        What the slots are called, for messages.
    place
        What stands behind the author's text, where the type cannot hold its value.
    """
    value = evaluate_float(argument.value, values, names)
    rounded(value, argument.dtype.name, brief_float(argument.value, names) + place)
    return scalar_bytes(value, argument.dtype, "argument")
