"""The application that the commands hang on, and the one place where reports and errors become output."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

import trunnion
from trunnion.attempts import Failure, attempt
from trunnion.cli import missing_library
from trunnion.cli.backends import backends
from trunnion.cli.build import build
from trunnion.cli.cache import cache_commands
from trunnion.cli.conformance import conformance
from trunnion.cli.demo import demo
from trunnion.cli.doctor import doctor
from trunnion.cli.export import export_commands
from trunnion.cli.inspect import inspect
from trunnion.cli.lock import lock
from trunnion.cli.presentation import (
    Report,
    error_report,
    print_error,
    print_line,
    reserved_output,
    write_json,
)
from trunnion.cli.run import run_program
from trunnion.cli.sign import sign
from trunnion.cli.verify import verify
from trunnion.errors import TrunnionError
from trunnion.messages import describe, type_name

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["application", "run"]

_TRACEBACK, _JSON = _EVERYWHERE = ("--traceback", "--json")
_HELP = "--help"
_EPILOG = "--json and --traceback may stand anywhere: see trunnion --help."
_MISTYPED = 2
_INTERRUPTED = 130  # 128 + SIGINT, as shells have it

# By way of the one that typer exports: whether click is a package of its own depends on typer's version.
_UsageError: Any = typer.BadParameter.__mro__[1]


class _VersionAskedError(Exception):
    """``--version`` was given; never leaves this module."""


def application() -> typer.Typer:
    """Return the command line with every command registered. A command returns its `Report`."""
    app = typer.Typer(
        name="trunnion",
        help="Describe a GPU kernel program once; any installed backend compiles, binds and launches it.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    app.command("backends", epilog=_EPILOG)(backends)
    app.command("inspect", epilog=_EPILOG)(inspect)
    app.command("run", epilog=_EPILOG)(run_program)
    app.command("build", epilog=_EPILOG)(build)
    app.command("demo", epilog=_EPILOG)(demo)
    app.command("lock", epilog=_EPILOG)(lock)
    app.command("sign", epilog=_EPILOG)(sign)
    app.command("verify", epilog=_EPILOG)(verify)
    app.command("doctor", epilog=_EPILOG)(doctor)
    app.command("conformance", epilog=_EPILOG)(conformance)
    app.add_typer(
        cache_commands(_EPILOG), name="cache", help="Look at what is kept of what was compiled, or remove it."
    )
    app.add_typer(
        export_commands(_EPILOG),
        name="export",
        help="Write a bundle in a form in which another tool ships code.",
    )
    return app


def run(words: Sequence[str]) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    words
        What was typed after ``trunnion``. ``--traceback`` and ``--json`` may stand anywhere. With a file behind it
        that ends in ``.json``, ``--json`` is an option of ``conformance``.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character shows its code
    everywhere, ordered = _parted(words)
    try:
        return _show_json([*everywhere, *ordered]) if _JSON in everywhere else _show([*everywhere, *ordered])
    except BrokenPipeError:
        # Whoever read the output has seen enough. What Python still holds of it has to go somewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parted(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words that may stand anywhere, each once, and the others."""
    command = next((word for word in words if word not in _EVERYWHERE), "")
    own = [
        word == _JSON and command == "conformance" and following.endswith(".json")
        for word, following in zip(words, [*words[1:], ""], strict=False)
    ]
    found = [word for word, is_own in zip(words, own, strict=True) if word in _EVERYWHERE and not is_own]
    rest = [word for word, is_own in zip(words, own, strict=True) if word not in _EVERYWHERE or is_own]
    return [word for word in _EVERYWHERE if word in found], rest


def _show(words: Sequence[str]) -> int:
    report = _report(words)
    report.show()
    sys.stdout.flush()
    return report.status


def _show_json(words: Sequence[str]) -> int:
    with reserved_output() as stream:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed) if _HELP in words else contextlib.nullcontext():
            found = attempt(lambda: _report(words))
        report = _unforeseen(found) if isinstance(found, Failure) else found
        if report.document is None and printed.getvalue():
            report = dataclasses.replace(report, document={"help": printed.getvalue()})
        else:
            sys.stderr.write(printed.getvalue())
        if report.document is None:
            report.show()
        else:
            write_json(report.document, stream)
    return report.status


def _report(words: Sequence[str]) -> Report:
    """Return what a command reports, or the error that it ends in."""
    try:
        result = application()(args=list(words), prog_name="trunnion", standalone_mode=False)
    except _VersionAskedError:
        line = f"trunnion {trunnion.__version__}"
        return Report({"trunnion": trunnion.__version__}, lambda: print_line(line))
    except _UsageError as error:
        return Report(_said("UsageError", error.format_message()), error.show, _MISTYPED)
    except ModuleNotFoundError as error:
        message = missing_library(error)
        if not message:
            raise
        return _refusal(type_name(error), message, _MISTYPED)
    except (typer.Abort, KeyboardInterrupt):
        result = _INTERRUPTED
    except SystemExit as error:  # of a program, a body or a plugin: the command has not ended
        return _refusal(
            "SystemExit", f"what ran asked to end the process, with status {describe(error.code)}", 1
        )
    except TrunnionError as error:
        return error_report(error, traceback=_TRACEBACK in words)
    return _ended(result)


def _ended(result: object) -> Report:
    """Return the report of a command that ran to its end, or printed its help, or was interrupted."""
    if isinstance(result, Report):
        return result
    if result == _INTERRUPTED:  # some versions of typer return the status
        return Report(_said("KeyboardInterrupt", "interrupted"), lambda: None, _INTERRUPTED)
    return Report(None, lambda: None, result if isinstance(result, int) else 0)


def _refusal(kind: str, message: str, status: int) -> Report:
    return Report(_said(kind, message), lambda: print_error(message), status)


def _said(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"type": kind, "message": message, "attributes": {}, "notes": []}}


def _unforeseen(failure: Failure) -> Report:
    """Return the report of an exception that nobody raised on purpose: a program that reads JSON gets JSON."""
    kind, _, message = failure.reason.partition(": ")
    document = _said(kind, message)
    document["error"]["traceback"] = failure.traceback
    return Report(document, lambda: None, 1)


def _ask_version(asked: bool) -> None:
    if asked:
        raise _VersionAskedError


def _options(
    *,
    traceback: Annotated[
        bool,
        typer.Option(_TRACEBACK, help="Anywhere: show where an error was raised, not only what it says."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option(_JSON, help="Anywhere: print one JSON document, and nothing else.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_ask_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Take the options of every command; `run` has read them already, here they are for the help."""
