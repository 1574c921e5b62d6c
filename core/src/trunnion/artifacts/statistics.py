"""How much a store holds, and how often this process found there what it asked for."""

from __future__ import annotations

import functools
from dataclasses import dataclass

__all__ = ["StoreStatistics", "Tally", "tally"]

_MOST_STORES = 1024


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """What there is to count of a store."""

    entries: int
    """How many artifacts it holds."""

    nbytes: int
    """The bytes of their files."""

    corrupt: int
    """How many were set aside."""

    oldest_use: float | None
    """When the one was used that nobody used for longest, in seconds since the epoch; None if there is none."""

    newest_use: float | None
    """When one was last used, to a minute, by any process."""

    hits: int
    """How often this process found what it asked for."""

    fetched: int
    """How often a tier behind it had what it lacked."""

    misses: int
    """How often nobody had it."""


class Tally:
    """How often this process found what it asked for: no lock, because threads that lose a count lose nothing else."""

    def __init__(self) -> None:
        self.hits = self.misses = self.fetched = 0

    def count(self, *, hit: bool) -> None:
        """Count one that was asked for."""
        if hit:
            self.hits += 1
        else:
            self.misses += 1


@functools.lru_cache(_MOST_STORES)
def tally(root: str) -> Tally:
    """Return the one tally of a store's folder in this process, whichever object asks for it."""
    del root
    return Tally()
