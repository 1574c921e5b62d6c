"""One pass over the text of an expression by its operators' precedence: what both grammars of expressions share.

R. W. Floyd, *Syntactic analysis and operator precedence*, 1963. Nothing is ever evaluated as Python.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from trunnion.errors import ExprError, shorten
from trunnion.messages import describe
from trunnion.plain import text as plain_text

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping

    from trunnion.model.expr import Symbol

__all__ = ["MAX_NESTING", "MAX_SHOWN", "PrecedenceParser", "expression_text", "shown", "unquoted"]

MAX_SHOWN = 120  # characters of an expression in a message that names it
MAX_NESTING = 100  # as deep as an expression can be; a level takes at most five Python frames
_MAX_TEXT = 1 << 20

T = TypeVar("T")


def expression_text(text: str) -> str:
    """Return ``text`` as a plain str, if it can be an expression's."""
    plain = plain_text(text)
    if plain is None:
        raise ExprError(f"got {describe(text)}, expected the text of an expression")
    if len(plain) > _MAX_TEXT:
        raise ExprError(f"got {shorten(plain)}, expected an expression of at most {_MAX_TEXT} characters")
    return plain


def shown(token: str) -> str:
    """Return a token as messages name it; an empty one is the text's end."""
    return shorten(token) if token else "the end"


def unquoted(token: str) -> str:
    """Return what a JSON string says."""
    try:
        return str(json.loads(token))
    except ValueError as error:
        raise ExprError(f"got the symbol {shorten(token)}, expected a JSON string") from error


class PrecedenceParser(ABC, Generic[T]):
    """One pass over one text; a grammar says what a token is, how operators bind, and what an operand is."""

    token: re.Pattern[str]
    """Matches white space and a token, which is the group ``token``."""

    binding: Mapping[str, int]
    """How strongly an operator binds, from 1."""

    def __init__(self, text: str, symbol: Callable[[str], Symbol]) -> None:
        self.symbol = symbol
        self.text = text
        self.tokens: list[re.Match[str]] = []
        self.position = 0
        self._read_tokens()

    @abstractmethod
    def operand(self) -> T:
        """Read an operand."""

    @abstractmethod
    def joined(self, operator: str, left: T, right: T) -> T:
        """Return an operation on two operands."""

    def read(self, token: str) -> None:
        """Take note of a token, before any is parsed."""

    def _read_tokens(self) -> None:
        end, length = 0, len(self.text.rstrip())
        while end < length:
            match = self.token.match(self.text, end)
            if match is None:
                raise ExprError(f"unexpected character at {end} of {shorten(self.text)}")
            self.tokens.append(match)
            self.read(match["token"])
            end = match.end()

    def peek(self) -> str:
        """Return the token that comes next; at the end it is empty."""
        return self.tokens[self.position]["token"] if self.position < len(self.tokens) else ""

    def next(self) -> str:
        """Take the token that comes next."""
        token = self.peek()
        self.position += 1
        return token

    def expect(self, token: str) -> None:
        """Take the token that comes next, which must be this one."""
        got = self.next()
        if got != token:
            raise ExprError(f"got {shown(got)}, expected {shorten(token)} in {shorten(self.text)}")

    def whole(self) -> T:
        """Read the whole text."""
        expr = self.expression()
        if self.peek():
            raise ExprError(f"unexpected {shown(self.peek())} in {shorten(self.text)}")
        return expr

    def expression(self) -> T:
        """Read operands and what stands between them; what binds less waits for what binds more."""
        operands = [self.operand()]
        waiting: list[str] = []
        while True:
            binding = self.binding.get(self.peek(), 0)
            while waiting and self.binding[waiting[-1]] >= binding:
                right, left = operands.pop(), operands.pop()
                operands.append(self.joined(waiting.pop(), left, right))
            if not binding:
                return operands.pop()
            waiting.append(self.next())
            operands.append(self.operand())
