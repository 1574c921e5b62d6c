"""Open files by descriptor, closed however the block is left."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from trunnion.storage.interrupts import Uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["opened", "write_through"]


@contextmanager
def opened(path: str | Path, flags: int, *, mode: int = 0o600, within: int | None = None) -> Iterator[int]:
    """Open a file or folder; no process that is started inherits it.

    Parameters
    ----------
    path
        Its path.
    flags
        As `os.open` takes them.
    mode
        The permissions of a file that is made.
    within
        The descriptor of the folder that a relative path starts from; None: the working directory.

    Raises
    ------
    OSError
        If it cannot be opened.
    """
    with Uninterrupted() as held:
        descriptor = os.open(path, flags | os.O_CLOEXEC, mode, dir_fd=within)
        try:
            with held.interruptible():
                yield descriptor
        finally:
            # It is closed whatever that says; whether bytes arrive, `write_through` has to say.
            with suppress(OSError):
                os.close(descriptor)


def write_through(path: Path) -> None:
    """Have what a file or folder holds reach the disk.

    Raises
    ------
    OSError
        If that fails.
    """
    with opened(path, os.O_RDONLY | os.O_NOFOLLOW) as descriptor:
        os.fsync(descriptor)
