"""Expressions as text, for JSON and for people: a printer and its exact inverse.

The grammar is Python's arithmetic, cut down: integers, symbols, ``+ - * // % << >> & ^ |`` with its precedence,
parentheses and the functions of `trunnion.model.expr` by name. A symbol whose name is not a plain word is written as a
JSON string; a fact of the device is ``device.warp_size`` or ``occupancy("kernel", 256, 0)``, unlike any symbol.
It is read by `trunnion.model.precedence`; nothing is ever evaluated as Python.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from trunnion.errors import ExprError, shorten
from trunnion.messages import type_name
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Binary, Cast, Const, Expr, Select, Slot, Symbol, binary, select
from trunnion.model.facts import DeviceFact, Fact, Occupancy
from trunnion.model.op import Op
from trunnion.model.precedence import (
    MAX_NESTING,
    MAX_SHOWN,
    PrecedenceParser,
    expression_text,
    shown,
    unquoted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["brief_expr", "format_expr", "parse_expr"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(
    r'\s*(?P<token>[0-9]+|device\.[A-Za-z0-9_]+|[A-Za-z_][A-Za-z0-9_]*|"(?:[^"\\]|\\.)*"|//|<<|>>|[-+*%&^|(),])',
    re.DOTALL,
)
_MOST_DIGITS = 20
_CALLS = {op.value: op for op in Op if not op.is_infix}
_RESERVED = frozenset({*_CALLS, "select", "cast"})
_BINDING = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "//": 6, "%": 6}
_DEVICE = "device."
_OCCUPANCY = "occupancy"
_FACT = re.compile(r'device\.[a-z0-9_]+|occupancy\("(?:[^"\\]|\\.)*", [0-9]+, [0-9]+\)')


def format_expr(expr: Expr, names: Sequence[str] | None = None) -> str:
    """Return the text of an expression; `parse_expr` gives back an equal one.

    Parameters
    ----------
    expr
        The expression.
    names
        What a plan's slots are called, each by its index; beyond these it is its number. None: slots have no text.

    Raises
    ------
    ExprError
        If the expression holds a slot, and those have no text.
    """
    return "".join(_pieces((expr,), names))


def brief_expr(expr: Expr, names: Sequence[str]) -> str:
    """Return the text of an expression for a message: in ASCII, no brackets around it, without the end of a long one.

    Parameters
    ----------
    expr
        The expression, over slots or symbols.
    names
        What a plan's slots are called.
    """
    parts = _parts(expr, names)
    text = ""
    for piece in _pieces(parts[1:-1] if parts[0] == "(" else parts, names):
        text += piece
        if len(text) > MAX_SHOWN:
            return f"{text[:MAX_SHOWN]}..."
    return text


def _pieces(parts: tuple[Expr | str, ...], names: Sequence[str] | None) -> Iterator[str]:
    """Yield a text from left to right: whoever wants its beginning alone does not pay for the rest."""
    pending = [*reversed(parts)]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            yield part
        else:
            pending += reversed(_parts(part, names))


def _parts(  # noqa: PLR0911 - one line for each kind of node
    expr: Expr, names: Sequence[str] | None
) -> tuple[Expr | str, ...]:
    """Return the text of one node, its operands as they are."""
    match expr:
        case Const(value):
            return (str(value),)
        case Symbol(name):
            return (_word(name),)
        case Fact():
            return (expr.spelled,)
        case Slot(index) if names is not None:
            name = names[index] if index < len(names) else f"slot {index}"
            return (name if _FACT.fullmatch(name) else _word(name),)  # a plan's fact has a slot, too
        case Binary(op, left, right) if op.is_infix:
            return "(", left, f" {op.value} ", right, ")"
        case Binary(op, left, right):
            return f"{op.value}(", left, ", ", right, ")"
        case Select(condition, then, otherwise):
            return "select(", condition, ", ", then, ", ", otherwise, ")"
        case Cast(operand, to):
            return f"cast({to.name}, ", operand, ")"
    raise ExprError(f"{type_name(expr)} has no text")


def _word(name: str) -> str:
    plain = _WORD.fullmatch(name) and name not in _RESERVED
    return name if plain else json.dumps(name)


def parse_expr(text: str, symbol: Callable[[str], Symbol]) -> Expr:
    """Read what `format_expr` wrote, or what a person wrote in the same grammar.

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


class _Parser(PrecedenceParser[Expr]):
    """The grammar of integer expressions."""

    token = _TOKEN
    binding = _BINDING
    nesting = 0

    def joined(self, operator: str, left: Expr, right: Expr) -> Expr:
        return binary(Op(operator), left, right)

    def operand(self) -> Expr:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise ExprError(f"expected at most {MAX_NESTING} levels of nesting")
        operand = self._value(self.next())
        self.nesting -= 1
        return operand

    def _value(self, token: str) -> Expr:
        if token.isdecimal():
            return Const(self._integer(token))
        if token == "-":
            # The sign belongs to the number: 2**63 alone would not fit.
            return Const(-self._integer(self.next())) if self.peek().isdecimal() else -self.operand()
        if token == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if token.startswith('"'):
            return self.symbol(unquoted(token))
        if _WORD.fullmatch(token.removeprefix(_DEVICE)):
            return self._named(token)
        raise ExprError(f"got {shown(token)}, expected a value in {shorten(self.text)}")

    def _integer(self, digits: str) -> int:
        if len(digits) > _MOST_DIGITS:  # so many that Python itself may refuse to read them
            raise ExprError(f"got {shown(digits)}, which does not fit 64 signed bits")
        return int(digits)

    def _named(self, token: str) -> Expr:
        """Return a symbol, a call of a function, or a fact of the device."""
        if token.startswith(_DEVICE):
            return DeviceFact(token.removeprefix(_DEVICE))
        if token == _OCCUPANCY and self.peek() == "(":
            return self._occupancy()
        return self._call(token) if token in _RESERVED else self.symbol(token)

    def _call(self, name: str) -> Expr:
        self.expect("(")
        if name == "cast":
            to = dtype(self.next())
            self.expect(",")
            result = self.expression().cast(to)
        elif name == "select":
            result = select(*self._arguments(3))
        else:
            left, right = self._arguments(2)
            result = binary(_CALLS[name], left, right)
        self.expect(")")
        return result

    def _occupancy(self) -> Expr:
        self.expect("(")
        kernel = self.next()
        if not kernel.startswith('"'):
            raise ExprError(
                f"got {shown(kernel)}, expected a kernel's name in quotes in {shorten(self.text)}"
            )
        numbers = []
        for _ in range(2):
            self.expect(",")
            number = self.next()
            if not number.isdecimal():
                raise ExprError(f"got {shown(number)}, expected a number in {shorten(self.text)}")
            numbers.append(self._integer(number))
        self.expect(")")
        return Occupancy(unquoted(kernel), *numbers)

    def _arguments(self, count: int) -> list[Expr]:
        arguments = [self.expression()]
        for _ in range(count - 1):
            self.expect(",")
            arguments.append(self.expression())
        return arguments
