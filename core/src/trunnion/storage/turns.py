"""One at a time, for threads and processes: a lock on a file, which is free the moment that its holder dies.

Foreign code runs while a lock is held: a compiler, and in Python the handlers of signals, finalizers and hooks that
come in between, and fork. So nobody waits where that may have no end, and a forked child holds nothing of its parent's.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import time
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.errors import LifecycleError, shorten
from trunnion.storage.interrupts import Uninterrupted
from trunnion.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["WAIT_SECONDS", "DeadlockError", "FileTurn", "Rank", "turn"]

WAIT_SECONDS: Final = 600.0
"""How long another process is waited for: longer than a compiler of ours may take."""

_OWN_SECONDS: Final = 60.0
"""How long a thread of this process is waited for. It may wait for whoever waits, in a way that nobody can see: a
signal's handler started that one, say, and joins it. Few builds take longer, and then another one is made beside it."""


_POLL_SECONDS: Final = 0.01
_QUIET_SECONDS: Final = 1.0
_LOCKS: Final = Path("/proc/locks")


class Rank(IntEnum):
    """In which order a thread takes turns. It waits for none that ranks no higher than one which it has or waits for.

    Two that had one each, and waited for the other's, would wait for ever, in one process or in two.
    """

    ARTIFACT = 0
    """What a program is built to."""

    PART = 1
    """What artifacts are made of: who builds one may wait for it."""


class DeadlockError(OSError):
    """A turn cannot be waited for: who has it may wait for this thread, or is this thread, further up."""

    def __init__(self, place: Path) -> None:
        super().__init__(errno.EDEADLK, "whoever has it may wait for this thread", str(place))


class FileTurn:
    """One thread's turn at a place, from when it asks for it."""

    def __init__(self, place: Path, what: str, rank: Rank) -> None:
        self.turn = Turns(f"{what} is being made").turn()
        """For threads that wait for this one, or for which it waits by other turns."""
        self.rank = rank
        self._place, self._what = place, what
        self._descriptor: int | None = None
        self._file: tuple[int, int] | None = None
        self._locked = False

    def confirm(self) -> None:
        """Refuse to go on if it was left to a parent process: this one was forked in the middle of it.

        Raises
        ------
        DeadlockError
            If it was.
        """
        if not self.holds(self._file):
            raise DeadlockError(self._place)

    def holds(self, file: tuple[int, int] | None) -> bool:
        """Whether it has come, in this process, and its lock is that of a file: its device and number."""
        return self._locked and self._descriptor is not None and self._file == file

    def acquire(self, seconds: float) -> None:
        """Wait until it comes; errors are those of `turn`."""
        begun, told = time.monotonic(), False
        while not self._has_come():
            waited = time.monotonic() - begun
            if waited >= seconds:
                reason = f"{self._holder()} has held the lock for {waited:.0f} s"
                raise TimeoutError(errno.ETIMEDOUT, reason, str(self._place))
            limit = seconds if self._holder_here() is None else min(seconds, _OWN_SECONDS)
            if waited >= limit or not self._may_wait():
                raise DeadlockError(self._place)
            if waited >= _QUIET_SECONDS and not told:
                told = True
                text = "waiting for %s, which %s builds; it is waited for up to %g s (lock: %s)"
                logging.getLogger("trunnion").warning(
                    text, self._what, self._holder(), limit, shorten(str(self._place))
                )
            self._wait(min(_QUIET_SECONDS, limit - waited))

    def release(self) -> None:
        """Give it to whoever waits, and remove its file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:  # it is a parent's
            return
        if self._locked:
            with suppress(OSError):
                self._place.unlink()
            with suppress(OSError):  # closing it does not give it back while a forked process has it open
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        with suppress(OSError):
            os.close(descriptor)

    def leave_to_parent(self) -> None:
        """Close the lock in a forked child; to unlock it would take it from the parent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)

    def _has_come(self) -> bool:
        """Take the lock if it is free."""
        while True:
            descriptor = self._opened()
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            if os.fstat(descriptor).st_nlink:
                self._locked = True
                return True
            self._descriptor = None  # whoever had it before removed it, and the next one makes another file
            os.close(descriptor)

    def _opened(self) -> int:
        if self._descriptor is None:
            flags = os.O_RDONLY if self._place.is_dir() else os.O_RDWR | os.O_CREAT
            self._descriptor = os.open(self._place, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            details = os.fstat(self._descriptor)
            self._file = (details.st_dev, details.st_ino)
        return self._descriptor

    def _may_wait(self) -> bool:
        return all(other.rank < self.rank for other in _HERE.others(self) if other.turn.is_here())

    def _wait(self, seconds: float) -> None:
        """Wait for a while: for another thread by name, so that threads which wait for each other are noticed."""
        other = self._holder_here()
        if other is None:
            time.sleep(min(_POLL_SECONDS, seconds))
            return
        try:
            self.turn.wait_for(other.turn, seconds)
        except LifecycleError as error:
            raise DeadlockError(self._place) from error

    def _holder_here(self) -> FileTurn | None:
        """Return which turn of this process it waits for; None if it is another process's."""
        return next((other for other in _HERE.others(self) if other.holds(self._file)), None)

    def _holder(self) -> str:
        """Return who holds it, as far as the system tells: a process of another container has no number here."""
        if self._file is None:
            return "another process"
        device = f"{os.major(self._file[0]):02x}:{os.minor(self._file[0]):02x}:{self._file[1]}"
        try:
            rows = [line.split() for line in _LOCKS.read_text("ascii", "replace").splitlines()]
            number = next(int(row[4]) for row in rows if row[1] == "FLOCK" and row[5] == device)
            state = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
        except (OSError, StopIteration, IndexError, ValueError):
            return "another process"
        this = "this very " if self._holder_here() is not None else ""
        return f"{this}process {number}{' (stopped)' if state in 'Tt' else ''}"


class _UnderWay:
    """All of this process's turns, taken or waited for; each step here is one for all threads."""

    def __init__(self) -> None:
        self._turns: dict[FileTurn, None] = {}

    def add(self, mine: FileTurn) -> None:
        self._turns[mine] = None

    def remove(self, mine: FileTurn) -> None:
        self._turns.pop(mine, None)

    def others(self, mine: FileTurn) -> list[FileTurn]:
        return [one for one in tuple(self._turns) if one is not mine]

    def forget_in_child(self) -> None:
        """Leave the parent's turns to it; those of the thread that forked count as its own, never waited for."""
        for one in tuple(self._turns):
            one.leave_to_parent()
            if one.turn.is_over():
                self.remove(one)


_HERE: Final = _UnderWay()

os.register_at_fork(after_in_child=_HERE.forget_in_child)  # behind that of `trunnion.turns`, which it asks


@contextmanager
def turn(
    place: Path, what: str, seconds: float = WAIT_SECONDS, *, rank: Rank = Rank.ARTIFACT
) -> Iterator[FileTurn]:
    """Hold the lock of a place in the block; threads wait for each other as processes do.

    Whoever waits for longer than a second says so, and for whom, in the log ``trunnion``.

    Parameters
    ----------
    place
        A file, which is made if it is not there, and removed behind the block; or a folder.
    what
        What is waited for, in the message.
    seconds
        How long.
    rank
        Of what sort it is: for which others a thread waits in the middle of it.

    Raises
    ------
    TimeoutError
        If somebody else holds it for that long.
    DeadlockError
        If somebody holds it, and to wait for them may have no end: this thread itself does, in a frame that a signal's
        handler, a finalizer or a hook has interrupted, or has another turn of this rank, or they wait for this thread,
        or another thread of this process has held it for a minute.
    OSError
        If there can be no lock at that place.
    """
    mine = FileTurn(place, what, rank)
    with Uninterrupted() as held, mine.turn:
        _HERE.add(mine)
        try:
            with held.interruptible():
                mine.acquire(seconds)
                yield mine
        finally:
            mine.release()
            _HERE.remove(mine)
