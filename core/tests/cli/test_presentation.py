"""What reaches a terminal is text; what reaches a program is one document."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest
from rich.text import Text

from trunnion.cli.presentation import (
    error_report,
    print_mapping,
    print_records,
    print_source,
    print_table,
    progress,
    visible,
    write_json,
)
from trunnion.errors import ArgumentValueError, TrunnionError

HOSTILE = "\x1b[31m\x9b\x07\r\u202e\u2066\ud800"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [red]text[/red] \u00fc", "plain [red]text[/red] \u00fc"),
        ("a\tb\nc", "a\\tb\\nc"),
        (HOSTILE, "\\x1b[31m\\x9b\\x07\\r\\u202e\\u2066\\ud800"),
    ],
)
def test_what_does_not_print_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_the_lines_of_a_source_stay() -> None:
    assert visible("a\tb\nc\r\x1b", lines=True) == "a\tb\nc\\r\\x1b"


def test_nothing_that_is_shown_controls_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(HOSTILE, [HOSTILE], [[HOSTILE]])
    print_records(HOSTILE, [{HOSTILE: HOSTILE, "nested": {"a": [HOSTILE]}}])
    print_mapping(HOSTILE, {HOSTILE: HOSTILE})
    print_source(HOSTILE, HOSTILE, HOSTILE)
    error = TrunnionError(HOSTILE)
    error.add_note(HOSTILE)
    error_report(error, traceback=False).show()
    for stream in capsys.readouterr():
        assert not set(HOSTILE) - set("[31m") & set(stream)
        assert "\\x1b[31m" in stream


def test_empty_columns_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = {"type": "Nothing", "x": None}
    print_records("t", [{"a": 1, "b": nothing, "c": [], "d": False}, {"a": 2, "b": None, "c": []}])
    head = capsys.readouterr().out.splitlines()[2]
    assert [word for word in "abcd" if f" {word} " in head] == ["a", "d"]


def test_a_title_is_never_broken(capsys: pytest.CaptureFixture[str]) -> None:
    print_records("a title that is longer than its table", [{"a": 1}])
    assert capsys.readouterr().out.startswith("a title that is longer than its table\n")


def test_what_is_too_narrow_for_a_column_is_left_out_or_shown_row_by_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No word is broken: neither a name nor a number that is would be read."""
    monkeypatch.setattr("trunnion.cli.presentation._PLAIN_WIDTH", 40)
    columns, row = ("name", "what", "verdict"), ["x" * 15, "y" * 15, Text("fine")]
    print_table("t", columns, [row], spare=("what",))
    shown = capsys.readouterr().out
    assert "x" * 15 in shown
    assert "fine" in shown
    assert "what" not in shown
    print_table("t", columns, [row, ["z" * 15, "many words " * 9, "bad"]])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[:6] == ["t", "", f"name     {'x' * 15}", f"what     {'y' * 15}", "verdict  fine", ""]
    assert "what     many words many words many" in lines
    assert not [line for line in lines if len(line) > 40]
    print_table("t", columns[:2], [row[:2]], spare=("what",))
    shown = capsys.readouterr().out
    assert "what" in shown, "there is room"
    assert "\u2502" in shown


def test_an_error_in_json_has_its_facts() -> None:
    error = ArgumentValueError("n", "7", "8")
    error.add_note("a note")
    report = error_report(error, traceback=False)
    assert report.status == 1
    assert report.document == {
        "error": {
            "type": "ArgumentValueError",
            "message": "argument 'n': got 7, expected 8",
            "attributes": {"argument": "n", "got": "7", "expected": "8", "place": ""},
            "notes": ["a note"],
        }
    }
    assert "ArgumentValueError" in error_report(error, traceback=True).document["error"]["traceback"]


def test_json_is_ascii_and_has_one_order() -> None:
    stream = io.StringIO()
    write_json({"b": HOSTILE, "a": 1}, stream)
    assert stream.getvalue().isascii()
    assert json.loads(stream.getvalue()) == {"b": HOSTILE, "a": 1}
    assert stream.getvalue().index('"a"') < stream.getvalue().index('"b"')


_NOISY = """
import ctypes, os, subprocess, sys
from trunnion.cli.presentation import reserved_output, write_json
print("before")
with reserved_output() as stream:
    print("python")
    os.write(1, b"descriptor\\n")
    ctypes.CDLL(None).puts(b"native")
    subprocess.run([sys.executable, "-c", "print('child')"], check=True)
    write_json({"a": 1}, stream)
print("after")
"""


def test_the_reserved_output_holds_the_document_alone() -> None:
    done = subprocess.run([sys.executable, "-c", _NOISY], capture_output=True, text=True, check=True)
    assert done.stdout == 'before\n{\n  "a": 1\n}\nafter\n'
    assert sorted(done.stderr.split()) == ["child", "descriptor", "native", "python"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("form", ["terminal", "pipe", "document"])
def test_only_a_terminal_is_shown_how_far_long_work_is(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO() if form == "pipe" else _Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    if form == "document":  # as `reserved_output` leaves it
        monkeypatch.setattr(sys, "stderr", stream)
    assert list(progress("at work", [1, 2])) == [1, 2]
    assert ("at work" in stream.getvalue()) == (form == "terminal")
