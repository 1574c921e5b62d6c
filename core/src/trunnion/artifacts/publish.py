"""Putting a directory in its place so that readers see all of it or nothing."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from trunnion.storage.descriptors import write_through
from trunnion.storage.interrupts import Uninterrupted
from trunnion.storage.scratch import discard

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["publish"]


def publish(staging: Path, final: Path, *, replaced: Path | None = None) -> bool:
    """Move a finished directory to its place, durably and in one step.

    Killed or without power at any moment, ``final`` is absent or whole: all bytes reach the disk before the
    name does.

    Parameters
    ----------
    staging
        The finished directory, in the file system of ``final``. It is gone afterwards, whoever won.
    final
        Where it belongs.
    replaced
        Where to move what is there already, in the same file system; None: it stays. It is moved when all bytes of the
        new one have reached the disk, and comes back if that cannot be put there; who reads in between may find none.

    Returns
    -------
    bool
        Whether it was put there; False if something was there already, which the caller has to look at.

    Raises
    ------
    OSError
        If the directory cannot be moved: another file system, or a file in its place.
    """
    _sync_tree(staging)
    try:
        _move(staging, final, replaced)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        discard(staging)
        return False
    write_through(final.parent.resolve())  # which may be a link
    return True


def _move(staging: Path, final: Path, replaced: Path | None) -> None:
    with Uninterrupted():
        if replaced is not None:
            with suppress(FileNotFoundError):
                os.rename(final, replaced)  # noqa: PTH104 - Path.rename is the same call, and says so less plainly
        try:
            # A directory replaces an empty one and nothing else; so the first of several publishers wins.
            os.rename(staging, final)  # noqa: PTH104 - likewise
        except OSError:
            if replaced is not None:
                with suppress(OSError):  # there was none, or somebody else was first
                    os.rename(replaced, final)  # noqa: PTH104 - likewise
            raise


def _sync_tree(directory: Path) -> None:
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda found: found.name):
            if entry.is_dir(follow_symlinks=False):
                _sync_tree(directory / entry.name)
            else:
                write_through(directory / entry.name)
    write_through(directory)
