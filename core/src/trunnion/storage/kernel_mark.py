"""Whose locks say whether a folder is in use: those of the kernel that is named in the folder's name."""

from __future__ import annotations

import functools
import hashlib
import os
import time
from pathlib import Path

__all__ = ["kernel_mark", "used_elsewhere"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_DAY = 24 * 60 * 60.0  # seconds: nothing is made for so long


@functools.cache
def kernel_mark() -> str:
    """Return 8 hexadecimal digits that tell the kernel that runs, since its start, from others.

    A file system that several machines share may leave the locks to each of them (NFS with ``local_lock`` or
    ``nolock``): the lock of a folder that another one uses looks free.
    """
    try:
        identity = _BOOT_ID.read_bytes()
    except OSError:
        identity = os.uname().nodename.encode()
    return hashlib.sha256(identity).hexdigest()[:8]


def used_elsewhere(folder: Path) -> bool:
    """Whether another kernel may use a folder, whose name ends in its kernel's mark and a random part.

    One that no kernel has changed for a day is what a killed process left.

    Raises
    ------
    OSError
        If it cannot be looked at.
    """
    if folder.name.split("-")[-2:-1] == [kernel_mark()]:
        return False
    return time.time() - folder.stat(follow_symlinks=False).st_mtime < _DAY
