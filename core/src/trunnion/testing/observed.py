"""What came of a call: what the machine told of it, and what the caller got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from trunnion.errors import LifecycleError, TrunnionError
from trunnion.sim.trace import Allocated, CallRefused, Launched, MemoryCopied, MemorySet, TensorMapEncoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trunnion.model.program import KernelProgram
    from trunnion.sim.tensormap import Im2colRequest, TiledRequest
    from trunnion.testing.expected import CallSignature
    from trunnion.testing.harness import Harness
    from trunnion.testing.machine import Told

__all__ = ["Observed", "Seen", "going_on", "is_work", "observe"]


def is_work(event: Told) -> TypeGuard[Launched | MemorySet | MemoryCopied]:
    """Whether an event is what a call has a stream do: a launch, a fill, or a copy within a device.

    What is written to module variables from the host is no call's: it is done when a device is prepared.
    """
    return isinstance(event, (Launched, MemorySet)) or (
        isinstance(event, MemoryCopied) and event.direction == "DtoD"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One call, as the machine and the caller saw it."""

    result: Any
    """What the call returned; None if it raised."""

    error: TrunnionError | None
    """What it raised, if that is one of the library's own errors."""

    given_out: list[Any] | None
    """The destinations that were given."""

    events: tuple[Told, ...]
    """What the machine told of it."""

    @property
    def launches(self) -> tuple[Launched, ...]:
        """The launches, in order."""
        return tuple(event for event in self.events if isinstance(event, Launched))

    @property
    def encodes(self) -> tuple[TiledRequest | Im2colRequest, ...]:
        """The tensor maps that were encoded, in order."""
        return tuple(event.request for event in self.events if isinstance(event, TensorMapEncoded))

    @property
    def allocations(self) -> tuple[Allocated, ...]:
        """The allocations, in order; a tensor of no bytes takes no memory."""
        return tuple(event for event in self.events if isinstance(event, Allocated) and event.nbytes)

    @property
    def refusals(self) -> tuple[str, ...]:
        """What the driver refused, and why."""
        return tuple(
            f"{event.call}: {event.reason}" for event in self.events if isinstance(event, CallRefused)
        )

    def seen(self, facts: CallSignature) -> Seen:
        """Return what is kept of a call.

        Parameters
        ----------
        facts
            What it was made with.
        """
        error = "" if self.error is None else f"{type(self.error).__name__}: {self.error}"
        return Seen(facts, self.launches, error)

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The returned tensors: of None none, of a tuple its members."""
        if self.result is None:
            return ()
        return self.result if isinstance(self.result, tuple) else (self.result,)


@dataclass(frozen=True, slots=True)
class Seen:
    """What is kept of a call for the report of a violation; no tensor of it stays alive."""

    facts: CallSignature
    """What it was made with."""

    launches: tuple[Launched, ...]
    """What was launched."""

    error: str
    """What it raised; empty if it returned."""

    program: KernelProgram | None = None
    """What was called; None: nobody knows."""


def observe(harness: Harness, launch: Callable[[], Any], *, given_out: list[Any] | None = None) -> Observed:
    """Run a call, and return what came of it.

    Parameters
    ----------
    harness
        The backend; its machine's trace is cleared first.
    launch
        The call.
    given_out
        The destinations that it was given.
    """
    harness.enough()
    machine = harness.machine
    machine.clear_trace()
    result, caught = None, None
    try:
        result = machine.call(launch)
    except TrunnionError as error:
        caught = error.with_traceback(None)  # whose frames hold the call's tensors, and this one
    events = harness.sabotage.trace(machine.trace)
    return Observed(result=result, error=caught, given_out=given_out, events=events)


def going_on(ways: Mapping[str, Callable[[], Any]]) -> Iterator[str]:
    """Yield which of some ways to call a program that is gone did not raise a LifecycleError, and what came of them.

    Parameters
    ----------
    ways
        What makes the call, by the words for it.
    """
    for way, call in ways.items():
        try:
            call()
        except LifecycleError:
            continue
        except TrunnionError as error:
            yield f"{way} raised {type(error).__name__}: {error}"
        else:
            yield f"{way} went through"
