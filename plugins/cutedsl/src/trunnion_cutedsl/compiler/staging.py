"""Folders for what CuTeDSL writes, one for each worker: owned by a lock that falls with the processes that hold it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from trunnion.storage.kernel_mark import kernel_mark, used_elsewhere
from trunnion.storage.scratch import NO_LOCKS

__all__ = ["claim", "discard", "make_staging", "sweep"]

_PREFIX = "trunnion-cutedsl-"
_LOCK = "lock"
_GRACE_SECONDS = 60.0  # between the making of a folder and that of its lock


def make_staging() -> tuple[Path, int]:
    """Make a folder that nobody else can read; return it with a descriptor that holds its lock.

    As long as the descriptor is open in any process, the folder is in use. Where a file system has no locks nobody can
    tell, and it stays if its processes are killed.

    Raises
    ------
    OSError
        If there can be none; then nothing is left of it.
    """
    while True:
        with contextlib.ExitStack() as undo:
            folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getuid()}-{kernel_mark()}-"))
            undo.callback(discard, folder)
            descriptor = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            undo.callback(os.close, descriptor)
            if _is_locked(descriptor) and folder.exists():
                undo.pop_all()
                return folder, descriptor
            # Somebody who sweeps was faster.


def _is_locked(descriptor: int) -> bool:
    """Take a lock, where there are any; return False if somebody else has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
    return True


def sweep() -> None:
    """Remove the folders of this user whose processes are all dead, killed before they could clean up."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}{os.getuid()}-*"):
        descriptor = claim(folder)
        if descriptor is not None:
            discard(folder)
            os.close(descriptor)


def claim(folder: Path) -> int | None:
    """Return a descriptor that holds the lock of a folder; None if somebody else holds it, or it is not ours."""
    try:
        if folder.is_symlink() or folder.stat().st_uid != os.getuid() or used_elsewhere(folder):
            return None
        lock = folder / _LOCK
        if not lock.exists() and time.time() - folder.stat().st_mtime < _GRACE_SECONDS:
            return None
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def discard(folder: Path) -> None:
    """Remove a folder and all in it; what is gone already is fine."""
    shutil.rmtree(folder, ignore_errors=True)
