"""Expressions as text, for JSON and for people: a printer and its exact inverse.

The grammar is Python's arithmetic, cut down: integers, symbols, ``+ - * // % << >> & ^ |`` with its precedence,
parentheses and the functions of `trunnion.model.expr` by name. A symbol whose name is not a plain word is written as a
JSON string; a fact of the device is ``device.warp_size`` or ``occupancy("kernel", 256, 0)``, unlike any symbol.
The parser goes by the operators' precedence (Floyd, *Syntactic analysis and operator precedence*, 1963); nothing is
ever evaluated as Python.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from trunnion.errors import ExprError, shorten
from trunnion.messages import describe, type_name
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Binary, Cast, Const, Expr, Select, Slot, Symbol, binary, select
from trunnion.model.facts import DeviceFact, Fact, Occupancy
from trunnion.model.op import Op
from trunnion.plain import text as plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["brief_expr", "format_expr", "parse_expr"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(
    r'\s*(?:([0-9]{1,20})|(device\.[A-Za-z0-9_]+|[A-Za-z_][A-Za-z0-9_]*)|("(?:[^"\\]|\\.)*")|(//|<<|>>|[-+*%&^|(),]))',
    re.DOTALL,
)
_CALLS = {op.value: op for op in Op if not op.is_infix}
_RESERVED = frozenset({*_CALLS, "select", "cast"})
_BINDING = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "//": 6, "%": 6}
_DEVICE = "device."
_OCCUPANCY = "occupancy"
_FACT = re.compile(r'device\.[a-z0-9_]+|occupancy\("(?:[^"\\]|\\.)*", [0-9]+, [0-9]+\)')
_MAX_TEXT = 1 << 20
_MAX_SHOWN = 120  # characters of an expression in a message that names it
_MAX_NESTING = 100  # as deep as an expression can be; a level takes at most five Python frames


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
        if len(text) > _MAX_SHOWN:
            return f"{text[:_MAX_SHOWN]}..."
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
    plain = plain_text(text)
    if plain is None:
        raise ExprError(f"got {describe(text)}, expected the text of an expression")
    if len(plain) > _MAX_TEXT:
        raise ExprError(f"got {len(plain)} characters, expected an expression of at most {_MAX_TEXT}")
    return _Parser(plain, symbol).whole()


class _Parser:
    """One pass over one text."""

    def __init__(self, text: str, symbol: Callable[[str], Symbol]) -> None:
        self.symbol = symbol
        self.text = text
        self.tokens = self._tokens()
        self.position = 0
        self.nesting = 0

    def _tokens(self) -> list[str]:
        found, end = [], 0
        length = len(self.text.rstrip())
        while end < length:
            match = _TOKEN.match(self.text, end)
            if match is None:
                raise ExprError(f"unexpected character at {end} of {shorten(self.text)}")
            found.append(match.group().strip())
            end = match.end()
        return found

    def _peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self.position += 1
        return token

    def _expect(self, token: str) -> None:
        got = self._next()
        if got != token:
            raise ExprError(f"got {_shown(got)}, expected {shorten(token)} in {shorten(self.text)}")

    def whole(self) -> Expr:
        expr = self._expression()
        if self._peek():
            raise ExprError(f"unexpected {_shown(self._peek())} in {shorten(self.text)}")
        return expr

    def _expression(self) -> Expr:
        """Read operands and what stands between them; what binds less waits for what binds more."""
        operands = [self._operand()]
        waiting: list[str] = []
        while True:
            binding = _BINDING.get(self._peek(), 0)
            while waiting and _BINDING[waiting[-1]] >= binding:
                right, left = operands.pop(), operands.pop()
                operands.append(binary(Op(waiting.pop()), left, right))
            if not binding:
                return operands.pop()
            waiting.append(self._next())
            operands.append(self._operand())

    def _operand(self) -> Expr:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise ExprError(f"expected at most {_MAX_NESTING} levels of nesting")
        operand = self._value(self._next())
        self.nesting -= 1
        return operand

    def _value(self, token: str) -> Expr:
        if token.isdecimal():
            return Const(int(token))
        if token == "-":
            # The sign belongs to the number: 2**63 alone would not fit.
            return Const(-int(self._next())) if self._peek().isdecimal() else -self._operand()
        if token == "(":
            inner = self._expression()
            self._expect(")")
            return inner
        if token.startswith('"'):
            return self.symbol(_unquote(token))
        if _WORD.fullmatch(token.removeprefix(_DEVICE)):
            return self._named(token)
        raise ExprError(f"got {_shown(token)}, expected a value in {shorten(self.text)}")

    def _named(self, token: str) -> Expr:
        """Return a symbol, a call of a function, or a fact of the device."""
        if token.startswith(_DEVICE):
            return DeviceFact(token.removeprefix(_DEVICE))
        if token == _OCCUPANCY and self._peek() == "(":
            return self._occupancy()
        return self._call(token) if token in _RESERVED else self.symbol(token)

    def _call(self, name: str) -> Expr:
        self._expect("(")
        if name == "cast":
            to = dtype(self._next())
            self._expect(",")
            result = self._expression().cast(to)
        elif name == "select":
            result = select(*self._arguments(3))
        else:
            left, right = self._arguments(2)
            result = binary(_CALLS[name], left, right)
        self._expect(")")
        return result

    def _occupancy(self) -> Expr:
        self._expect("(")
        kernel = self._next()
        if not kernel.startswith('"'):
            raise ExprError(
                f"got {_shown(kernel)}, expected a kernel's name in quotes in {shorten(self.text)}"
            )
        numbers = []
        for _ in range(2):
            self._expect(",")
            number = self._next()
            if not number.isdecimal():
                raise ExprError(f"got {_shown(number)}, expected a number in {shorten(self.text)}")
            numbers.append(int(number))
        self._expect(")")
        return Occupancy(_unquote(kernel), *numbers)

    def _arguments(self, count: int) -> list[Expr]:
        arguments = [self._expression()]
        for _ in range(count - 1):
            self._expect(",")
            arguments.append(self._expression())
        return arguments


def _shown(token: str) -> str:
    return shorten(token) if token else "the end"


def _unquote(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError as error:
        raise ExprError(f"got the symbol {shorten(token)}, expected a JSON string") from error
