"""What goes when a store holds too much: what nobody used for longest.

It is looked for when something was stored, and never where something is read. A reader needs no lock against it: an
entry goes by one renaming, and who is reading it then finds that it has gone.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.artifacts.entries import MARK_SECONDS, entries_in, set_aside_in
from trunnion.storage.descriptors import opened
from trunnion.storage.scratch import discard
from trunnion.storage.use import mark_used

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from trunnion.artifacts.entries import Entry
    from trunnion.storage.workshop import Workshop

__all__ = ["MOST_AGE_SECONDS", "MOST_BYTES", "Eviction", "Limits", "Removed"]

MOST_BYTES: Final = 4 << 30
"""What a store may hold if nobody says otherwise: 4 GiB."""

MOST_AGE_SECONDS: Final = 90 * 86400.0
"""For how long an entry is kept that nobody uses: 90 days."""

_LEFT: Final = 0.9
"""Which share of what a store may hold is left when it was too much, so that not each store has to look again."""

_COUNT_SECONDS: Final = 3600.0
"""How often all is counted anew: builders that add at one time may lose each other's sums, and entries grow old."""

_USAGE: Final = re.compile(rb"([0-9]{1,18}) ([0-9]{1,12})\n")
_MOST_USAGE: Final = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """What a store may hold."""

    nbytes: int | None = MOST_BYTES
    """The bytes of all its entries; None: any number."""

    age_seconds: float | None = MOST_AGE_SECONDS
    """For how long an entry stays that nobody uses; None: for ever."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed."""

    entries: int
    """How many entries."""

    nbytes: int
    """The bytes of their files."""

    stuck: int = 0
    """How many entries ought to have gone, and could not be removed."""


class Eviction:
    """Removes entries of one store.

    Parameters
    ----------
    entries
        The folder that has a folder for each key.
    corrupt
        The folder of what was set aside.
    usage
        The file that says how much there is, and when that was counted: to count everything takes long where there is
        much. Whatever else it says, all is counted.
    workshop
        Where entries are moved to, to be deleted.
    """

    def __init__(self, entries: Path, corrupt: Path, usage: Path, workshop: Workshop) -> None:
        self._entries, self._corrupt, self._usage, self._workshop = entries, corrupt, usage, workshop

    def after_storing(self, key: str, nbytes: int, limits: Limits) -> None:
        """Remove what is too much or too old, now that something was stored, which stays.

        Parameters
        ----------
        key
            What was stored.
        nbytes
            Its bytes.
        limits
            What may stay. What cannot be removed now is left to whoever stores next.
        """
        if limits == Limits(None, None):
            return
        now, known = time.time(), self._known()
        often = _COUNT_SECONDS if limits.age_seconds is None else min(_COUNT_SECONDS, limits.age_seconds)
        if known is not None and 0 <= now - known[1] < often:
            total = known[0] + nbytes
            if limits.nbytes is None or total <= limits.nbytes:
                self._note(total, known[1])
                return
        self.prune(limits, key)

    def prune(self, limits: Limits, kept: str = "") -> Removed:
        """Count everything, and remove what is too much or too old.

        Parameters
        ----------
        limits
            What may stay; of what is too much so much goes that nine tenths of it are left.
        kept
            The key of what stays whatever its size and age.
        """
        now, found = time.time(), entries_in(self._entries)
        total = sum(one.nbytes for one in found)
        least = total if limits.nbytes is None or total <= limits.nbytes else int(limits.nbytes * _LEFT)
        oldest = float("-inf") if limits.age_seconds is None else now - limits.age_seconds
        gone: list[Entry] = []
        stuck = 0
        for one in found:
            if one.key == kept or (one.used >= oldest and total <= least):
                if one.used > now:  # it ages from now on; the clock that said when went back
                    mark_used(self._entries / one.key, MARK_SECONDS)
                continue
            if self._remove(one.key):
                gone.append(one)
                total -= one.nbytes
            else:
                stuck += self._is_there(one.key)
        self._forget_corrupt(oldest)
        self._note(total, int(now))
        return _removed(gone, stuck)

    def clear(self) -> Removed:
        """Remove everything, and what was set aside."""
        found = entries_in(self._entries)
        gone = [one for one in found if self._remove(one.key)]
        stuck = sum(self._is_there(one.key) for one in found) if len(gone) < len(found) else 0
        self._forget_corrupt(float("inf"))
        with suppress(OSError):
            self._usage.unlink()
        return _removed(gone, stuck)

    def _remove(self, key: str) -> bool:
        """Remove an entry at once; False if it cannot be removed, or is gone."""
        with suppress(OSError), self._workshop.folder(key) as work:
            (self._entries / key).rename(work / "evicted")
            return True
        return False

    def _is_there(self, key: str) -> bool:
        return os.path.lexists(self._entries / key)

    def _forget_corrupt(self, oldest: float) -> None:
        for one in set_aside_in(self._corrupt):
            with suppress(OSError):
                if one.stat(follow_symlinks=False).st_mtime < oldest:
                    discard(one)

    def _known(self) -> tuple[int, int] | None:
        """Return how many bytes there are, and when they were counted; None if nobody knows."""
        with suppress(OSError), opened(self._usage, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as file:
            said = _USAGE.fullmatch(os.read(file, _MOST_USAGE))
            return None if said is None else (int(said[1]), int(said[2]))
        return None

    def _note(self, nbytes: int, counted: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
        with suppress(OSError), opened(self._usage, flags) as file:
            os.write(file, b"%d %d\n" % (nbytes, counted))


def _removed(gone: Iterable[Entry], stuck: int) -> Removed:
    sizes = [one.nbytes for one in gone]
    return Removed(len(sizes), sum(sizes), stuck)
