"""Driver calls that fail: what a good call asks the driver, and a fault at one of these places."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trunnion.errors import CaptureError, DeviceRequirementError, DriverError
from trunnion.sim.interception import ALLOCATE
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import CallRefused
from trunnion.testing.observed import is_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunnion.sim.interception import Proceed
    from trunnion.testing.harness import Harness
    from trunnion.testing.machine import Told

__all__ = [
    "CALL_STATUSES", "NAMED_STATUSES", "PROBES", "STICKY_STATUSES", "UNDO", "PlantedFault", "asked", "effects_after",
    "planted", "reports",
]  # fmt: skip

CALL_STATUSES: Final = (
    Status.INVALID_VALUE,
    Status.OUT_OF_MEMORY,
    Status.INVALID_HANDLE,
    Status.NOT_SUPPORTED,
    Status.UNKNOWN,
    Status.NEWER,
    Status.UNNAMED,
    Status.STREAM_CAPTURE_UNSUPPORTED,
    Status.INVALID_CLUSTER_SIZE,
)
"""Statuses of one call, one at least of each class of errors."""

NAMED_STATUSES: Final = tuple(status for status in Status if status not in (Status.SUCCESS, Status.UNNAMED))
"""Whatever a driver says no with, and has a name for, the backend's own tables know it or not."""

_TYPED: Final[Mapping[Status, type[Exception]]] = {
    Status.COOPERATIVE_LAUNCH_TOO_LARGE: DeviceRequirementError,
    Status.UNSUPPORTED_PTX_VERSION: DeviceRequirementError,
    Status.INVALID_CLUSTER_SIZE: DeviceRequirementError,
    **{status: CaptureError for status in Status if status.name.startswith(("STREAM_CAPTURE_", "CAPTURED_"))},
}
"""Statuses that are an error of a class of their own."""

STICKY_STATUSES: Final = (Status.ILLEGAL_ADDRESS, Status.LAUNCH_FAILED, Status.ECC_UNCORRECTABLE)
"""Statuses that every later call of the process returns too."""

UNDO: Final = frozenset({"cuCtxPopCurrent", "cuDevicePrimaryCtxRelease", "cuThreadExchangeStreamCaptureMode"})
"""Calls that take back what another one did: where such a call fails, that stays, and need not be told."""

PROBES: Final = frozenset({"cuCtxGetDevice"}) | UNDO
"""Calls whose failure is an answer, since they ask whether something is there, or comes when all is done."""

_TOO_MUCH_SHARED_MEMORY: Final = ("cuKernelSetAttribute", Status.INVALID_VALUE)
"""How the driver says that a kernel cannot have so much: a launcher may say so in its stead."""

_REASON: Final = "a fault that the suite planted"


@dataclass(slots=True)
class PlantedFault:
    """The failure of one call, and of all that follow if its status is a sticky one."""

    name: str
    """The call's name."""

    nth: int
    """Which of the calls of that name fails, counted from 1."""

    status: Status
    """What it returns."""

    seen: list[str] = field(default_factory=list)
    """The name of each call before."""

    struck: bool = False
    """Whether it has failed."""

    def __call__(self, name: str, proceed: Proceed, *arguments: Any) -> None:
        """Let a call pass, or fail."""
        self.seen.append(name)
        if self.struck and self.status in STICKY_STATUSES:
            raise Refusal(self.status, _REASON)
        if not self.struck and name == self.name and self.seen.count(name) == self.nth:
            self.struck = True
            raise Refusal(self.status, _REASON)
        proceed(*arguments)


@contextmanager
def asked(harness: Harness) -> Iterator[list[str]]:
    """Note each call that the driver is asked for until the block ends, and each allocation."""
    fault = PlantedFault("", 0, Status.UNKNOWN)
    with harness.simulator.intercept_every(fault):
        yield fault.seen


@contextmanager
def planted(harness: Harness, names: list[str], place: int, status: Status) -> Iterator[PlantedFault]:
    """Let the call at one place of a good run fail until the block ends.

    Parameters
    ----------
    harness
        The backend.
    names
        What a good run asked for.
    place
        Which of them fails; counted from 0, and round again.
    status
        What it returns.
    """
    at = place % len(names)
    fault = PlantedFault(names[at], names[: at + 1].count(names[at]), status)
    with harness.simulator.intercept_every(fault):
        yield fault


def effects_after(events: tuple[Told, ...]) -> list[Told]:
    """Return what was launched and set once a planted fault had struck."""
    places = [
        at for at, event in enumerate(events) if isinstance(event, CallRefused) and event.reason == _REASON
    ]
    return [event for event in events[min(places, default=len(events)) :] if is_work(event)]


def reports(error: BaseException, fault: PlantedFault) -> bool:
    """Whether an error says which call failed, and how; of an allocation, that memory ran out or the driver's status.

    Parameters
    ----------
    error
        What a call raised.
    fault
        What struck.
    """
    if (fault.name, fault.status) == _TOO_MUCH_SHARED_MEMORY and isinstance(error, DeviceRequirementError):
        return True
    if fault.name == ALLOCATE and type(error).__name__ == "OutOfMemoryError":
        return True
    wanted = _TYPED.get(fault.status, DriverError)
    if isinstance(error, DriverError):
        told = error.code == fault.status and error.call.partition("_")[0] == fault.name
        told &= _is_named(error, fault)
        return told and (wanted is DriverError or not _is_typed(fault, wanted))
    return isinstance(error, wanted) and fault.name in str(error)


def _is_named(error: DriverError, fault: PlantedFault) -> bool:
    """Whether an error has the driver's name of its status; where there is none, its number at most."""
    if fault.status is Status.UNNAMED and fault.name != ALLOCATE:  # whose errors are the tensor library's
        return error.code_name in ("", f"status {int(fault.status)}", str(int(fault.status)))
    return error.code_name == fault.status.symbol


def _is_typed(fault: PlantedFault, wanted: type[Exception]) -> bool:
    """Whether no bare status will do: of a capture every call can tell, of a device that is too small a launch."""
    if fault.name == ALLOCATE:  # whose errors are the tensor library's
        return False
    return wanted is CaptureError or fault.name.startswith("cuLaunchKernel")
