"""What the simulated driver was asked to do, as typed events in the order of the calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from trunnion.sim.stream_events import (
    CaptureBegan,
    Captured,
    CaptureEnded,
    EventRecorded,
    EventWaited,
    GraphInstantiated,
    GraphLaunched,
    LimitSet,
    PersistingLinesReset,
    StreamAttributeSet,
    Synchronized,
)
from trunnion.sim.work_events import Launched, MemoryCopied, MemorySet

if TYPE_CHECKING:
    from trunnion.sim.status import Status
    from trunnion.sim.tensormap import Im2colRequest, TiledRequest

__all__ = [
    "Allocated",
    "AttributeSet",
    "CallRefused",
    "CaptureBegan",
    "CaptureEnded",
    "Captured",
    "Event",
    "EventRecorded",
    "EventWaited",
    "GraphInstantiated",
    "GraphLaunched",
    "Launched",
    "LibraryLoaded",
    "LibraryUnloaded",
    "LimitSet",
    "MemoryCopied",
    "MemorySet",
    "PersistingLinesReset",
    "StreamAttributeSet",
    "Synchronized",
    "TensorMapEncoded",
    "Trace",
]


@dataclass(frozen=True, slots=True)
class LibraryLoaded:
    """``cuLibraryLoadData`` read an image."""

    library: int
    """The library's handle."""

    sha256: str
    """Of the image's bytes, from its first to the end that its own headers give; hexadecimal."""

    nbytes: int
    """The image's size in bytes."""


@dataclass(frozen=True, slots=True)
class LibraryUnloaded:
    """``cuLibraryUnload`` dropped a library."""

    library: int
    """The library's handle."""


@dataclass(frozen=True, slots=True)
class AttributeSet:
    """``cuKernelSetAttribute`` or ``cuFuncSetAttribute`` changed an attribute."""

    kernel: str
    """The kernel's exact symbol name."""

    device: int
    """The device's ordinal."""

    attribute: int
    """``CUfunction_attribute``."""

    value: int
    """The new value."""


@dataclass(frozen=True, slots=True)
class TensorMapEncoded:
    """``cuTensorMapEncodeTiled`` or ``cuTensorMapEncodeIm2col`` wrote a map."""

    request: TiledRequest | Im2colRequest
    """All that was asked for."""


@dataclass(frozen=True, slots=True)
class Allocated:
    """Device memory was allocated for a launcher, through the runtime or through DLPack's exchange API."""

    address: int
    """The first byte."""

    nbytes: int
    """How many bytes."""

    device: int
    """The device's ordinal."""

    stream: int
    """The stream under which it was allocated."""


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A call broke a rule and returned an error status."""

    call: str
    """The entry point."""

    status: Status
    """What it returned."""

    reason: str
    """Which rule was broken."""


Event: TypeAlias = (
    LibraryLoaded
    | LibraryUnloaded
    | AttributeSet
    | TensorMapEncoded
    | Allocated
    | MemorySet
    | MemoryCopied
    | Launched
    | StreamAttributeSet
    | LimitSet
    | PersistingLinesReset
    | Synchronized
    | EventRecorded
    | EventWaited
    | CaptureBegan
    | Captured
    | CaptureEnded
    | GraphInstantiated
    | GraphLaunched
    | CallRefused
)
"""Everything that a trace can hold."""


class Trace:
    """A list of events, which threads, signals' handlers and finalizers add to: each in one step, without a lock."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def add(self, event: Event) -> None:
        """Append one event."""
        self._events.append(event)

    def events(self) -> tuple[Event, ...]:
        """Return all events so far, oldest first."""
        return tuple(self._events)

    def clear(self) -> None:
        """Forget all events."""
        self._events.clear()
