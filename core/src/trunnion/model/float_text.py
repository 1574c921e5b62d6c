"""Floating-point expressions as text, for JSON and for people: a printer and its exact inverse.

Numbers have a point or an exponent and are the shortest that read back as the same double, ``+ - * /`` stand within
parentheses, ``sqrt(x)`` is a function, a symbol stands for the nearest double, and ``real(...)`` holds an integer
expression in the grammar of `trunnion.model.expr_text`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from trunnion.errors import ExprError, shorten
from trunnion.messages import type_name
from trunnion.model.expr import Slot, Symbol
from trunnion.model.expr_text import format_expr, parse_expr
from trunnion.model.float_expr import (
    FloatBinary,
    FloatConst,
    FloatOp,
    IntegerValue,
    SquareRoot,
    as_float,
    float_binary,
    sqrt,
)
from trunnion.model.precedence import (
    MAX_NESTING,
    MAX_SHOWN,
    PrecedenceParser,
    expression_text,
    shown,
    unquoted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.model.float_expr import FloatExpr

__all__ = ["brief_float", "format_float", "parse_float"]

_TOKEN = re.compile(
    r"\s*(?P<token>[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[-+]?[0-9]{1,4})?"
    r"|device\.[A-Za-z0-9_]+|[A-Za-z_][A-Za-z0-9_]*"
    r'|"(?:[^"\\]|\\.)*"|//|<<|>>|[-+*/%&^|(),])',
    re.DOTALL,
)
_RESERVED = ("sqrt", "real")
_BINDING = {"+": 1, "-": 1, "*": 2, "/": 2}


def format_float(expr: FloatExpr, names: Sequence[str] | None = None) -> str:
    """Return the text of a floating-point expression; `parse_float` gives back an equal one.

    Parameters
    ----------
    expr
        The expression.
    names
        What a plan's slots are called, each by its index. None: slots have no text.

    Raises
    ------
    ExprError
        If the expression holds a slot, and those have no text.
    """
    match expr:
        case FloatConst(value):
            return str(value)
        case IntegerValue(Symbol() | Slot() as operand):
            name = format_expr(operand, names)
            return json.dumps(name) if name in _RESERVED else name
        case IntegerValue(operand):
            text = format_expr(operand, names)
            return f"real{text}" if text.startswith("(") else f"real({text})"
        case FloatBinary(op, left, right):
            return f"({format_float(left, names)} {op.value} {format_float(right, names)})"
        case SquareRoot(operand):
            return f"sqrt({format_float(operand, names)})"
    raise ExprError(f"{type_name(expr)} has no text")


def brief_float(expr: FloatExpr, names: Sequence[str]) -> str:
    """Return the text of an expression for a message: in ASCII, no brackets around it, without the end of a long one.

    Parameters
    ----------
    expr
        The expression, over slots or symbols.
    names
        What a plan's slots are called.
    """
    text = format_float(expr, names)
    text = text[1:-1] if isinstance(expr, FloatBinary) else text
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def parse_float(text: str, symbol: Callable[[str], Symbol]) -> FloatExpr:
    """Read what `format_float` wrote, or what a person wrote in the same grammar.

    Parameters
    ----------
    text
        The expression.
    symbol
        Gives the symbol of a name; raises `ExprError` for a name that it does not know.

    Raises
    ------
    ExprError
        If the text is not an expression, saying where.
    """
    return _Parser(expression_text(text), symbol).whole()


class _Parser(PrecedenceParser["FloatExpr"]):
    """The grammar of floating-point expressions."""

    token = _TOKEN
    binding = _BINDING
    open_brackets = 0

    def read(self, token: str) -> None:
        self.open_brackets += (token == "(") - (token == ")")
        if self.open_brackets > MAX_NESTING:
            raise ExprError(f"expected at most {MAX_NESTING} levels of nesting")

    def joined(self, operator: str, left: FloatExpr, right: FloatExpr) -> FloatExpr:
        return float_binary(FloatOp(operator), left, right)

    def operand(self) -> FloatExpr:  # noqa: PLR0911 - one for each kind of token
        token = self.next()
        if token == "-":  # a number's sign is the number's own
            return self._number(f"-{self.next()}")
        if token == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if token == "sqrt":
            self.expect("(")
            inner = self.expression()
            self.expect(")")
            return sqrt(inner)
        if token == "real":
            return IntegerValue(parse_expr(self._bracketed(), self.symbol))
        if token.startswith('"'):
            return as_float(self.symbol(unquoted(token)))
        if token[:1].isalpha() or token.startswith("_"):
            return as_float(self.symbol(token))
        return self._number(token)

    def _number(self, token: str) -> FloatExpr:
        if not token.removeprefix("-")[:1].isdecimal():
            raise ExprError(f"got {shown(token)}, expected a value in {shorten(self.text)}")
        return as_float(float(token))

    def _bracketed(self) -> str:
        """Return the text between the bracket that comes next and the one that closes it."""
        self.expect("(")
        start, level = self.tokens[self.position - 1].end(), 1
        while level:
            token = self.next()
            if not token:
                raise ExprError(f"got the end, expected ')' in {shorten(self.text)}")
            level += (token == "(") - (token == ")")
        return self.text[start : self.tokens[self.position - 1].start("token")]
