"""Questions that are asked in a child process: answers, and what is said of those that have none."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from leak_reading.processes import children

from trunnion.cli.examination import Silence, examine

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forks are what is tested


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


def _pipes() -> dict[int, str]:
    """Return the pipes of this process, by descriptor."""
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one that lists them
            found[int(path.name)] = os.readlink(path)  # noqa: PTH115 - a pipe's is no path
    return {number: target for number, target in found.items() if target.startswith("pipe:")}


_KNOWN: list[str] = []
"""The pipes of this process before it asks: a child answers by another one."""


def _write(data: bytes) -> None:
    for number, target in _pipes().items():
        if target not in _KNOWN:
            with contextlib.suppress(OSError):  # the end for reading
                os.write(number, data)


def _close() -> None:
    os.closerange(3, 200)


def _close_and_hang() -> None:
    _close()
    _hang()


def _close_and_open() -> None:
    _close()
    for _ in range(20):
        os.open("/dev/null", os.O_RDWR)


def _fork_and_exit() -> None:
    if os.fork() == 0:
        _hang()
    os._exit(0)


def _fork_and_answer() -> list[str]:
    os.fork()
    return ["y" * 300_000]


INTRUDED = "it wrote into the pipe by which it is asked"
CUT_OFF = "it ended its process, and had closed the pipe by which it is asked"
INTRUSIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "an answer": (lambda: _write(b"[true, [{}]]\n"), INTRUDED),
    "another's answer": (lambda: _write(b'["three", true, 4]\n' * 3), INTRUDED),
    "half a line": (lambda: _write(b"[true, "), INTRUDED),
    "no JSON": (lambda: _write(b"hello\n"), INTRUDED),
    "no text": (lambda: _write(bytes(range(256))), INTRUDED),
    "another shape": (lambda: _write(b"{}\n"), INTRUDED),
    "closed": (_close, CUT_OFF),
    "closed, and hangs": (_close_and_hang, "it hangs: it did not answer within 1 s"),
    "another file of its number": (_close_and_open, CUT_OFF),
    "held open by a process": (_fork_and_exit, "it ended its process, with status 0"),
    "long": (lambda: "y" * (1 << 21), "its answer has 2097162 characters, and at most 1048576 are taken"),
}


@pytest.mark.parametrize("how", INTRUSIONS)
def test_one_that_touches_the_pipe_is_named_and_the_others_answer(how: str) -> None:
    touch, said = INTRUSIONS[how]
    _KNOWN[:] = _pipes().values()
    answers = dict(examine({"one": lambda: 1, "bad": touch, "three": lambda: 3}, seconds=1.0))
    silence = answers.pop("bad")
    assert answers == {"one": 1, "three": 3}
    assert isinstance(silence, Silence)
    assert silence.reason == said


def test_one_that_forks_and_goes_on_in_both_answers_once() -> None:
    assert dict(examine({"two": _fork_and_answer, "three": lambda: 3})) == {
        "two": ["y" * 300_000],
        "three": 3,
    }


def _say_much() -> None:
    raise RuntimeError("x" * 10**7)


def _say_much_that_does_not_print() -> None:
    raise RuntimeError("\x07" * 10**7)


@pytest.mark.parametrize("say", [_say_much, _say_much_that_does_not_print])
def test_of_a_long_message_the_ends_are_told(say: Callable[[], None]) -> None:
    ((_, silence),) = examine({"bad": say})
    assert isinstance(silence, Silence)
    assert silence.reason.startswith("RuntimeError: ")
    assert "(10000014 characters)" in silence.reason
    assert len(silence.reason) < 5_000
    assert say.__name__ in silence.traceback
    assert len(silence.traceback) < 100_000


def test_what_is_printed_is_no_part_of_the_output(capfd: pytest.CaptureFixture[str]) -> None:
    assert dict(examine({"one": lambda: sys.stdout.write("printed")})) == {"one": 7}
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "printed")


def test_it_has_nothing_open_of_whoever_asks(tmp_path: Path) -> None:
    """Nor the output that a command reserves for its document."""
    with (tmp_path / "output").open("w") as output:
        ((_, found),) = examine({"one": lambda: _can_write(output.fileno())})
    assert found is False


def _can_write(number: int) -> bool:
    try:
        return os.write(number, b"junk") > 0
    except OSError:
        return False


def _held() -> tuple[list[str], int, set[str]]:
    return (
        sorted(path.name for path in Path("/proc/self/fd").iterdir()),
        threading.active_count(),
        children(),
    )


def test_nothing_is_left_behind() -> None:
    before = _held()
    for seconds in (0.1, 5.0):
        list(examine({"bad": _hang, "exit": _exit, "good": int} if seconds < 1 else {"good": int}, seconds))
    assert _held() == before
