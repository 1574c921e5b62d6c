"""What arrived at the simulated driver, as documents."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from trunnion.cli.document import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.cli.launched import Reading
    from trunnion.sim.trace import Event

__all__ = ["launches_in", "trace_document"]

_QUESTION = "cuCtxGetDevice"


def trace_document(events: Sequence[Event], reading: Reading) -> dict[str, Any]:
    """Return how many calls of each kind arrived, all of them in order, and those that were refused.

    A refusal for want of a context is ``answered`` if something was done afterwards, or the call only asked for the
    current device: that is how a launcher learns that it must enter a context.

    Parameters
    ----------
    events
        The trace of one call, oldest first.
    reading
        How the launches are read: each is told in the program's words too (`Reading.facts`).
    """
    from trunnion.sim.status import Status
    from trunnion.sim.trace import CallRefused, Launched

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
    facts = iter(reading.facts([event for event in events if isinstance(event, Launched)]))
    return {
        "counts": dict(sorted(counts.items())),
        "refused": refused,
        "events": [plain(event) | (next(facts) if isinstance(event, Launched) else {}) for event in events],
    }


def launches_in(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the launches of a trace's document, in order, each without its ``type``."""
    launches = [event for event in trace["events"] if event["type"] == "Launched"]
    return [{name: value for name, value in event.items() if name != "type"} for event in launches]
