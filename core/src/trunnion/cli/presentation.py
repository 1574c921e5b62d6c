"""How results and errors look: tables and messages for people, one JSON document for programs.

Nothing that is shown to people can move a cursor or change a colour: what does not print is spelled as an escape.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
import traceback as tracebacks
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console, Group
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import track
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from trunnion.cli.document import plain
from trunnion.errors import ParameterMismatchError
from trunnion.messages import type_name, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TextIO

__all__ = [
    "Report",
    "error_report",
    "print_error",
    "print_line",
    "print_mapping",
    "print_records",
    "print_source",
    "print_step",
    "print_table",
    "progress",
    "reserved_output",
    "usable_text",
    "write_json",
]

_Step = TypeVar("_Step")

_PLAIN_WIDTH = 160  # a pipe has no width: wide enough for a row with a digest
_ANY_WIDTH = 1 << 16  # a table that is measured for less room than it needs says that it needs no more
_MOST_COLUMNS = 10


@dataclass(frozen=True, slots=True)
class Report:
    """What a command found: the same for programs and for people."""

    document: Any
    """What ``--json`` prints."""

    show: Callable[[], None]
    """Prints it for people."""

    status: int = 0
    """The exit status of the command."""


def usable_text(row: Mapping[str, Any]) -> Text:
    """Return whether a plugin can be used in a role, and for which kinds of target if that is not so for all.

    Parameters
    ----------
    row
        ``usable``, ``targets`` and, for those of them that it cannot be used for, ``unusable``.
    """
    if not row["usable"]:
        return Text("no", style="bold red")
    alone = [kind for kind in row["targets"] if kind not in row["unusable"]]
    return Text(f"for {visible(', '.join(alone))} alone" if row["unusable"] else "yes", style="green")


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text]], *, spare: Sequence[str] = ()
) -> None:
    """Print a table on the standard output; where no table fits without breaking words, row by row.

    Parameters
    ----------
    title
        What stands above it.
    columns
        The headings.
    rows
        One cell for each column. Nothing in a cell is taken as markup.
    spare
        The columns that may be left out where there is no room, the first one first.
    """
    console = _console(stderr=False)
    cells = [[cell if isinstance(cell, Text) else Text(visible(cell)) for cell in row] for row in rows]
    print_line(title, "italic")  # not the table's own title, which is broken where the table ends
    for count in range(len(spare) + 1):
        kept = [index for index, name in enumerate(columns) if name not in spare[:count]]
        table = _table([columns[index] for index in kept], [[row[index] for index in kept] for row in cells])
        if Measurement.get(console, console.options.update_width(_ANY_WIDTH), table).minimum <= console.width:
            console.print(table)
            return
    for row in cells:
        console.print(_card(columns, row))


def _table(columns: Sequence[str], rows: Iterable[Sequence[Text]]) -> Table:
    table = Table()
    for column in columns:
        table.add_column(Text(visible(column)), overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _card(columns: Sequence[str], row: Sequence[Text]) -> Group:
    """Return one row of a table as a line for each column."""
    card = Table.grid(padding=(0, 2))
    card.add_column(no_wrap=True)
    card.add_column(overflow="fold")
    for column, cell in zip(columns, row, strict=True):
        card.add_row(Text(visible(column), style="bold"), cell)
    return Group(Text(), card)


def print_records(title: str, records: Sequence[Mapping[str, Any]]) -> None:
    """Print mappings as a table with a column for each name; names that say nothing in any of them are left out.

    Parameters
    ----------
    title
        What stands above.
    records
        The mappings. If one of them holds a table itself, or there are many names, each is printed by itself.
    """
    names = dict.fromkeys(name for record in records for name in record)
    columns = [name for name in names if any(_says_something(record.get(name)) for record in records)]
    if len({record.get("type") for record in records}) == 1:
        columns = [name for name in columns if name != "type"]
    tables = any(_is_table(value) for record in records for value in record.values())
    if tables or len(columns) > _MOST_COLUMNS:
        for index, record in enumerate(records):
            print_mapping(f"{title}[{index}]", record)
        return
    print_table(title, columns, [[_cell(record.get(name)) for name in columns] for record in records])


def print_mapping(title: str, mapping: Mapping[str, Any]) -> None:
    """Print names and values below a title: a line for each, then the tables. What says nothing is left out."""
    print_line(title, "bold")
    lines = {
        name: value for name, value in mapping.items() if _says_something(value) and not _is_table(value)
    }
    width = max((len(visible(name)) for name in lines), default=0)
    for name, value in lines.items():
        print_line(f"  {visible(name):<{width}}  {_cell(value)}")
    for name, value in mapping.items():
        if _is_table(value):
            print_records(f"{title}.{name}", value)


def print_line(text: str, style: str = "") -> None:
    """Print one line on the standard output, none of it taken as markup."""
    _console(stderr=False).print(Text(visible(text), style=style), soft_wrap=True)


def print_step(text: str) -> None:
    """Print one line on the standard error of what long work has done, where no terminal shows how far it is."""
    console = _console(stderr=True)
    if not (console.is_terminal or _console(stderr=False).is_terminal):
        console.print(Text(visible(text)), soft_wrap=True)


def progress(title: str, steps: Sequence[_Step]) -> Iterable[_Step]:
    """Return the steps of long work; while they are taken a terminal shows how far it is, and nothing else is told.

    Parameters
    ----------
    title
        What is being done.
    steps
        The steps. Where the standard output is kept for a document, or is no terminal, they are all that is returned.
    """
    console = _console(stderr=False)
    if sys.stdout is sys.stderr or not console.is_terminal:
        return steps
    return track(steps, escape(visible(title)), console=console, transient=True)


def print_error(text: str) -> None:
    """Print one message on the standard error, none of it taken as markup."""
    _console(stderr=True).print(Text(visible(text), style="red"), soft_wrap=True)


def print_source(title: str, text: str, language: str) -> None:
    """Print source text, coloured on a terminal.

    Parameters
    ----------
    title
        What stands above it.
    text
        The text.
    language
        The language, as `pygments <https://pygments.org/docs/lexers>`_ names it; an unknown one is not coloured.
    """
    print_line(f"-- {title}", "bold")
    console, shown = _console(stderr=False), visible(text, lines=True)
    if console.is_terminal:
        console.print(Syntax(shown, language, word_wrap=True, background_color="default"))
    else:
        console.print(Text(shown), soft_wrap=True)


def write_json(value: Any, stream: TextIO) -> None:
    """Write a value as JSON, keys sorted, in ASCII, undecorated."""
    stream.write(json.dumps(value, indent=2, sort_keys=True) + "\n")
    stream.flush()


def error_report(error: Exception, *, traceback: bool, status: int = 1) -> Report:
    """Return the report of an error: what it says, its attributes and its notes.

    Parameters
    ----------
    error
        What was raised.
    traceback
        Whether to show where.
    status
        The exit status.
    """
    notes = list(getattr(error, "__notes__", ()))
    facts = {name: plain(value) for name, value in vars(error).items() if not name.startswith("__")}
    document = {"type": type_name(error), "message": str(error), "attributes": facts, "notes": notes}
    if traceback:
        document["traceback"] = "".join(tracebacks.format_exception(error))

    def show() -> None:
        console = _console(stderr=True)
        if traceback:
            text = visible("".join(tracebacks.format_exception(error)), lines=True)
            coloured = Syntax(text, "pytb", background_color="default")
            console.print(coloured if console.is_terminal else Text(text), soft_wrap=True)
        message = Text(f"{type_name(error)}: ", style="bold red")
        console.print(message.append(Text(visible(str(error), lines=True), style="red")), soft_wrap=True)
        for note in notes:
            console.print(Text(f"  {visible(note, lines=True)}"), soft_wrap=True)

    def show_whole() -> None:
        if isinstance(error, ParameterMismatchError) and error.table:
            print_records(f"the parameters of {error.kernel}", error.table)
        show()

    return Report({"error": document}, show_whole, status)


@contextlib.contextmanager
def reserved_output() -> Iterator[TextIO]:
    """Keep the standard output for one document: what anything else prints meanwhile goes to the standard error.

    That holds for Python and for native code too: a kernel's ``printf`` writes to the process's own file.
    """
    original = sys.stdout
    original.flush()
    with contextlib.ExitStack() as stack:
        try:
            descriptor = original.fileno()
        except (OSError, ValueError):  # no file behind it: a test, or a program that calls main()
            stream = original
        else:
            stream = stack.enter_context(os.fdopen(os.dup(descriptor), "w", encoding="ascii"))
            stack.callback(os.dup2, stream.fileno(), descriptor)
            stack.callback(
                ctypes.CDLL(None).fflush, None
            )  # what C has buffered belongs to the standard error
            os.dup2(2, descriptor)
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield stream


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    return console


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _says_something(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_says_something(one) for name, one in value.items() if name != "type")
    return value is not None and value not in ("", [])


def _cell(value: Any) -> str:
    """Return a value in one line."""
    if value is None or value == []:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(f"({_cell(one)})" if isinstance(one, list) else _cell(one) for one in value)
    if isinstance(value, dict):
        shown = {name: one for name, one in value.items() if name != "type" and _says_something(one)}
        said = ", ".join(f"{name} {_cell(one)}" for name, one in shown.items())
        return f"{value['type']}({said})" if "type" in value else said
    return str(value)
