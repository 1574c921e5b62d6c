"""Run plugins' code in a child process, so that one that hangs, or ends its process, is named, and the others go on.

A thread would not do: nothing ends a thread that hangs, and it may hang with Python's own lock. The child is forked, so
that it begins where this process is, in no time; a command's process has one thread, and has used no device.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import select
import signal
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.attempts import Failure, attempt
from trunnion.wording import signal_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO

    Questions = Mapping[str, Callable[[], Any]]

__all__ = ["SECONDS", "Silence", "examine"]

SECONDS: Final = 30.0
"""How long a plugin may take to be imported and to answer."""

_GRACE: Final = 2.0  # seconds that a process has to say where it hangs
_BLOCK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Silence:
    """Why a question has no answer."""

    reason: str
    """What happened instead, in one line."""

    traceback: str
    """Where; empty if it is not known."""


def examine(questions: Questions, seconds: float = SECONDS) -> Iterator[tuple[str, Any]]:
    """Yield each question's name and its answer, in the questions' order; the answer is a `Silence` if there is none.

    Parameters
    ----------
    questions
        By name, what runs plugins' code, and returns what JSON can say. They are asked one after the other in one
        child; where one hangs, or ends the child, another child is asked the rest.
    seconds
        How long one may take.
    """
    left = dict(questions)
    while left:
        child = _Child(left, seconds)
        try:
            for name in tuple(left):
                answer = child.answer(seconds)
                del left[name]
                yield name, answer
                if child.is_lost:
                    break
        finally:
            child.end()


class _Child:
    """A forked process that answers, one line for each question."""

    def __init__(self, questions: Questions, seconds: float) -> None:
        self._answers, theirs = os.pipe()
        self._buffer, self.is_lost = b"", False
        self._stack: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the child's end
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # In a command there is one thread. Elsewhere a child that hangs is noticed, as any other is.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            _answer_and_exit(questions, theirs, self._stack, seconds)
        os.close(theirs)

    def answer(self, seconds: float) -> Any:
        """Return the next answer, or why there is none."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.is_lost = True
                return Silence(f"it hangs: it did not answer within {seconds:g} s", self._where())
            data = os.read(self._answers, _BLOCK)
            if not data:
                self.is_lost = True
                return Silence(f"it ended its process, {self._fate()}", self._said())
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        answered, said = json.loads(line)
        return said if answered else Silence(*said)

    def _where(self) -> str:
        """Return where each of the child's threads is."""
        os.kill(self._pid, signal.SIGUSR1)
        deadline, said = time.monotonic() + _GRACE, ""
        while time.monotonic() < deadline and not said:
            time.sleep(_GRACE / 100)
            said = self._said()
        return said

    def _said(self) -> str:
        self._stack.seek(0)
        return self._stack.read().decode("utf-8", "replace")

    def _fate(self) -> str:
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        code = os.waitstatus_to_exitcode(status)
        return f"with status {code}" if code >= 0 else f"by {signal_name(-code)}"

    def end(self) -> None:
        """End the child, and whatever it started."""
        os.close(self._answers)
        self._stack.close()
        if self._pid:
            with suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)  # which may not lead its group yet
            os.waitpid(self._pid, 0)


def _line(ask: Callable[[], Any]) -> bytes:
    """Return an answer, or what was raised instead, as one line."""
    found = attempt(lambda: json.dumps([True, ask()]))
    if isinstance(found, Failure):
        found = json.dumps([False, [found.reason, found.traceback]])
    return found.encode() + b"\n"


def _answer_and_exit(questions: Questions, answers: int, stack: BinaryIO, seconds: float) -> None:
    """Answer every question and end the process, whatever a plugin does: what called this must not go on in it."""
    try:
        os.setsid()
        # With its parent gone, nobody else would end one that hangs.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.register(signal.SIGUSR1, stack, all_threads=True)
        faulthandler.disable()  # so that it comes before what a library has installed since
        faulthandler.enable(stack)
        for ask in questions.values():
            signal.alarm(math.ceil(seconds + 2 * _GRACE))
            left = memoryview(_line(ask))
            while left:
                left = left[os.write(answers, left) :]
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - a fork's child ends here
        with suppress(OSError, ValueError):
            os.write(2, f"{error}\n".encode(errors="replace"))
    finally:
        os._exit(1)
