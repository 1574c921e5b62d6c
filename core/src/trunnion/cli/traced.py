"""What arrived at the simulated driver, as documents."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from trunnion.cli.document import plain

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from trunnion.sim.trace import Event

__all__ = ["launches_document", "trace_document"]

_QUESTION = "cuCtxGetDevice"


def trace_document(events: Sequence[Event]) -> dict[str, Any]:
    """Return how many calls of each kind arrived, all of them in order, and those that were refused.

    A refusal for want of a context is ``answered`` if something was done afterwards, or the call only asked for the
    current device: that is how a launcher learns that it must enter a context.

    Parameters
    ----------
    events
        The trace, oldest first.
    """
    from trunnion.sim.status import Status
    from trunnion.sim.trace import CallRefused

    done = max((i for i, event in enumerate(events) if not isinstance(event, CallRefused)), default=-1)
    refused = [
        {
            "call": event.call,
            "status": event.status.name,
            "reason": event.reason,
            "answered": event.status is Status.INVALID_CONTEXT and (event.call == _QUESTION or index < done),
        }
        for index, event in enumerate(events)
        if isinstance(event, CallRefused)
    ]
    counts = Counter(type(event).__name__ for event in events)
    return {
        "counts": dict(sorted(counts.items())),
        "refused": refused,
        "events": [plain(event) for event in events],
    }


def launches_document(events: Sequence[Event], bodies: Collection[str]) -> list[dict[str, Any]]:
    """Return every launch, and whether its kernel had a body that could compute something.

    Parameters
    ----------
    events
        The trace, oldest first.
    bodies
        The symbols of the kernels that have one.
    """
    from trunnion.sim.trace import Launched

    found = []
    for event in events:
        if isinstance(event, Launched):
            row = plain(event)
            del row["type"]
            found.append({**row, "ran": event.kernel in bodies})
    return found
