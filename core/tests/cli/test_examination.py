"""Questions that are asked in a child process: answers, and what is said of those that have none."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.cli.examination import Silence, examine

if TYPE_CHECKING:
    from collections.abc import Callable


def _hang() -> None:
    time.sleep(600)


def _hang_in_c() -> None:
    ctypes.PyDLL(None).sleep(600)  # which keeps Python's lock


def _hang_behind_a_process() -> None:
    if os.fork() == 0:
        _hang()
    _hang()


def test_answers_come_in_order_with_what_this_process_knows() -> None:
    known = object()
    asked = {"one": lambda: id(known), "two": lambda: ["x", None], "three": lambda: {"long": "y" * 300_000}}
    assert list(examine(asked)) == [
        ("one", id(known)),
        ("two", ["x", None]),
        ("three", {"long": "y" * 300_000}),
    ]


def test_what_is_asked_runs_in_another_process() -> None:
    ((_, pid),) = examine({"pid": os.getpid})
    assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("hang", [_hang, _hang_in_c, _hang_behind_a_process])
def test_one_that_hangs_is_named_with_the_place_and_the_others_answer(hang: Callable[[], None]) -> None:
    answers = dict(examine({"one": lambda: 1, "bad": hang, "three": lambda: 3}, seconds=0.5))
    silence = answers.pop("bad")
    assert answers == {"one": 1, "three": 3}
    assert isinstance(silence, Silence)
    assert silence.reason == "it hangs: it did not answer within 0.5 s"
    assert hang.__name__ in silence.traceback


def _exit() -> None:
    os._exit(0)


def _raise_40() -> None:
    signal.raise_signal(40)


def _crash() -> None:
    ctypes.string_at(1)


def _endings() -> dict[str, tuple[Callable[[], Any], str]]:
    return {
        "exit": (_exit, "it ended its process, with status 0"),
        "crash": (_crash, "it ended its process, by SIGSEGV"),
        "signal for real time": (_raise_40, "it ended its process, by signal 40"),
        "SystemExit": (sys.exit, "SystemExit"),
        "no JSON": (object, "Object of type object is not JSON serializable"),
    }


@pytest.mark.parametrize("how", _endings())
def test_one_that_ends_its_process_is_named_and_the_others_answer(how: str) -> None:
    end, said = _endings()[how]
    answers = dict(examine({"one": lambda: 1, "bad": end, "three": lambda: 3}))
    silence = answers.pop("bad")
    assert answers == {"one": 1, "three": 3}
    assert isinstance(silence, Silence)
    assert said in silence.reason
    assert how != "crash" or "_crash" in silence.traceback


def _held() -> tuple[list[str], int]:
    return sorted(path.name for path in Path("/proc/self/fd").iterdir()), threading.active_count()


def test_nothing_is_left_behind() -> None:
    before = _held()
    for seconds in (0.1, 5.0):
        list(examine({"bad": _hang, "exit": _exit, "good": int} if seconds < 1 else {"good": int}, seconds))
    assert _held() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
