"""The names of kernels of the CPU target: C++ name expressions, and nothing that could be other code.

A name is written into C++ that is compiled. The grammar here has words, numbers, ``::``, ``<``, ``>``, ``,``, ``*``,
``&`` and ``-``, each at the places where a name expression has them, so no text of it can end an expression, open a
string or a comment, or begin a directive.
"""

from __future__ import annotations

import re
from typing import NoReturn

from trunnion.errors import ProgramError, shorten

__all__ = ["kernel_expression"]

_TOKEN = re.compile(r" *(::|[<>,*&-]|[A-Za-z_]\w*|0[xX][0-9a-fA-F]+[uUlL]{0,3}|\d+[uUlL]{0,3})", re.ASCII)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PART = re.compile(r"\w", re.ASCII)
_MOST = 2000  # characters
_DEEPEST = 32  # brackets


def kernel_expression(name: str, field: str) -> str:
    """Return a kernel's name as a C++ expression in one spelling.

    Parameters
    ----------
    name
        A C identifier, or a C++ name with namespaces and template arguments: ``"ns::scale<float, 4>"``.
    field
        What messages call it.

    Raises
    ------
    ProgramError
        If it is anything else.
    """
    parser = _Parser(name, field)
    parser.qualified(0)
    if parser.next:
        parser.refuse()
    return parser.text()


class _Parser:
    """Reads one name from left to right."""

    def __init__(self, name: str, field: str) -> None:
        self._name, self._field = name, field
        self._tokens = self._split()
        self._at = 0

    @property
    def next(self) -> str:
        """The next token; empty at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def refuse(self) -> NoReturn:
        """Raise the error of a name that does not fit the grammar.

        Raises
        ------
        ProgramError
            Always.
        """
        raise ProgramError(
            f"got {shorten(self._name)}, expected a C++ name such as 'scale' or 'ns::scale<float, 4>'",
            field=self._field,
        )

    def text(self) -> str:
        """Return the tokens in one spelling: a space only where two would grow together."""
        parts: list[str] = []
        for token in self._tokens:
            before = parts[-1][-1] if parts else ""
            words = bool(_PART.match(before) and _PART.match(token))
            digraph = before == "<" and token == "::"  # "<:" is another spelling of "["
            parts.append(f" {token}" if words or digraph else token)
        return "".join(parts)

    def qualified(self, depth: int) -> None:
        """Read ``a::b<c>::d``."""
        self._take("::")
        self._segment(depth)
        while self._take("::"):
            self._segment(depth)

    def _segment(self, depth: int) -> None:
        if not _WORD.fullmatch(self.next):
            self.refuse()
        self._at += 1
        if self._take("<"):
            self._arguments(depth + 1)

    def _arguments(self, depth: int) -> None:
        if depth > _DEEPEST:
            self.refuse()
        if self._take(">"):
            return
        self._argument(depth)
        while self._take(","):
            self._argument(depth)
        if not self._take(">"):
            self.refuse()

    def _argument(self, depth: int) -> None:
        """Read a number, a type with its qualifiers, or the address of something that has a name."""
        negative = self._take("-")
        if self.next[:1].isdigit():
            self._at += 1
            return
        if negative:
            self.refuse()
        if self._take("&"):
            self.qualified(depth)
            return
        self.qualified(depth)
        while _WORD.fullmatch(self.next):  # "unsigned long", "float const"
            self._segment(depth)
        while self.next in {"*", "&", "const", "volatile"} and self.next:
            self._at += 1

    def _take(self, token: str) -> bool:
        if self.next != token:
            return False
        self._at += 1
        return True

    def _split(self) -> list[str]:
        tokens, at = [], 0
        if len(self._name) > _MOST:
            self.refuse()
        while at < len(self._name):
            found = _TOKEN.match(self._name, at)
            if found is None:
                if self._name[at:].strip(" "):
                    self.refuse()
                break
            tokens.append(found[1])
            at = found.end()
        return tokens
