"""One call of an entry point, as its handler sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from trunnion.sim.objects import PER_THREAD_STREAM

if TYPE_CHECKING:
    from trunnion.sim.shim import Entry
    from trunnion.sim.state import DriverState

__all__ = ["Call", "Handler"]


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler gets before the call's own arguments."""

    entry: Entry
    """The entry point."""

    entries: tuple[Entry, ...]
    """All entry points, for those that look others up."""

    state: DriverState
    """What the driver remembers."""

    def stream(self, handle: int | None) -> int:
        """Return the stream that a handle means in this ABI: the null stream may be the per-thread default."""
        return handle or (PER_THREAD_STREAM if self.entry.per_thread else 0)


Handler: TypeAlias = Callable[..., None]
"""A handler: ``handler(call, *arguments)``. Pointers come as integers, null ones as None; it raises a `Refusal`."""
