"""How results and errors look: tables and messages for people, JSON for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.traceback import Traceback

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["print_json", "print_line", "print_table", "report_error"]

_PLAIN_WIDTH = 160  # a pipe has no width: wide enough for a row with a digest


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> None:
    """Print a table on the standard output.

    Parameters
    ----------
    title
        What stands above it.
    columns
        The headings.
    rows
        One cell for each column. Nothing in a cell is taken as markup.
    """
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    _console(stderr=False).print(table)


def print_line(text: str, style: str = "") -> None:
    """Print one line on the standard output, none of it taken as markup."""
    _console(stderr=False).print(Text(text, style=style), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value as JSON on the standard output, undecorated."""
    print(json.dumps(value, indent=2, sort_keys=True))  # noqa: T201 - the output of a command is its purpose


def report_error(error: Exception, *, traceback: bool) -> None:
    """Print an error on the standard error: what it says, and its notes.

    Parameters
    ----------
    error
        What was raised.
    traceback
        Whether to show where.
    """
    console = _console(stderr=True)
    if traceback:
        console.print(Traceback.from_exception(type(error), error, error.__traceback__))
    message = Text(f"{type(error).__name__}: ", style="bold red").append(Text(str(error), style="red"))
    console.print(message, soft_wrap=True)
    for note in getattr(error, "__notes__", ()):
        console.print(Text(f"  {note}"), soft_wrap=True)


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    return console
