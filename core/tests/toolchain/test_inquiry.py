"""Questions asked in a process of their own end in an answer, whatever happens there."""

from __future__ import annotations

import pytest

from trunnion.toolchain.inquiry import inquire


def test_the_last_line_is_the_answer() -> None:
    program = "import json, sys; print('noise'); print(json.dumps({'words': sys.argv[1:]}))"
    assert inquire(program, "a", "b c") == {"words": ["a", "b c"]}


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("raise OSError('no such thing')", "OSError: no such thing"),
        ("import os; os.abort()", "it ended with status -6"),
        ("print('[1]')", "it ended with status 0"),
        ("print('nonsense')", "it ended with status 0"),
        ("print('{}'); raise SystemExit(3)", "it ended with status 3"),
        ("pass", "it ended with status 0"),
    ],
)
def test_a_failure_is_an_answer(program: str, failure: str) -> None:
    assert inquire(program) == {"failure": failure}


def test_the_current_folder_is_not_searched(tmp_path, monkeypatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('hostile')")
    monkeypatch.chdir(tmp_path)
    assert inquire("import json; print(json.dumps({}))") == {}


def test_an_interpreter_that_is_gone_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    assert "/nonexistent/python" in inquire("pass")["failure"]


def test_silence_is_an_answer() -> None:
    assert inquire("import time; time.sleep(60)", seconds=0.2) == {
        "failure": "it did not answer within 0.2 s"
    }


@pytest.mark.parametrize("executable", [None, ""])
def test_no_interpreter_is_an_answer(monkeypatch: pytest.MonkeyPatch, executable: str | None) -> None:
    """A program that embeds Python may have none."""
    monkeypatch.setattr("sys.executable", executable)
    assert "sys.executable" in inquire("pass")["failure"]
