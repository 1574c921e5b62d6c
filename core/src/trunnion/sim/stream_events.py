"""What streams, events, captures, graphs and limits were asked for: the trace's events about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunnion.sim.launch_attributes import WindowAttribute
    from trunnion.sim.work_events import Launched, MemoryCopied, MemorySet

__all__ = [
    "CaptureBegan",
    "CaptureEnded",
    "Captured",
    "EventRecorded",
    "EventWaited",
    "GraphInstantiated",
    "GraphLaunched",
    "LimitSet",
    "PersistingLinesReset",
    "StreamAttributeSet",
    "Synchronized",
]


@dataclass(frozen=True, slots=True)
class StreamAttributeSet:
    """``cuStreamSetAttribute`` or ``cuStreamCopyAttributes`` changed an attribute of a stream."""

    attribute: int
    """``CUstreamAttrID``."""

    value: WindowAttribute | int
    """The new value."""

    device: int
    """The stream's device."""

    stream: int
    """The stream's handle, as it was passed (2 for the null stream of a per-thread call)."""


@dataclass(frozen=True, slots=True)
class LimitSet:
    """``cuCtxSetLimit`` changed a limit."""

    limit: int
    """``CUlimit``."""

    asked: int
    """What was asked for."""

    value: int
    """What the limit is now."""

    device: int
    """The device of the context."""


@dataclass(frozen=True, slots=True)
class PersistingLinesReset:
    """``cuCtxResetPersistingL2Cache`` made all persisting lines normal."""

    device: int
    """The device of the context."""


@dataclass(frozen=True, slots=True)
class Synchronized:
    """The host waited for a stream or for a context."""

    device: int
    """The device."""

    stream: int | None
    """The stream's handle, as it was passed; None for the whole context."""

    context: int = 0
    """The handle of the context, the stream's if one was waited for; 0 from a machine that does not tell."""


@dataclass(frozen=True, slots=True)
class EventRecorded:
    """``cuEventRecord`` recorded an event."""

    event: int
    """The event's handle."""

    device: int
    """The stream's device."""

    stream: int
    """The stream's handle, as it was passed (2 for the null stream of a per-thread call)."""


@dataclass(frozen=True, slots=True)
class EventWaited:
    """``cuStreamWaitEvent`` let a stream wait for an event."""

    event: int
    """The event's handle."""

    device: int
    """The stream's device."""

    stream: int
    """The stream's handle, as it was passed (2 for the null stream of a per-thread call)."""


@dataclass(frozen=True, slots=True)
class CaptureBegan:
    """``cuStreamBeginCapture`` began a capture."""

    stream: int
    """The stream's handle, as it was passed."""

    mode: int
    """``CUstreamCaptureMode``."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A stream that captures took up work, which did not run."""

    event: Launched | MemorySet | MemoryCopied | GraphLaunched
    """What the trace will show when the graph runs."""

    node: int
    """The handle of the graph's new node."""


@dataclass(frozen=True, slots=True)
class CaptureEnded:
    """``cuStreamEndCapture`` returned a graph."""

    stream: int
    """The stream's handle, as it was passed."""

    graph: int
    """The graph's handle."""


@dataclass(frozen=True, slots=True)
class GraphInstantiated:
    """``cuGraphInstantiateWithFlags`` made a graph executable."""

    graph: int
    """The graph's handle."""

    executable: int
    """The handle of what ``cuGraphLaunch`` takes."""


@dataclass(frozen=True, slots=True)
class GraphLaunched:
    """``cuGraphLaunch`` ran a graph; the work of its nodes follows."""

    executable: int
    """The executable graph's handle."""

    nodes: int
    """How many nodes it has."""

    device: int
    """The stream's device."""

    stream: int
    """The stream's handle, as it was passed (2 for the null stream of a per-thread call)."""
