"""Where things are made that are kept by key: each by one maker at a time, in a folder that goes with its maker."""

from __future__ import annotations

import os
import re
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from trunnion.storage.kernel_mark import kernel_mark, used_elsewhere
from trunnion.storage.scratch import discard, temporary_folder
from trunnion.storage.turns import WAIT_SECONDS, turn

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from trunnion.storage.turns import FileTurn, Rank

__all__ = ["Workshop"]

_LOCKS, _STAGING = "locks", "staging"
_KEY = re.compile("[0-9a-f]+")


class Workshop:
    """One lock for each key, which belongs to the operating system, and folders for what is being made.

    Parameters
    ----------
    root
        The folder of what is kept.
    rank
        Of what sort it is, for those who wait.
    what
        What a key stands for, in messages.
    """

    names = frozenset({_LOCKS, _STAGING})
    """What it has in that folder."""

    def __init__(self, root: Path, rank: Rank, what: str) -> None:
        self.folders = (root / _LOCKS, root / _STAGING)
        self._locks, self._staging = self.folders
        self._rank, self._what = rank, what

    def prepare(self) -> None:
        """Make the folders that are not there, for this user alone.

        Raises
        ------
        OSError
            If they cannot be made.
        """
        for folder in (self.folders[0].parent, *self.folders):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def turn(self, key: str, seconds: float = WAIT_SECONDS) -> AbstractContextManager[FileTurn]:
        """Return a block in which nobody else makes what a key stands for; errors are those of `turn`."""
        return turn(self._locks / f"{key}.lock", f"{self._what} {key[:12]}", seconds, rank=self._rank)

    def folder(self, key: str) -> AbstractContextManager[Path]:
        """Return a block that has a folder; called with the key's lock held.

        Raises
        ------
        OSError
            If there can be none.
        """
        return temporary_folder(self._staging, f"{key}-{kernel_mark()}-")

    def sweep(self, key: str = "") -> None:
        """Delete what makers left that died; called with the lock of a key held, or with none.

        Whoever works on a key holds its lock: what lies there of this key belongs to nobody, and so does what lies
        there of another one whose lock is free; but for what another machine made this day, whose locks nobody here
        may see. What cannot be deleted now is left to whoever comes next.
        """
        with suppress(OSError):
            for name in os.listdir(self._staging):  # noqa: PTH208 - who only reads asks too, and waits for it
                owner, dash, _ = name.partition("-")
                with suppress(OSError):
                    if dash:
                        self._remove(self._staging / name, owner, key)

    def _remove(self, left: Path, owner: str, key: str) -> None:
        if not _KEY.fullmatch(owner) or used_elsewhere(left):  # not ours
            return
        with nullcontext() if owner == key else self.turn(owner, 0):
            discard(left)
