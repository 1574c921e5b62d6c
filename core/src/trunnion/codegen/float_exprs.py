"""Floating-point expressions over slots, as text of a host language.

One printer for all languages, as of integer expressions: a language is a table. Each operation is one of IEEE 754 on
doubles, in the order in which it is written; infinities and NaN pass through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.model.float_expr import FloatBinary, FloatConst, FloatOp, IntegerValue, SquareRoot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from trunnion.model.float_expr import FloatExpr

__all__ = ["FLOAT_CPP", "FLOAT_PYTHON", "FloatLanguage", "float_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatLanguage:
    """How one host language spells the arithmetic of doubles."""

    operations: Mapping[FloatOp, str]
    """A format of ``{a}`` and ``{b}`` for each operation."""

    square_root: str
    """A format of ``{a}``."""

    literal: Callable[[float], str]
    """Spells a finite double as an operand, exactly."""


def _python_literal(value: float) -> str:
    text = repr(value)
    return f"({text})" if text.startswith("-") else text


def _cpp_literal(value: float) -> str:
    text = value.hex()  # decimal digits a compiler need not round correctly
    return f"({text})" if text.startswith("-") else text


_INFIX = {op: f"({{a}} {op.value} {{b}})" for op in FloatOp}

FLOAT_PYTHON = FloatLanguage(
    operations={**_INFIX, FloatOp.DIV: "divided({a}, {b})"},
    square_root="square_root({a})",
    literal=_python_literal,
)
"""Python, with the operations of `trunnion.launcher.float_arithmetic`: its own raise on division by zero."""

FLOAT_CPP = FloatLanguage(operations=_INFIX, square_root="__builtin_sqrt({a})", literal=_cpp_literal)
"""C++17, compiled with ``-ffp-contract=off``."""


def float_text(language: FloatLanguage, expr: FloatExpr, integers: Iterable[str]) -> str:
    """Return the text of a floating-point expression.

    Parameters
    ----------
    language
        The table of the host language.
    expr
        The expression.
    integers
        The text of each of its integer expressions as a double, from left to right.
    """
    texts = iter(integers)

    def printed(node: FloatExpr) -> str:
        match node:
            case FloatConst(value):
                return language.literal(value)
            case IntegerValue():
                return next(texts)
            case SquareRoot(operand):
                return language.square_root.format(a=printed(operand))
            case FloatBinary(op, left, right):
                a = printed(left)
                return language.operations[op].format(a=a, b=printed(right))
        raise TypeError(f"a plan's expression holds a {type(node).__name__}")

    return printed(expr)
