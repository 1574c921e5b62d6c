"""Laws checked in a process of their own: a crash or a hang is a verdict, and the next law has a new process."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Self

from trunnion.errors import BackendUnavailableError
from trunnion.messages import signal_name
from trunnion.testing.report import LawReport
from trunnion.testing.worker import STACK_SIGNAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trunnion.testing.laws import Law
    from trunnion.testing.runner import Options

__all__ = ["PATIENCE", "supervised"]

PATIENCE: Final = 300.0
"""Seconds without a word after which a process hangs; it says one after each example, and each step of a long one."""

_TICK = 0.5  # seconds between two looks whether the process still runs
_LOOK, _LOOKS = 0.2, 25  # at what a process that hangs says: seconds between two, and how many at the most
_WORDS = 1500
_FRAMES, _THREADS = 16, 6  # of a hang: lines for each thread, innermost first, and threads


def supervised(
    backend: str, laws: Sequence[Law], options: Options, *, patience: float = PATIENCE, jobs: int = 1
) -> Iterator[LawReport]:
    """Check laws in processes of their own, and yield what becomes of each as it is done: with one job in their order.

    Parameters
    ----------
    backend
        The name of an installed backend.
    laws
        The laws.
    options
        How they are checked.
    patience
        Seconds without a word of a process that checks a law, until it counts as hung; it says one after each
        example, and after each step of one that may take minutes.
    jobs
        How many processes check laws at once, 1 or more. What is drawn does not depend on it.

    Raises
    ------
    BackendUnavailableError
        If a process ends, or hangs, before it begins with a law.
    """
    told: queue.SimpleQueue[LawReport | BaseException | None] = queue.SimpleQueue()
    over = threading.Event()
    shares = [laws[first::jobs] for first in range(min(jobs, len(laws)))]  # laws of a kind cost alike
    threads = [
        threading.Thread(target=_told, args=(_reports(backend, share, options, patience, over), told))
        for share in shares
    ]
    for thread in threads:
        thread.start()
    try:
        running = len(threads)
        while running:
            found = told.get()
            if isinstance(found, BaseException):
                raise found
            if found is None:
                running -= 1
            else:
                yield found
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _told(reports: Iterator[LawReport], told: queue.SimpleQueue[LawReport | BaseException | None]) -> None:
    """Pass on what becomes of laws, or why that is not known; then None."""
    try:
        for report in reports:
            told.put(report)
    except BaseException as error:  # noqa: BLE001 - whoever waits raises it
        told.put(error)
    told.put(None)


def _reports(
    backend: str, laws: Sequence[Law], options: Options, patience: float, over: threading.Event
) -> Iterator[LawReport]:
    """Check laws one after another, each process until it crashes or hangs, or nobody waits any more."""
    left = list(laws)
    while left and not over.is_set():
        with _Worker(backend, [law.id for law in left], options, over) as worker:
            for report in worker.reports(patience):
                law = left.pop(0)
                yield dataclasses.replace(report, sentence=law.sentence, requires=tuple(sorted(law.requires)))


class _Worker:
    """One process, and what it says."""

    def __init__(self, backend: str, laws: Sequence[str], options: Options, over: threading.Event) -> None:
        self._backend, self._laws, self._over = backend, laws, over
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._reading, writing = os.pipe()
        job = [backend, " ".join(laws), json.dumps(dataclasses.asdict(options)), str(writing)]
        # -P: what lies in the working folder is not what is installed.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "trunnion.testing.worker", *job],
            stdin=subprocess.DEVNULL,
            stdout=self._words,
            stderr=self._words,
            pass_fds=(writing,),
            start_new_session=True,  # so that what it started ends with it
        )
        os.close(writing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        os.close(self._reading)
        self._words.close()

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _ask_for_stacks(self, said: int) -> None:
        """Have a process that hangs say where each thread is, if it still can, and wait until it has."""
        if STACK_SIGNAL is None:
            return
        self._process.send_signal(STACK_SIGNAL)
        last = said
        for _ in range(_LOOKS):
            time.sleep(_LOOK)
            now = os.fstat(self._words.fileno()).st_size
            if said < now == last:
                return
            last = now

    def reports(self, patience: float) -> Iterator[LawReport]:
        """Yield what becomes of each law, until the process ends.

        Raises
        ------
        BackendUnavailableError
            If it ends before it begins with a law.
        """
        running, start, done = "", time.monotonic(), 0
        for message in self._messages(patience):
            if "error" in message:
                raise BackendUnavailableError(self._backend, "", message["error"])
            if "verdict" in message:
                running, done = "", done + 1
                yield LawReport(**{**message["verdict"], "requires": tuple(message["verdict"]["requires"])})
            elif "law" in message:
                running, start = message["law"], time.monotonic()
        if done == len(self._laws) or self._over.is_set():
            return
        ended = self._process.poll()
        said = os.fstat(self._words.fileno()).st_size
        if running and ended is None:
            self._ask_for_stacks(said)
        self._end()
        if not running and done:  # between two laws, which is nobody's fault
            return
        if not running:
            what = "did not begin" if ended is None else f"ended with {_status(ended)}"
            raise BackendUnavailableError(
                self._backend, "", f"the process that checks the laws {what}: {self._said()}"
            )
        what = f"hung in law {running}: no example, nor a step of one, was done in {patience:g} seconds"
        if ended is not None:
            what = f"crashed in law {running} ({_status(ended)})"
        yield LawReport(
            id=running,
            status="hung" if ended is None else "crashed",
            seconds=round(time.monotonic() - start, 2),
            text="\n".join(filter(None, (what, self._said(said), _innermost(self._words_from(said))))),
        )

    def _messages(self, patience: float) -> Iterator[dict[str, Any]]:
        """Yield each message, until the process ends, or says nothing for too long."""
        heard, rest, limit = time.monotonic(), b"", PATIENCE
        while True:
            running = self._process.poll() is None
            if select.select([self._reading], [], [], _TICK if running else 0)[0]:
                data = os.read(self._reading, 1 << 16)
                if not data:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(PATIENCE)
                    return
                heard, (*lines, rest) = time.monotonic(), (rest + data).split(b"\n")
                yield from map(json.loads, lines)
                limit = patience  # the first word is that it has begun
            elif not running or time.monotonic() - heard > limit:  # what it forked may keep the pipe open
                return
            if self._over.is_set():
                return

    def _said(self, end: int = -1) -> str:
        """Return what the process said, up to a byte, without its midst if it is long."""
        self._words.seek(0)
        text = _without_outer_frames(self._words.read(end).decode("utf-8", "replace").strip())
        return text if len(text) <= 2 * _WORDS else f"{text[:_WORDS]}\n…\n{text[-_WORDS:]}"

    def _words_from(self, start: int) -> str:
        self._words.seek(start)
        return self._words.read().decode("utf-8", "replace")


def _innermost(stacks: str) -> str:
    """Return what faulthandler says of threads without the outer frames, and of many threads the last ones alone.

    The very last is the main thread.
    """
    threads = [one.splitlines() for one in stacks.strip().split("\n\n")][-_THREADS:]
    return "\n".join(
        line for lines in threads for line in (*lines[:_FRAMES], *(["  …"] if len(lines) > _FRAMES else []))
    )


def _without_outer_frames(text: str) -> str:
    """Return a text in which each stack that faulthandler wrote is cut after some frames: the outer ones are alike."""
    lines, frames = [], 0
    for line in text.splitlines():
        frames = frames + 1 if line.startswith('  File "') else 0
        if frames <= _FRAMES + 1:
            lines.append(line if frames <= _FRAMES else "  …")
    return "\n".join(lines)


def _status(status: int) -> str:
    return f"exit status {status}" if status >= 0 else signal_name(-status)
