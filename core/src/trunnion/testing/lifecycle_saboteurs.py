"""Saboteurs of a loaded program's life: of closing it, of its destinations, and of the process that it lives in."""

from __future__ import annotations

import ctypes
import os
from contextlib import ExitStack, suppress
from time import sleep
from typing import TYPE_CHECKING, Any

from trunnion import sim
from trunnion.errors import ArgumentError, DriverError
from trunnion.sim.objects import CaptureMode
from trunnion.sim.status import Refusal
from trunnion.sim.trace import Launched
from trunnion.testing.saboteur import Changed, Saboteur, Swallowing, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import LoadedProgram

__all__ = ["LIFECYCLE_SABOTEURS"]

_KNOWN_STATUSES = (1, 2, 400, 801, 900, 912, 999)


class _NeverClosed(Changed):
    """A loaded program that does not close."""

    def close(self) -> None:
        """Do nothing."""


class _ClosedWhenDropped(Changed):
    """A loaded program that closes itself when nobody refers to it."""

    def __del__(self) -> None:
        self._true.close()


class _IgnoresOut(Changed):
    """A loaded program that allocates even where destinations are given."""

    def call(self, args: Any, *, out: Any = None, **how: Any) -> Any:  # noqa: ARG002 - that is the mistake
        """Launch."""
        return self._true.call(args, **how)


class _BlindToForks(Changed):
    """A loaded program that does nothing in a forked child, and does not say so."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._process = os.getpid()

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        return self._true.call(*args, **how) if self._process == os.getpid() else None


class _EnteredOnce(Changed):
    """A loaded program whose entry launches once."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._left = [True]

    @property
    def entry(self) -> Callable[..., Any]:
        """Launch, the first time."""
        entry = self._true.entry
        return lambda *args, **how: entry(*args, **how) if self._left and self._left.pop() else None


class _NamesInOrder(Changed):
    """A loaded program that takes arguments by name for those by position, in the order in which they are written."""

    @property
    def entry(self) -> Callable[..., Any]:
        """Launch."""

        def entry(*args: Any, **named: Any) -> Any:
            words = {name: named.pop(name) for name in ("out", "stream", "device") if name in named}
            return self._true.entry(*args, *named.values(), **words)

        return entry


class _BoundToStreamZero(Changed):
    """A loaded program that forgets the stream that a call is bound to."""

    def bind(self, args: Any, *, stream: Any = None, **how: Any) -> Any:
        """Bind."""
        return self._true.bind(args, stream=None if stream is None else 0, **how)


class _BoundOnce(Changed):
    """A loaded program whose bound calls launch once."""

    def bind(self, *args: Any, **how: Any) -> Any:
        """Bind."""
        bound, left = self._true.bind(*args, **how), [True]
        return lambda: bound() if left and left.pop() else None


class _SwallowsErrors(Swallowing):
    """A loaded program that takes a failing driver call for a good one."""

    swallowed = DriverError


class _OpenAfterFailure(Changed):
    """A loaded program that cannot be closed once it could not be preloaded."""

    _failed = False

    def preload(self, device: int) -> None:
        """Prepare."""
        try:
            self._true.preload(device)
        except DriverError:
            self._failed = True
            raise

    def close(self) -> None:
        """Unload."""
        if not self._failed:
            self._true.close()


def _relaxed_loading(true: LoadedProgram) -> LoadedProgram:
    """Preload a device in the relaxed capture mode, which only success takes back."""
    if simulator := sim.active():
        captures, thread = simulator.state.captures, simulator.state.thread()
        mode = captures.exchange_mode(thread, CaptureMode.RELAXED)
        true.preload(0)
        captures.exchange_mode(thread, mode)
    return true


class _RelaxedByACall(Changed):
    """A loaded program that leaves the thread's captures relaxed from its first call until it is closed."""

    _mode: CaptureMode | None = None

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        result = self._true.call(*args, **how)
        if self._mode is None:
            self._mode = _exchanged(CaptureMode.RELAXED)
        return result

    def close(self) -> None:
        """Unload."""
        self._true.close()
        if self._mode is not None:
            _exchanged(self._mode)


def _exchanged(mode: CaptureMode) -> CaptureMode:
    """Give the thread a capture mode, and return the one that it had."""
    simulator = sim.active()
    if simulator is None:
        return mode
    return simulator.state.captures.exchange_mode(simulator.state.thread(), mode)


class _UnwaitedFailure(Changed):
    """A loaded program that waits for nothing when it is closed and no call of it has succeeded."""

    _succeeded = False

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        result = self._true.call(*args, **how)
        self._succeeded = True
        return result

    def close(self) -> None:
        """Unload."""
        with ExitStack() as unwaiting:
            if not self._succeeded and (simulator := sim.active()):
                for name in ("cuCtxSynchronize", "cuStreamSynchronize"):
                    unwaiting.enter_context(simulator.intercept(name, lambda *_: None))
            self._true.close()


class _PopsAnothers(Changed):
    """A loaded program of which a call that fails within another pops what that one entered, if it launched nothing."""

    _begun: tuple[int, int] | None = None

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        simulator = sim.active()
        if simulator is None:
            return self._true.call(*args, **how)
        there = simulator.state.stack(), sum(isinstance(event, Launched) for event in simulator.trace)
        outer, begun = self._begun, (len(there[0]), there[1])
        self._begun = outer or begun
        try:
            return self._true.call(*args, **how)
        except DriverError:
            if outer is not None and outer[0] < begun[0] and outer[1] == begun[1]:
                there[0].pop()
            raise
        finally:
            self._begun = outer


class _KnownMemory(Changed):
    """A loaded program that takes destinations for good whose memory an earlier call was given."""

    def __init__(self, true: Any) -> None:
        super().__init__(true)
        self._known: set[int] = set()

    def call(self, args: Any, *, out: Any = None, **how: Any) -> Any:
        """Launch, or not."""
        try:
            result = self._true.call(args, out=out, **how)
        except ArgumentError:
            if out and all(hasattr(one, "data_ptr") and one.data_ptr() in self._known for one in out):
                return out[0] if len(out) == 1 else tuple(out)
            raise
        given = (*args, *(out or ()))
        self._known |= {one.data_ptr() for one in given if hasattr(one, "data_ptr") and one.numel()}
        return result


class _AnyStream(Changed):
    """A loaded program that takes the second thing in whatever a stream says for its handle."""

    @property
    def entry(self) -> Callable[..., Any]:
        """Launch."""

        def entry(*args: Any, stream: Any = None, **how: Any) -> Any:
            said = stream.__cuda_stream__() if hasattr(stream, "__cuda_stream__") else None
            taken = isinstance(said, (list, tuple)) and len(said) > 1 and type(said[1]) is int
            return self._true.entry(*args, stream=said[1] if taken and said is not None else stream, **how)

        return entry


class _AnyNumber(Changed):
    """A loaded program that takes a bool for the number of a stream or of a device."""

    @property
    def entry(self) -> Callable[..., Any]:
        """Launch."""

        def entry(*args: Any, **named: Any) -> Any:
            taken = {name: int(named[name]) for name in ("stream", "device") if type(named.get(name)) is bool}
            return self._true.entry(*args, **{**named, **taken})

        return entry


class _OtherStatus(Changed):
    """A loaded program that takes every driver's status for one."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        try:
            return self._true.call(*args, **how)
        except DriverError as error:
            raise DriverError(error.call, 999, "CUDA_ERROR_UNKNOWN", "") from error


class _OneName(Changed):
    """A loaded program whose errors have the driver's status, and another one's name."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        try:
            return self._true.call(*args, **how)
        except DriverError as error:
            raise DriverError(error.call, error.code, "CUDA_ERROR_UNKNOWN", str(error)) from error


class _OwnNames(Changed):
    """A loaded program that has a table of its own for the names of statuses, which not all are in."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        try:
            return self._true.call(*args, **how)
        except DriverError as error:
            if error.code in _KNOWN_STATUSES:
                raise
            raise DriverError(error.call, error.code, "UNKNOWN", error.explanation) from error


class _FirstToBlame(Changed):
    """A loaded program that blames the first tensor where another one lies on another device than that."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        try:
            return self._true.call(*args, **how)
        except ArgumentError as error:
            if error.refusal == "other-device":
                error.argument = error.expected.partition("where ")[2].partition(" lies")[0].strip("'\"")
            raise


class _PreparedInACapture(Changed):
    """A loaded program that a first call prepares, whether its stream is captured or not."""

    _prepared = False

    def call(self, args: Any, *, stream: int | None = None, **how: Any) -> Any:
        """Launch."""

        def unasked(proceed: Callable[..., None], handle: int, status: int) -> None:
            proceed(handle, status)
            ctypes.c_int.from_address(status).value = 0

        with ExitStack() as preparing:
            if not self._prepared and (simulator := sim.active()):
                preparing.enter_context(simulator.intercept("cuStreamIsCapturing", unasked))
                self._enter(preparing, simulator, stream)
            self._prepared = True
            return self._true.call(args, stream=stream, **how)

    def _enter(self, preparing: ExitStack, simulator: Any, stream: int | None) -> None:
        """Do nothing more."""


class _PreparedByTheGraph(_PreparedInACapture):
    """A loaded program such that what variables hold first is written by the graph."""

    def _enter(self, preparing: ExitStack, simulator: Any, stream: int | None) -> None:
        """Write on the call's own stream."""

        def captured(proceed: Callable[..., None], target: int, source: int, nbytes: int, _: Any) -> None:
            proceed(target, source, nbytes, stream)

        preparing.enter_context(simulator.intercept("cuMemcpyHtoDAsync", captured))


def _breaks_captures(true: LoadedProgram) -> LoadedProgram:
    """Load as what no capture allows, whosever it is."""
    if simulator := sim.active():
        with suppress(Refusal):
            simulator.state.captures.check_unsafe(simulator.state.thread(), "cuLibraryLoadData")
    return true


class _UnwaitedInACapture(Changed):
    """A loaded program that takes it for waiting where a capture lets it wait for nothing."""

    def close(self) -> None:
        """Unload."""

        def unwaited(proceed: Callable[..., None], *arguments: Any) -> None:
            with suppress(Refusal):
                proceed(*arguments)

        with ExitStack() as closing:
            if simulator := sim.active():
                closing.enter_context(simulator.intercept("cuCtxSynchronize", unwaited))
            self._true.close()


class _KeepsResults(Changed):
    """A loaded program that keeps what it returned."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._kept: list[Any] = []

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        self._kept.append(self._true.call(*args, **how))
        return self._kept[-1]


class _OneArgumentsForAll(Changed):
    """A loaded program that has one place for the arguments of all threads, as a static one is."""

    _given: Any = ()

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        self._given = args
        sleep(1e-4)
        return self._true.call(self._given, **how)


class _KeepsPlaces(Changed):
    """A loaded program that notes where each call's tensors lay, and forgets no call."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._kept: list[tuple[int, ...]] = []

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        self._kept.append(tuple(one.data_ptr() for one in args if hasattr(one, "data_ptr")))
        return self._true.call(args, **how)


class _ClosedOnceCalled(Changed):
    """A loaded program that nobody can close who never called it."""

    _called = False

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        self._called = True
        return self._true.call(*args, **how)

    def bind(self, *args: Any, **how: Any) -> Any:
        """Check."""
        self._called = True
        return self._true.bind(*args, **how)

    def close(self) -> None:
        """Unload."""
        if self._called:
            self._true.close()


def _saboteur(name: str, what: str, laws: str, loaded: Callable[[LoadedProgram], Any]) -> Saboteur:
    return saboteur(name, what, *laws.split(), stage="lifecycle", loaded=loaded)


LIFECYCLE_SABOTEURS: tuple[Saboteur, ...] = (
    _saboteur("never-closed", "Closing does nothing.", "C1", _NeverClosed),
    _saboteur("closed-when-dropped", "Unloads in a finalizer.", "C2", _ClosedWhenDropped),
    _saboteur("ignored-out", "Ignores the given destinations.", "O2", _IgnoresOut),
    _saboteur("known-memory", "Takes any destination in memory that was good.", "O2 X4", _KnownMemory),
    _saboteur("blind-to-forks", "Takes calls in a forked child.", "C6", _BlindToForks),
    _saboteur("entered-once", "Launches by the fastest way in once.", "L8", _EnteredOnce),
    _saboteur("names-in-order", "Takes names for positions.", "A6", _NamesInOrder),
    _saboteur("bound-to-zero", "Binds to the legacy stream whatever is given.", "N2", _BoundToStreamZero),
    _saboteur("bound-once", "Launches a bound call once.", "L1", _BoundOnce),
    _saboteur("swallowed-errors", "Takes a failing driver call for a good one.", "F1 F3 F4", _SwallowsErrors),
    _saboteur("open-after-failure", "Never unloads what failed to preload.", "F3", _OpenAfterFailure),
    _saboteur("relaxed-loading", "Leaves the capture mode when loading fails.", "F3", _relaxed_loading),
    _saboteur("relaxed-by-a-call", "Leaves the capture mode of a first call.", "N3", _RelaxedByACall),
    _saboteur("unwaited-failure", "Closes without waiting for half a call.", "Y3", _UnwaitedFailure),
    _saboteur("pops-anothers", "Pops the context of the call around one that fails.", "H1", _PopsAnothers),
    _saboteur("any-stream", "Takes what says no handle for a stream.", "N6", _AnyStream),
    _saboteur("any-number", "Takes a bool for a stream or a device.", "N6", _AnyNumber),
    _saboteur("other-status", "Reports another status than the driver's.", "F1 F2", _OtherStatus),
    _saboteur("one-name", "Has one name for all statuses.", "F1", _OneName),
    _saboteur("own-names", "Names statuses by a table of its own.", "F1 N5", _OwnNames),
    _saboteur("first-to-blame", "Blames the first tensor for another's device.", "A1", _FirstToBlame),
    _saboteur("prepared-in-a-capture", "Prepares in a capture.", "G2", _PreparedInACapture),
    _saboteur("prepared-by-the-graph", "Writes to variables in a capture.", "G2", _PreparedByTheGraph),
    _saboteur("breaks-captures", "Loads as what no capture allows.", "G4", _breaks_captures),
    _saboteur("unwaited-in-a-capture", "Unloads what it could not wait for.", "G5", _UnwaitedInACapture),
    _saboteur("keeps-results", "Keeps a reference to what it returned.", "C8", _KeepsResults),
    _saboteur("one-for-all", "Has one place for all threads' arguments.", "H3", _OneArgumentsForAll),
    _saboteur("keeps-places", "Keeps the addresses of every call.", "C9", _KeepsPlaces),
    _saboteur("closed-once-called", "Closes only what was called.", "C7", _ClosedOnceCalled),
)
"""The saboteurs."""
