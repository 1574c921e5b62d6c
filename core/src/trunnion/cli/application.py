"""The application that the commands hang on, and the one place where errors become text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import trunnion
from trunnion.cli.backends import backends
from trunnion.cli.demo import demo
from trunnion.cli.presentation import print_line, report_error
from trunnion.cli.run import run_program
from trunnion.errors import TrunnionError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["application", "run"]

_TRACEBACK = "--traceback"


def application() -> typer.Typer:
    """Return the command line with every command registered."""
    app = typer.Typer(
        name="trunnion",
        help="Describe a GPU kernel program once; any installed backend compiles, binds and launches it.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    app.command("backends")(backends)
    app.command("run")(run_program)
    app.command("demo")(demo)
    return app


def run(words: Sequence[str]) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    words
        What was typed after ``trunnion``. ``--traceback`` may stand anywhere.
    """
    traceback = _TRACEBACK in words
    ordered = [*([_TRACEBACK] if traceback else []), *(word for word in words if word != _TRACEBACK)]
    try:
        application()(args=ordered, prog_name="trunnion")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 1
    except TrunnionError as error:
        report_error(error, traceback=traceback)
        return 1
    return 0


def _show_version(asked: bool) -> None:
    if asked:
        print_line(f"trunnion {trunnion.__version__}")
        raise typer.Exit


def _options(
    *,
    traceback: Annotated[
        bool, typer.Option(_TRACEBACK, help="Show where an error was raised, not only what it says.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Take the options of every command; `run` has read them already, here they are for the help."""
