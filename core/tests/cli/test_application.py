"""Errors become one message; tracebacks are shown on demand; every other exception is a bug and stays one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import trunnion
from trunnion.cli.application import run
from trunnion.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable


def _raising(error: BaseException) -> Callable[[], object]:
    def default_registry() -> object:
        raise error

    return default_registry


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ProgramError("got [red]7[/red], expected 8", field="grid[0]")
    error.add_note("a note")
    monkeypatch.setattr(trunnion, "default_registry", _raising(error), raising=False)


@pytest.mark.usefixtures("broken")
def test_a_typed_error_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["backends"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "ProgramError: grid[0]: got [red]7[/red], expected 8\n  a note\n"


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("words", [["--traceback", "backends"], ["backends", "--traceback"]])
def test_a_traceback_is_shown_on_demand(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 1
    assert "test_application.py" in capsys.readouterr().err


def test_any_other_exception_is_not_dressed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trunnion, "default_registry", _raising(ZeroDivisionError()), raising=False)
    with pytest.raises(ZeroDivisionError):
        run(["backends"])


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [(SystemExit(7), "SystemExit", 1), (KeyboardInterrupt(), "KeyboardInterrupt", 130)],
)
def test_what_ends_a_process_is_a_document_too(
    error: BaseException,
    kind: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(trunnion, "default_registry", _raising(error), raising=False)
    assert run(["backends", "--json"]) == status
    assert json.loads(capfd.readouterr().out)["error"]["type"] == kind
    assert run(["backends"]) == status


def test_a_traceback_moves_no_cursor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trunnion, "default_registry", _raising(ProgramError("\x1b[2J")), raising=False)
    assert run(["--traceback", "backends"]) == 1
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\\x1b[2J" in said


@pytest.mark.parametrize("words", [["--json", "--help"], ["run", "--help", "--json"]])
def test_help_is_one_document(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 0
    assert "Usage: trunnion" in json.loads(capfd.readouterr().out)["help"]


def test_no_command_is_a_document(capfd: pytest.CaptureFixture[str]) -> None:
    run(["--json"])
    assert json.loads(capfd.readouterr().out)
