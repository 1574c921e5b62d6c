"""Saboteurs of module variables: what they hold, where they lie, and when something is copied to them."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trunnion import sim
from trunnion.errors import TrunnionError, VariableMismatchError
from trunnion.model.plan import VariableArgument
from trunnion.sim.trace import MemoryCopied
from trunnion.testing.observed import is_work
from trunnion.testing.saboteur import Changed, Saboteur, each_launch, in_trace, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.model.plan import LaunchPlan, PlannedLaunch
    from trunnion.sim import Simulator
    from trunnion.testing.machine import Told

__all__ = ["VARIABLE_SABOTEURS"]


def _simulator() -> Simulator:
    """Return the simulated driver: these saboteurs are of its tier."""
    return sim.active() or sim.start()


def _uninitialised(plan: LaunchPlan) -> LaunchPlan:
    return replace(plan, variables=tuple(replace(one, init=None) for one in plan.variables))


def _late_copies(plan: LaunchPlan) -> LaunchPlan:
    """Copy behind the launch that a copy should come before; behind the last one not at all."""
    last = len(plan.launches) - 1
    copies = (replace(one, before=one.before + 1) for one in plan.copies if one.before < last)
    return replace(plan, copies=tuple(copies))


def _other_variable(launch: PlannedLaunch) -> PlannedLaunch:
    args = tuple(
        replace(one, variable=0) if isinstance(one, VariableArgument) else one for one in launch.args
    )
    return replace(launch, args=args)


def _legacy(event: MemoryCopied) -> MemoryCopied:
    return replace(event, stream=1) if is_work(event) else event


def _copies_last(events: tuple[Told, ...]) -> tuple[Told, ...]:
    """Tell of copies once all is launched."""
    return tuple(sorted(events, key=lambda event: isinstance(event, MemoryCopied) and is_work(event)))


class _Writing(Changed):
    """A loaded program that stands between its launcher and what this writes to variables first."""

    def _write(self, proceed: Callable[..., None], target: int, *rest: Any) -> None:
        """Write."""
        proceed(target, *rest)

    def _sparing(self, call: Callable[[], Any]) -> Any:
        with _simulator().intercept("cuMemcpyHtoDAsync", self._write):
            return call()

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        return self._sparing(lambda: self._true.call(*args, **how))

    def bind(self, *args: Any, **how: Any) -> Any:
        """Bind."""
        return self._sparing(lambda: self._true.bind(*args, **how))

    def preload(self, device: int) -> None:
        """Prepare."""
        self._sparing(lambda: self._true.preload(device))


class _FirstDevice(_Writing):
    """A loaded program that writes what variables hold first on the first device that is prepared, and on no other."""

    _device: int | None = None

    def _write(self, proceed: Callable[..., None], target: int, *rest: Any) -> None:
        found = _simulator().memory.find(target)
        device = None if found is None else found.device
        self._device = device if self._device is None else self._device
        if device == self._device:
            proceed(target, *rest)


class _Unwaited(_Writing):
    """A loaded program that does not wait until what variables hold first is written."""

    def _sparing(self, call: Callable[[], Any]) -> Any:
        with _simulator().intercept("cuStreamSynchronize", lambda *_: None):
            return call()


class _PreparedAgain(_Writing):
    """A loaded program that writes what variables hold first whenever a device is preloaded."""

    def __init__(self, true: Any) -> None:
        super().__init__(true)
        self._written: dict[int, bytes] = {}

    def _write(self, proceed: Callable[..., None], target: int, *rest: Any) -> None:
        source, nbytes, _ = rest
        self._written[target] = ctypes.string_at(source, nbytes)
        proceed(target, *rest)

    def preload(self, device: int) -> None:
        """Prepare, and again."""
        before = len(self._written)
        super().preload(device)
        for address, data in self._written.items() if len(self._written) == before else ():
            ctypes.memmove(address, data, len(data))


class _TakenForWritten(_Writing):
    """A loaded program that takes for written what it was about to write when something failed."""

    def __init__(self, true: Any) -> None:
        super().__init__(true)
        self._begun: set[int] = set()
        self._taken: set[int] = set()

    def _write(self, proceed: Callable[..., None], target: int, *rest: Any) -> None:
        if target not in self._taken:
            self._begun.add(target)
            proceed(target, *rest)

    def _sparing(self, call: Callable[[], Any]) -> Any:
        self._begun = set()
        try:
            return super()._sparing(call)
        except TrunnionError:
            self._taken |= self._begun
            raise


class _AnySize(Changed):
    """An adapter that takes a variable of any size for one of the right size."""

    def build(self, source: Any, image: Any, staging: Any) -> Any:
        """Build."""
        try:
            return self._true.build(source, image, staging)
        except VariableMismatchError:
            slots = zip(image.variables, source.plan.variables, strict=True)
            fitting = tuple(replace(one, nbytes=slot.nbytes) for one, slot in slots)
            return self._true.build(source, replace(image, variables=fitting), staging)


VARIABLE_SABOTEURS: tuple[Saboteur, ...] = (
    saboteur(
        "uninitialised",
        "Writes nothing to module variables.",
        "M2",
        stage="plan",
        plan=_uninitialised,
    ),
    saboteur(
        "initialised-once",
        "Initialises module variables on the first device alone.",
        "M2",
        stage="lifecycle",
        loaded=_FirstDevice,
    ),
    saboteur(
        "unwaited-writes",
        "Launches while module variables are being initialised.",
        "M2",
        stage="lifecycle",
        loaded=_Unwaited,
    ),
    saboteur(
        "initialised-again",
        "Initialises module variables whenever a device is preloaded.",
        "M2",
        stage="lifecycle",
        loaded=_PreparedAgain,
    ),
    saboteur(
        "taken-for-initialised",
        "Never initialises module variables once that has failed.",
        "F1",
        stage="lifecycle",
        loaded=_TakenForWritten,
    ),
    saboteur(
        "late-copies",
        "Copies to module variables a launch too late.",
        "M1",
        "M2",
        stage="plan",
        plan=_late_copies,
    ),
    saboteur(
        "first-variable",
        "Passes the first module variable's address for each.",
        "M1",
        stage="plan",
        plan=each_launch(_other_variable),
    ),
    saboteur(
        "legacy-copies",
        "Copies to module variables on the legacy stream.",
        "M1",
        stage="driver",
        trace=in_trace(_legacy, MemoryCopied),
    ),
    saboteur(
        "copies-last",
        "Copies to module variables behind all launches.",
        "M1",
        stage="driver",
        trace=_copies_last,
    ),
    saboteur(
        "any-variable-size",
        "Takes a module variable of any size for the right one at the build.",
        "M3",
        stage="lifecycle",
        adapter=_AnySize,
    ),
)
"""The saboteurs."""
