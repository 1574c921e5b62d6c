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
from trunnion.messages import describe, type_name
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
from trunnion.plain import text as plain_text

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
_MAX_TEXT = 1 << 20
_MAX_SHOWN = 120  # characters of an expression in a message that names it
_MAX_NESTING = 100  # as deep as an expression can be


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
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


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
    plain = plain_text(text)
    if plain is None:
        raise ExprError(f"got {describe(text)}, expected the text of an expression")
    if len(plain) > _MAX_TEXT:
        raise ExprError(f"got {len(plain)} characters, expected an expression of at most {_MAX_TEXT}")
    return _Parser(plain, symbol).whole()


class _Parser:
    """One pass over one text, by the operators' precedence."""

    def __init__(self, text: str, symbol: Callable[[str], Symbol]) -> None:
        self.symbol = symbol
        self.text = text
        self.tokens: list[re.Match[str]] = []
        self.position = 0
        self._read_tokens()

    def _read_tokens(self) -> None:
        end, open_brackets = 0, 0
        length = len(self.text.rstrip())
        while end < length:
            match = _TOKEN.match(self.text, end)
            if match is None:
                raise ExprError(f"unexpected character at {end} of {shorten(self.text)}")
            self.tokens.append(match)
            open_brackets += (match["token"] == "(") - (match["token"] == ")")
            if open_brackets > _MAX_NESTING:
                raise ExprError(f"expected at most {_MAX_NESTING} levels of nesting")
            end = match.end()

    def _peek(self) -> str:
        return self.tokens[self.position]["token"] if self.position < len(self.tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self.position += 1
        return token

    def _expect(self, token: str) -> None:
        got = self._next()
        if got != token:
            raise ExprError(f"got {_shown(got)}, expected {shorten(token)} in {shorten(self.text)}")

    def whole(self) -> FloatExpr:
        expr = self._expression()
        if self._peek():
            raise ExprError(f"unexpected {_shown(self._peek())} in {shorten(self.text)}")
        return expr

    def _expression(self) -> FloatExpr:
        operands = [self._operand()]
        waiting: list[str] = []
        while True:
            binding = _BINDING.get(self._peek(), 0)
            while waiting and _BINDING[waiting[-1]] >= binding:
                right, left = operands.pop(), operands.pop()
                operands.append(float_binary(FloatOp(waiting.pop()), left, right))
            if not binding:
                return operands.pop()
            waiting.append(self._next())
            operands.append(self._operand())

    def _operand(self) -> FloatExpr:  # noqa: PLR0911 - one for each kind of token
        token = self._next()
        if token == "-":  # a number's sign is the number's own
            return self._number(f"-{self._next()}")
        if token == "(":
            inner = self._expression()
            self._expect(")")
            return inner
        if token == "sqrt":
            self._expect("(")
            inner = self._expression()
            self._expect(")")
            return sqrt(inner)
        if token == "real":
            return IntegerValue(parse_expr(self._bracketed(), self.symbol))
        if token.startswith('"'):
            return as_float(self.symbol(_unquote(token)))
        if token[:1].isalpha() or token.startswith("_"):
            return as_float(self.symbol(token))
        return self._number(token)

    def _number(self, token: str) -> FloatExpr:
        if not token.removeprefix("-")[:1].isdecimal():
            raise ExprError(f"got {_shown(token)}, expected a value in {shorten(self.text)}")
        return as_float(float(token))

    def _bracketed(self) -> str:
        """Return the text between the bracket that comes next and the one that closes it."""
        self._expect("(")
        start, level = self.tokens[self.position - 1].end(), 1
        while level:
            token = self._next()
            if not token:
                raise ExprError(f"got the end, expected ')' in {shorten(self.text)}")
            level += (token == "(") - (token == ")")
        return self.text[start : self.tokens[self.position - 1].start("token")]


def _shown(token: str) -> str:
    return shorten(token) if token else "the end"


def _unquote(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError as error:
        raise ExprError(f"got the symbol {shorten(token)}, expected a JSON string") from error
