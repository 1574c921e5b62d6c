"""One at a time: a lock on a file or folder, which is free the moment that its holder dies."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.errors import shorten
from trunnion.storage.descriptors import opened

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["WAIT_SECONDS", "turn"]

WAIT_SECONDS: Final = 600.0
"""How long somebody else is waited for: longer than a compiler of ours may take."""

_POLL_SECONDS: Final = 0.01
_QUIET_SECONDS: Final = 1.0
_LOCKS: Final = Path("/proc/locks")


@contextmanager
def turn(place: Path, what: str, seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock of a place in the block; threads wait for each other as processes do.

    Whoever waits for longer than a second says so, and for whom, in the log ``trunnion``.

    Parameters
    ----------
    place
        A folder, or a file, which is made if it is not there.
    what
        What is waited for, in the message.
    seconds
        How long.

    Raises
    ------
    TimeoutError
        If somebody else holds it for that long.
    OSError
        If there can be no lock at that place.
    """
    flags = os.O_RDONLY if place.is_dir() else os.O_RDWR | os.O_CREAT
    with opened(place, flags | os.O_NOFOLLOW) as descriptor:  # closing it gives the lock back
        _acquire(descriptor, place, what, seconds)
        yield


def _acquire(descriptor: int, place: Path, what: str, seconds: float) -> None:
    begun, told = time.monotonic(), False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            return
        waited = time.monotonic() - begun
        if waited >= seconds:
            reason = f"{_holder(descriptor)} has held the lock for {waited:.0f} s"
            raise TimeoutError(errno.ETIMEDOUT, reason, str(place))
        if waited >= _QUIET_SECONDS and not told:
            told = True
            text = "waiting for %s, which %s builds; it is waited for up to %g s (lock: %s)"
            logging.getLogger("trunnion").warning(
                text, what, _holder(descriptor), seconds, shorten(str(place))
            )
        time.sleep(_POLL_SECONDS)


def _holder(descriptor: int) -> str:
    """Return who holds a lock, as far as the system tells: a process of another container has no number here."""
    details = os.fstat(descriptor)
    device = f"{os.major(details.st_dev):02x}:{os.minor(details.st_dev):02x}:{details.st_ino}"
    try:
        rows = [line.split() for line in _LOCKS.read_text("ascii", "replace").splitlines()]
        number = next(int(row[4]) for row in rows if row[1] == "FLOCK" and row[5] == device)
        state = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
    except (OSError, StopIteration, IndexError, ValueError):
        return "another process"
    return f"process {number}{' (stopped)' if state in 'Tt' else ''}"
