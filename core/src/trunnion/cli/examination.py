"""Run plugins' code in child processes, so that one that hangs, or ends its process, is named, and the others go on.

A thread would not do: nothing ends a thread that hangs, and it may hang with Python's own lock. The child is forked, so
that it begins where this process is, in no time; a command's process has one thread, and has used no device. Each
question has a child of its own: whatever its plugin does there, to the pipe that it answers by too, is laid to nobody
else.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import secrets
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
from trunnion.messages import signal_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO

    Questions = Mapping[str, Callable[[], Any]]

__all__ = ["SECONDS", "Silence", "examine"]

SECONDS: Final = 30.0
"""How long a plugin may take to be imported and to answer."""

_GRACE: Final = 2.0  # seconds that a process has to say where it hangs
_POLL: Final = 0.05
_BLOCK: Final = 1 << 16
_MOST_BYTES: Final = 1 << 20
_INTRUDED: Final = "it wrote into the pipe by which it is asked"
_CUT_OFF: Final = 121  # the status of a child that has no pipe to answer by any more


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
        By name, what runs plugins' code, and returns what JSON can say, in a mebibyte at most.
    seconds
        How long one may take.
    """
    for name, ask in questions.items():
        child = _Child(ask, seconds)
        try:
            answer = child.answer()
        finally:
            child.end()
        yield name, answer


class _Child:
    """A forked process that answers one question.

    Its answer begins with a number that nobody else can guess: so what a plugin writes itself is not taken for it.
    """

    def __init__(self, ask: Callable[[], Any], seconds: float) -> None:
        self._seconds, self._deadline = seconds, time.monotonic() + seconds
        self._answers, theirs = os.pipe()
        self._sign = secrets.token_hex(16).encode() + b"\n"
        self._stack: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the child's end
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # In a command there is one thread. Elsewhere a child that hangs is noticed, as any other is.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            _answer_and_exit(ask, _Pipe(theirs, self._sign), self._stack, seconds)
        os.close(theirs)

    def answer(self) -> Any:
        """Return the answer, or why there is none."""
        said = bytearray()
        while not said.endswith(b"\n") or len(said) <= len(self._sign):
            ended = self._status() is not None  # before what it wrote is read: so that nothing is missed
            try:
                data = self._read(0.0 if ended else _POLL)
            except TimeoutError:
                data = None
            if data:
                said += data
            elif ended:
                return Silence(f"it ended its process, {self._fate()}", self._said())
            elif time.monotonic() > self._deadline:
                return Silence(f"it hangs: it did not answer within {self._seconds:g} s", self._where())
            elif data is not None:  # it closed the pipe, and goes on
                time.sleep(_POLL)
            if not self._sign.startswith(said[: len(self._sign)]) or len(said) > 2 * _MOST_BYTES:
                return Silence(_INTRUDED, "")
        try:
            answered, told = json.loads(said[len(self._sign) :])
        except (ValueError, TypeError, RecursionError):
            return Silence(_INTRUDED, "")
        return told if answered else Silence(*told)

    def _read(self, seconds: float) -> bytes:
        """Return what was written next; nothing if nobody can write any more.

        Raises
        ------
        TimeoutError
            If nothing was.
        """
        if not select.select([self._answers], [], [], seconds)[0]:
            raise TimeoutError
        return os.read(self._answers, _BLOCK)

    def _where(self) -> str:
        """Return where each of the child's threads is."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGUSR1)
        deadline, said = time.monotonic() + _GRACE, ""
        while time.monotonic() < deadline and not said:
            time.sleep(_GRACE / 100)
            said = self._said()
        return said

    def _said(self) -> str:
        return os.pread(self._stack.fileno(), _BLOCK, 0).decode("utf-8", "replace")

    def _status(self) -> int | None:
        """Return how the child ended, as an exit status or a signal's negative number; None if it has not.

        It is not taken up: its number, and that of its group, is nobody else's until `end`.
        """
        try:
            found = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # whoever started this process had it ignore its children's ends
            return 0
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _fate(self) -> str:
        code = self._status() or 0
        if code == _CUT_OFF:
            return "and had closed the pipe by which it is asked"
        return f"with status {code}" if code >= 0 else f"by {signal_name(-code)}"

    def end(self) -> None:
        """End the child, and whatever it started."""
        os.close(self._answers)
        self._stack.close()
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)  # which may not lead its group yet
        with suppress(ChildProcessError):  # as above
            os.waitpid(self._pid, 0)


class _Pipe:
    """The end of the pipe that the child answers by, which runs foreign code before it does."""

    def __init__(self, descriptor: int, sign: bytes) -> None:
        self.descriptor, self._sign = descriptor, sign
        self._file = self._identity()
        self._owner = os.getpid()

    def _identity(self) -> tuple[int, int] | None:
        try:
            details = os.fstat(self.descriptor)
        except OSError:
            return None
        return details.st_dev, details.st_ino

    def write(self, line: bytes) -> None:
        """Write an answer; end the process if the pipe is another file's by now, or this one was forked since."""
        if os.getpid() != self._owner or self._identity() != self._file:
            os._exit(_CUT_OFF)
        left = memoryview(self._sign + line)
        while left:
            left = left[os.write(self.descriptor, left) :]


def _close_all_but(*kept: int) -> None:
    """Close what the command has open, its output too, but for the standard streams and some more."""
    first = 3
    for number in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(first, number)
        first = number + 1


def _line(ask: Callable[[], Any]) -> bytes:
    """Return an answer, or what was raised instead, as one line."""
    found = attempt(lambda: json.dumps([True, ask()]))
    if isinstance(found, str) and len(found) > _MOST_BYTES:
        found = Failure(f"its answer has {len(found)} characters, and at most {_MOST_BYTES} are taken", "")
    if isinstance(found, Failure):
        found = json.dumps([False, [found.reason, found.traceback]])
    return found.encode() + b"\n"


def _answer_and_exit(ask: Callable[[], Any], pipe: _Pipe, stack: BinaryIO, seconds: float) -> None:
    """Answer a question and end the process, whatever a plugin does: what called this must not go on in it."""
    try:
        os.setsid()
        os.dup2(2, 1)  # what a plugin prints is no part of the command's own output
        sys.stdout = sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
        _close_all_but(pipe.descriptor, stack.fileno())
        # With its parent gone, nobody else would end one that hangs.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(math.ceil(seconds + 2 * _GRACE))
        faulthandler.register(signal.SIGUSR1, stack, all_threads=True)
        faulthandler.disable()  # so that it comes before what a library has installed since
        faulthandler.enable(stack)
        line = _line(ask)
        with suppress(AttributeError, OSError, ValueError):  # a plugin may have put anything there
            sys.stdout.flush()
            sys.stderr.flush()
        pipe.write(line)  # behind which the parent waits for nothing
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - a fork's child ends here
        with suppress(OSError, ValueError):
            os.write(2, f"{error}\n".encode(errors="replace"))
    finally:
        os._exit(1)
