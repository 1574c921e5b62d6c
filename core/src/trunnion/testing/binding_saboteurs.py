"""Saboteurs of bound calls, of a program's life, and of what is said of the driver: narrow ones too."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from trunnion import sim
from trunnion.contract.adapter import BoundLaunch
from trunnion.errors import (
    ArgumentTypeError,
    CaptureError,
    DeviceRequirementError,
    DriverError,
    LifecycleError,
    TrunnionError,
)
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import Synchronized
from trunnion.testing.faults import CALL_STATUSES, STICKY_STATUSES
from trunnion.testing.saboteur import Changed, Saboteur, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import LoadedProgram

__all__ = ["BINDING_SABOTEURS"]


def _bound(true: Any, launch: Callable[[], Any], name: str | None = None) -> BoundLaunch:
    """Return a bound call that launches otherwise than another one, or goes by another name."""
    return BoundLaunch(
        launch, name=true.name if name is None else name, device=true.device, stream=true.stream
    )


# Bound calls --------------------------------------------------------------------------------------------------------


class _Uncapturable(Changed):
    """A loaded program whose bound calls cannot be captured."""

    def bind(self, *args: Any, **how: Any) -> Any:
        """Bind."""
        true = self._true.bind(*args, **how)

        def launch() -> Any:
            simulator = sim.active()
            if simulator is not None and simulator.state.captures.standing:
                raise CaptureError("a bound call cannot be captured")
            return true()

        return _bound(true, launch)


class _Misnamed(Changed):
    """A loaded program whose bound calls go by another name."""

    def bind(self, *args: Any, **how: Any) -> Any:
        """Bind."""
        true = self._true.bind(*args, **how)
        return _bound(true, true, f"{true.name}, bound")


class _Weak(Changed):
    """A loaded program whose bound calls need it to be there."""

    def bind(self, *args: Any, **how: Any) -> Any:
        """Bind."""
        true, program = self._true.bind(*args, **how), weakref.ref(self)

        def launch() -> Any:
            if program() is None:
                raise LifecycleError("the program is gone")
            return true()

        return _bound(true, launch)


_MOST_KEPT: Final = 64


class _FewKept(Changed):
    """A loaded program that forgets what a call is bound to once there were many other calls."""

    _calls = 0

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        self._calls += 1
        return self._true.call(*args, **how)

    def bind(self, *args: Any, **how: Any) -> Any:
        """Bind."""
        true, begun = self._true.bind(*args, **how), self._calls
        return _bound(true, lambda: true() if self._calls - begun < _MOST_KEPT else None)


# A program's life ---------------------------------------------------------------------------------------------------


class _ReadsFirst(Changed):
    """A loaded program that reads its numbers before it asks whether it is closed."""

    _closed = False

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        if self._closed and any(type(one) is str for one in args):
            raise ArgumentTypeError("", "str", "a number")
        return self._true.call(args, **how)

    def close(self) -> None:
        """Unload."""
        self._closed = True
        self._true.close()


class _PreparesTheCurrent(Changed):
    """A loaded program that prepares a device only where no other one is current."""

    def preload(self, device: int) -> None:
        """Prepare, or not."""
        simulator = sim.active()
        stack = simulator.state.stack() if simulator is not None else ()
        if not stack or stack[-1].device.ordinal == device:
            self._true.preload(device)


class _WaitsInChildren(Changed):
    """A loaded program that waits when it is closed, in a forked child too."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._process = os.getpid()

    def close(self) -> None:
        """Unload."""
        if self._process != os.getpid() and (simulator := sim.active()):
            simulator.state.trace.add(Synchronized(device=0, stream=None))
        self._true.close()


class _KeepsLaterResults(Changed):
    """A loaded program that keeps what it returned, but for the first time."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._kept: list[Any] = []

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        result = self._true.call(*args, **how)
        self._kept.append(result if self._kept else None)
        return result


class _ForgetsWhileFirst(Changed):
    """A loaded program that forgets a call of another thread while the first one is under way."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._done = False
        self._first: int | None = None

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch, or not."""
        me = threading.get_ident()
        if not self._done and self._first not in (None, me):
            return None
        self._first = me
        try:
            result = self._true.call(*args, **how)
        finally:
            self._first = None
        self._done = True
        return result


class _SetsAhead(Changed):
    """A loaded program that sets memory before it enters its context, which a thread that has none cannot."""

    def call(self, args: Any, *, stream: int | None = None, **how: Any) -> Any:
        """Launch."""

        def refused(*_: Any) -> None:
            raise Refusal(Status.INVALID_CONTEXT, "memory is set where no context is current")

        with ExitStack() as setting:
            simulator = sim.active()
            if stream == 0 and simulator is not None and not simulator.state.stack():
                for bits in (8, 16, 32):
                    setting.enter_context(simulator.intercept(f"cuMemsetD{bits}Async", refused))
            return self._true.call(args, stream=stream, **how)


class _Silent(Changed):
    """A loaded program that prepares a device which lacks something, and does not say so."""

    def preload(self, device: int) -> None:
        """Prepare, or not."""
        try:
            self._true.preload(device)
        except DeviceRequirementError:
            return


# What the driver says -----------------------------------------------------------------------------------------------

_LISTED: Final = frozenset(map(int, (*CALL_STATUSES, *STICKY_STATUSES)))


class _ShortTable(Changed):
    """A loaded program that knows the names of some statuses."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        try:
            return self._true.call(*args, **how)
        except DriverError as error:
            if error.code in _LISTED:
                raise
            raise DriverError(error.call, error.code, "UNKNOWN", error.explanation) from error


class _ClosesVaguely(Changed):
    """A loaded program that says of a failing close only that it failed.

    Parameters
    ----------
    true
        The program.
    change
        Returns what it says instead of what the driver said.
    """

    def __init__(self, true: LoadedProgram, change: Callable[[DriverError], DriverError]) -> None:
        super().__init__(true)
        self._change = change

    def close(self) -> None:
        """Unload."""
        try:
            self._true.close()
        except DriverError as error:
            raise self._change(error) from error


class _HoldsItsErrors(Changed):
    """A loaded program whose errors stand in a variable of a frame that they keep, with the call's tensors."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        try:
            return self._true.call(*args, **how)
        except TrunnionError as error:
            told = error
        raise told


def _named_close(error: DriverError) -> DriverError:
    return DriverError("close", error.code, error.code_name, error.explanation)


def _lasting(error: DriverError) -> DriverError:
    if error.code not in map(int, STICKY_STATUSES):
        return error
    return DriverError(error.call, int(Status.UNKNOWN), "CUDA_ERROR_UNKNOWN", error.explanation)


def _saboteur(name: str, what: str, law: str, loaded: Callable[[LoadedProgram], Any]) -> Saboteur:
    return saboteur(name, what, law, stage="lifecycle", loaded=loaded)


BINDING_SABOTEURS: tuple[Saboteur, ...] = (
    _saboteur("uncapturable-bindings", "Captures no bound call.", "G1", _Uncapturable),
    _saboteur("misnamed-bindings", "Has another name for bound calls.", "C5", _Misnamed),
    _saboteur("weak-bindings", "Lets bound calls go with their program.", "C2", _Weak),
    _saboteur("few-kept", "Forgets bound calls after many others.", "T2", _FewKept),
    _saboteur("reads-first", "Says of a closed program that numbers are wrong.", "C1", _ReadsFirst),
    _saboteur("prepares-the-current", "Prepares the current device alone.", "C4", _PreparesTheCurrent),
    _saboteur("keeps-later-results", "Keeps what it returned, from the second on.", "C8", _KeepsLaterResults),
    _saboteur("holds-its-errors", "Keeps refused calls until the collector comes.", "C8", _HoldsItsErrors),
    _saboteur("forgets-while-first", "Forgets calls during the first one.", "H2", _ForgetsWhileFirst),
    _saboteur("sets-ahead", "Sets memory where no context is current.", "N4", _SetsAhead),
    _saboteur("silent-preload", "Preloads on devices that lack something.", "Z3", _Silent),
    _saboteur("waits-in-children", "Waits where a forked child closes.", "C6", _WaitsInChildren),
    _saboteur("short-table", "Has no name for some statuses.", "N5", _ShortTable),
    _saboteur(
        "vague-close",
        "Names no driver call when closing fails.",
        "F4",
        lambda true: _ClosesVaguely(true, _named_close),
    ),
    _saboteur(
        "lasting-close",
        "Has one status for devices that failed when it closes.",
        "F2",
        lambda true: _ClosesVaguely(true, _lasting),
    ),
)
"""The saboteurs."""
