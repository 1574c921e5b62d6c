"""Putting a directory in its place so that readers see all of it or nothing."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

from trunnion.errors import ArtifactError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["discard", "publish"]


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
    ArtifactError
        If the directory cannot be moved: another file system, or a file in its place.
    """
    _sync_tree(staging)
    try:
        # A directory replaces an empty one and nothing else; so the first of several publishers wins.
        os.rename(staging, final)  # noqa: PTH104 - Path.rename is the same call, and says so less plainly
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
            discard(staging)
            return False
        raise ArtifactError(
            f"cannot publish {final}: {error.strerror}; stage beside it, and clear the way"
        ) from error
    _sync(final.parent)
    return True


def discard(directory: Path) -> None:
    """Delete a directory and all in it; one that is already gone is fine."""
    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        return


def _sync_tree(directory: Path) -> None:
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda found: found.name):
            if entry.is_dir(follow_symlinks=False):
                _sync_tree(directory / entry.name)
            else:
                _sync(directory / entry.name)
    _sync(directory)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
