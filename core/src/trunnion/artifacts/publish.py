"""Putting a directory in its place so that readers see all of it or nothing."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from trunnion.storage.descriptors import write_through
from trunnion.storage.scratch import discard

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["publish"]


def publish(staging: Path, final: Path) -> bool:
    """Move a finished directory to its place, durably and in one step.

    Killed or without power at any moment, ``final`` is absent or whole: all bytes reach the disk before the
    name does.

    Parameters
    ----------
    staging
        The finished directory, in the file system of ``final``. It is gone afterwards, whoever won.
    final
        Where it belongs.

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
        # A directory replaces an empty one and nothing else; so the first of several publishers wins.
        os.rename(staging, final)  # noqa: PTH104 - Path.rename is the same call, and says so less plainly
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        discard(staging)
        return False
    write_through(final.parent)
    return True


def _sync_tree(directory: Path) -> None:
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda found: found.name):
            if entry.is_dir(follow_symlinks=False):
                _sync_tree(directory / entry.name)
            else:
                write_through(directory / entry.name)
    write_through(directory)
