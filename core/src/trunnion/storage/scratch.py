"""Folders for what is written while something is built, and for no longer."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.storage.descriptors import opened, write_through
from trunnion.storage.interrupts import Uninterrupted
from trunnion.storage.kernel_mark import kernel_mark, used_elsewhere
from trunnion.storage.refusals import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

__all__ = [
    "NO_LOCKS",
    "discard",
    "memory_file",
    "replacing",
    "scratch_folder",
    "temporary_beside",
    "temporary_folder",
]

_PREFIX = "trunnion-scratch-"
"""Whoever makes a folder of such a name, which goes on with the kernel's mark, holds its lock, or else others remove
it."""

_UNLOCKED = "trunnion-"
_MOST_NAMED_BYTES = 64
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
NO_LOCKS = frozenset({errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
"""What a file system says that has no such locks; a folder there stays if its process is killed."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a private, empty folder below ``TMPDIR``, and remove it when the block is left, however it is left.

    As long as the block lasts its lock is held, which falls with this process, and with those that it forks. What
    processes left that were killed is removed here: folders of this user of which nobody holds the lock, those of other
    machines after a day. A child that
    was forked in the block leaves the folder to its parent.

    Raises
    ------
    DeviceRequirementError
        If none can be made.
    """
    with Uninterrupted() as held:
        with refusals("a folder for temporary files", "or set TMPDIR to a folder of yours"):
            _sweep(Path(tempfile.gettempdir()))
            made, lock = _locked_folder()
        owner = os.getpid()
        try:
            with held.interruptible():
                yield made
        finally:
            _remove(made, owner, lock)


def _locked_folder() -> tuple[Path, int | None]:
    """Return a folder, and the descriptor that holds its lock; None where there are no locks."""
    while True:
        made, lock = _folder(None, f"{_PREFIX}{kernel_mark()}-"), None
        try:
            lock = os.open(made, _FOLDER_FLAGS | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if made.exists():
                return made, lock
        except (BlockingIOError, FileNotFoundError):
            pass  # as where it is gone: somebody took it for a dead one's, before the lock was held
        except OSError as error:
            _remove(made, os.getpid(), lock)
            if error.errno not in NO_LOCKS:
                raise
            return _folder(None, _UNLOCKED), None
        _remove(made, os.getpid(), lock)


def _folder(parent: Path | None, prefix: str) -> Path:
    return Path(tempfile.mkdtemp(dir=parent, prefix=prefix))


def _remove(made: Path, owner: int, lock: int | None = None) -> None:
    """Remove a folder, unless this process is a child that its owner forked."""
    if os.getpid() == owner:
        discard(made)
    if lock is not None:
        with suppress(OSError):
            os.close(lock)


def _sweep(parent: Path) -> None:
    """Remove what killed processes left; what cannot be removed now is left to whoever comes next."""
    with suppress(OSError), os.scandir(parent) as entries:
        for left in [Path(entry.path) for entry in entries if entry.name.startswith(_PREFIX)]:
            with suppress(OSError), opened(left, _FOLDER_FLAGS) as descriptor:
                if os.fstat(descriptor).st_uid == os.geteuid() and not used_elsewhere(left):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    discard(left)


@contextmanager
def temporary_folder(parent: Path | None = None, prefix: str = _UNLOCKED) -> Iterator[Path]:
    """Make a private, empty folder, and remove it when the block is left, however it is left.

    What of it cannot be removed then stays: that is no reason to lose what was built. A child that was forked in the
    block leaves it to its parent.

    Parameters
    ----------
    parent
        Where; None: below ``TMPDIR``.
    prefix
        What its name begins with.

    Raises
    ------
    OSError
        If none can be made.
    """
    with Uninterrupted() as held:
        made, owner = _folder(parent, prefix), os.getpid()
        try:
            with held.interruptible():
                yield made
        finally:
            _remove(made, owner)


def temporary_beside(path: Path) -> AbstractContextManager[Path]:
    """Make such a folder beside what is to be written, hidden, and called by the beginning of its name.

    Parameters
    ----------
    path
        Where that is to be.
    """
    named = os.fsencode(path.name)[:_MOST_NAMED_BYTES].decode(
        "utf-8", "ignore"
    )  # a name's length is one of bytes
    return temporary_folder(path.parent, f".{named}.")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Return a block that has a file to write, which behind it takes the place of another one, whole or not at all.

    A link stays, and so do the permissions of what was there. What is no regular file, a pipe or a device, is written
    itself, and so is what this process prints to: whatever it prints next has to go there too.

    Parameters
    ----------
    path
        What is to be written.

    Raises
    ------
    OSError
        If it cannot be.
    """
    before = path.stat() if path.exists() else None
    if before is not None and (not stat.S_ISREG(before.st_mode) or _is_printed_to(before)):
        yield path
        return
    final = Path(os.path.realpath(path))
    with temporary_beside(final) as folder:
        made = folder / "finished"
        yield made
        if before is not None:
            made.chmod(stat.S_IMODE(before.st_mode))
        write_through(made)
        made.replace(final)


def _is_printed_to(file: os.stat_result) -> bool:
    with suppress(OSError):
        return any(os.path.samestat(file, os.fstat(descriptor)) for descriptor in (1, 2))
    return False


@contextmanager
def memory_file(name: str, data: bytes) -> Iterator[tuple[int, str]]:
    """Make a file in memory, from which code can be loaded wherever no folder is for that; it is closed with the block.

    Parameters
    ----------
    name
        What the system calls it.
    data
        What it holds.

    Returns
    -------
    tuple of int and str
        Its descriptor, which a process that is started does not get by itself, and its path in whoever has that.

    Raises
    ------
    OSError
        If none can be made.
    """
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as memory:
            memory.write(data)
        yield descriptor, f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def discard(directory: Path) -> None:
    """Delete a directory and all in it, as far as it can be deleted; one that is already gone is fine."""
    with suppress(OSError):  # some of Python's own calls of close are not covered by that option
        shutil.rmtree(directory, ignore_errors=True)
