"""What a store holds, without reading it: of each entry its key, its size, and when it was last used."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from stat import S_ISDIR
from typing import TYPE_CHECKING, Final

from trunnion.errors import ArtifactError, shorten
from trunnion.storage.refusals import advice, said

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["KEY", "MARK_SECONDS", "Entry", "entries_in", "has_entries", "set_aside_in"]

KEY: Final = re.compile(r"[0-9a-f]{64}")
"""What the name of an entry is: the key of its artifact."""

_ASIDE: Final = re.compile(rf"{KEY.pattern}-[a-z0-9_]+")
"""What the folder of an entry that was set aside is called: by its key, and as `tempfile.mkdtemp` goes on."""

MARK_SECONDS: Final = 60.0
"""An entry that was used is marked no more often: a hit hardly ever writes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One artifact of a store, as its folder's names and times tell."""

    key: str
    """Its key."""

    nbytes: int
    """The bytes of its files."""

    used: float
    """When it was last used, to a minute, or stored: seconds since the epoch."""


def entries_in(folder: Path) -> list[Entry]:
    """Return what a store's folder of entries holds, what was used longest ago first; empty if it is not there.

    Where a use is still to come, a clock went back, and a use since then would have been noted: these come first.

    Parameters
    ----------
    folder
        The folder that has a folder for each key. What else lies there, or goes meanwhile, is passed over; what
        cannot be read is there, and nobody knows its size: it counts as none.
    """
    found, latest = [], time.time() + MARK_SECONDS
    with suppress(OSError), os.scandir(folder) as names:
        for name in names:
            if KEY.fullmatch(name.name):
                with suppress(OSError):
                    found.append(_entry(name))
    entries = (one for one in found if one is not None)
    return sorted(entries, key=lambda one: (one.used <= latest, one.used, one.key))


def set_aside_in(folder: Path) -> list[Path]:
    """Return the folders of what a store set aside; empty if there are none, or they cannot be listed.

    Parameters
    ----------
    folder
        Where they are. What else lies there is somebody's own: the name of that folder may have been taken before.
    """
    with suppress(OSError), os.scandir(folder) as names:
        return [
            folder / name.name
            for name in names
            if _ASIDE.fullmatch(name.name) and name.is_dir(follow_symlinks=False)
        ]
    return []


def has_entries(root: Path) -> bool:
    """Whether there is a store at a place, which is only looked at.

    Parameters
    ----------
    root
        The store's folder.

    Raises
    ------
    ArtifactError
        If that cannot be known, or what is in it cannot be listed.
    """
    try:
        with os.scandir(root / "entries"):
            return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise ArtifactError(
            f"cannot read the store at {shorten(str(root))}: {said(error)}; {advice(error)}"
        ) from error


def _entry(name: os.DirEntry[str]) -> Entry | None:
    status = name.stat(follow_symlinks=False)
    if not S_ISDIR(status.st_mode):
        return None
    nbytes = 0
    with suppress(PermissionError), os.scandir(name.path) as files:
        nbytes = sum(file.stat(follow_symlinks=False).st_size for file in files)
    return Entry(name.name, nbytes, status.st_mtime)
