"""`CallText`: the two halves of a generated call, what it holds and what it does."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from trunnion.codegen.writer import SourceWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trunnion.codegen.exprs import ExprPrinter
    from trunnion.model.expr import Expr

__all__ = ["MOST_UNROLLED", "CallText"]

MOST_UNROLLED = 8
"""Statements that are written one by one; beyond, a compiler's time counts more than a nanosecond of a loop's."""


class CallText:
    """The members of the structure ``Call``, and the body of one of its functions.

    Parameters
    ----------
    printer
        Prints expressions in C++.
    members
        The members so far, type by name; shared by all functions of one call.
    """

    def __init__(self, printer: ExprPrinter, members: dict[str, str]) -> None:
        self.out = SourceWriter("  ")
        self.members = members
        self._printer = printer
        self._may_fail = False

    def function(self) -> CallText:
        """Return the text of another function of the same call."""
        return CallText(self._printer, self.members)

    def expr(self, expr: Expr, place: str = "") -> str:
        """Return an expression's text, for the statement that is written next."""
        self._may_fail |= self._printer.may_fail(expr)
        return self._printer.text(expr, place)

    def member(self, kind: str, name: str) -> str:
        """Declare a member, and return its name."""
        self.members[name] = kind
        return name

    def line(self, text: str) -> None:
        """Write one statement, and the way out if an expression of it failed."""
        self.out.line(text)
        if self._may_fail:
            self.out.line("if (failed) return false;")
        self._may_fail = False

    def require(self, condition: str) -> None:
        """Write a call that raises where it returns false."""
        self.out.line(f"if (!{condition}) return false;")

    def each(self, items: Sequence[tuple[int, ...]], statement: Callable[..., str]) -> None:
        """Write one statement for each item, a loop for many neighbours.

        Parameters
        ----------
        items
            The numbers that a statement is made of.
        statement
            Returns the statement for such numbers, each given as C++.
        """
        for run in _runs(items):
            if len(run) <= MOST_UNROLLED:
                for item in run:
                    self.line(statement(*map(str, item)))
                continue
            with self.out.block(f"for (int32_t i = 0; i < {len(run)}; ++i) {{", "}"):
                self.line(statement(*(f"i + {first}" if first else "i" for first in run[0])))

    def refuse(self, wrong: str, raised: str) -> None:
        """Write a check, and what it raises."""
        self.out.line(f"if ({wrong}) return {raised};")

    def store(self, kind: str, name: str, expr: Expr, place: str = "") -> str:
        """Write the lines that compute an expression and keep it in a member; return the member's name."""
        text = self.expr(expr, place)
        self.line(
            f"{self.member(kind, name)} = {text if kind == 'int64_t' else f'static_cast<{kind}>({text})'};"
        )
        return name

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Indent the body under a condition, unless it always holds."""
        if condition == "true":
            yield
        else:
            with self.out.block(f"if ({condition}) {{", "}"):
                yield


def _runs(items: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """Split items where the numbers do not all go up by one."""
    run: list[tuple[int, ...]] = []
    for item in items:
        if run and item != tuple(number + 1 for number in run[-1]):
            yield run
            run = []
        run.append(item)
    if run:
        yield run
