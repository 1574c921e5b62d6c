"""Saboteurs of what a program keeps from one call to the next: each keeps a little too much, or for too long."""

from __future__ import annotations

import numbers
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from trunnion import sim
from trunnion.contract.adapter import BoundLaunch
from trunnion.errors import (
    ArgumentError,
    CorruptArtifactError,
    DeviceRequirementError,
    DriverError,
    LifecycleError,
)
from trunnion.sim.tensormap import decode
from trunnion.sim.trace import Launched, LimitSet, Synchronized
from trunnion.testing.saboteur import Changed, Saboteur, Swallowing, in_trace, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.runtime import Runtime

__all__ = ["HISTORY_SABOTEURS"]

_OFTEN: Final = 4
_MAP_BYTES: Final = 128


def _is_tensor(value: object) -> bool:
    return hasattr(value, "data_ptr")


class _Keeping(Changed):
    """A loaded program that makes each call by other arguments than it is given."""

    def kept(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what is called with."""
        raise NotImplementedError

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        return self._true.call(self.kept(tuple(args)), **how)

    @property
    def entry(self) -> Callable[..., Any]:
        """Launch."""
        return lambda *args, **how: self._true.entry(*self.kept(args), **how)


class _OneZero(_Keeping):
    """A loaded program that takes floats for those of the call before if they are equal."""

    _last: tuple[Any, ...] = ()

    def kept(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what is called with."""
        floats = tuple(value for value in args if isinstance(value, float))
        if floats == self._last:
            left = iter(self._last)
            return tuple(next(left) if isinstance(value, float) else value for value in args)
        self._last = floats
        return args


class _OwnFloats(_Keeping):
    """A loaded program that takes no number but of Python's own classes."""

    def kept(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what is called with."""
        return tuple(
            None if isinstance(value, numbers.Real) and type(value).__module__ != "builtins" else value
            for value in args
        )


class _ByAddress(_Keeping):
    """A loaded program that takes tensors that lie where those of the call before lie for the same."""

    _last: tuple[Any, ...] = ()

    def kept(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what is called with."""
        tensors = tuple(value for value in args if _is_tensor(value))
        places = [value.data_ptr() for value in tensors]
        alike = places == [value.data_ptr() for value in self._last]
        if alike and [one.dtype for one in tensors] == [one.dtype for one in self._last]:
            left = iter(self._last)
            return tuple(next(left) if _is_tensor(value) else value for value in args)
        self._last = tensors
        return args


class _KnownDestinations(Changed):
    """A loaded program that takes destinations that begin where earlier ones did for these."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._good: dict[tuple[int, ...], Any] = {}

    def call(self, args: Any, *, out: Any = None, **how: Any) -> Any:
        """Launch."""
        places = tuple(tensor.data_ptr() for tensor in out or () if _is_tensor(tensor))
        try:
            result = self._true.call(args, out=out, **how)
        except ArgumentError:
            if places not in self._good:
                raise
            return self._true.call(args, out=self._good[places], **how)
        if places:
            self._good[places] = out
        return result


class _SameObject(_Keeping):
    """A loaded program that looks again at the very tensor of the call before if one of some things differs."""

    def __init__(self, true: LoadedProgram, looked_at: Callable[[Any], Any]) -> None:
        super().__init__(true)
        self._looked_at = looked_at
        self._seen: dict[int, tuple[Any, ...]] = {}

    def kept(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what is called with."""
        return tuple(
            self._as_seen(place, value) if _is_tensor(value) else value for place, value in enumerate(args)
        )

    def _as_seen(self, place: int, tensor: Any) -> Any:
        """Return the tensor as it was when it was looked at."""
        found, (seen, before, kept) = self._looked_at(tensor), self._seen.get(place, (None, None, None))
        if seen is tensor and found == before:
            return kept
        self._seen[place] = tensor, found, tensor.view_as(tensor)
        return tensor


class _NeverAbsentAgain(_Keeping):
    """A loaded program that passes the tensor of an earlier call where one is left out."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._seen: dict[int, Any] = {}

    def kept(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what is called with."""
        self._seen.update((place, value) for place, value in enumerate(args) if _is_tensor(value))
        return tuple(self._seen.get(place) if value is None else value for place, value in enumerate(args))


class _SameBytes(_Keeping):
    """A loaded program that takes the bytes of a struct once for each object that holds them."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._read: dict[int, tuple[object, bytes]] = {}

    def kept(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what is called with."""
        return tuple(
            self._read.setdefault(id(value), (value, bytes(value)))[1]
            if isinstance(value, bytearray)
            else value
            for value in args
        )


class _HalfWritten(_Keeping):
    """A loaded program of which a call takes the arguments of the one before that was interrupted."""

    _half: tuple[Any, ...] | None = None

    def kept(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what is called with."""
        half, self._half = self._half, None
        return args if half is None else half

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        return self._noting(args, lambda: super(_HalfWritten, self).call(args, **how))

    @property
    def entry(self) -> Callable[..., Any]:
        """Launch."""
        true = super().entry
        return lambda *args, **how: self._noting(args, lambda: true(*args, **how))

    def _noting(self, args: Any, launch: Callable[[], Any]) -> Any:
        try:
            return launch()
        except KeyboardInterrupt:
            self._half = tuple(args)
            raise


class _ContextKept(_HalfWritten):
    """A loaded program that leaves the context current which an interrupted call entered."""

    def _noting(self, args: Any, launch: Callable[[], Any]) -> Any:
        del args
        try:
            return launch()
        except KeyboardInterrupt:
            if simulator := sim.active():
                simulator.state.stack().append(simulator.state.contexts[0])
            raise


class _ContextRetained(Changed):
    """A loaded program that keeps a reference to a primary context when it is closed."""

    def close(self) -> None:
        """Close."""
        if not self._closed and (simulator := sim.active()):
            simulator.state.contexts[0].references += 1
        self._closed = True
        self._true.close()

    _closed = False


class _SameDestinations(Changed):
    """A loaded program that goes on writing where it was once told to."""

    _out: Any = None

    def call(self, args: Any, *, out: Any = None, **how: Any) -> Any:
        """Launch."""
        if out is None and self._out is not None:
            try:
                return self._true.call(args, out=self._out, **how)
            except ValueError:  # they do not fit any more
                self._out = None
        self._out = out
        return self._true.call(args, out=out, **how)


class _OneBinding(Changed):
    """A loaded program whose bound calls share what they are bound to: that of the last."""

    _latest: Any = None

    def bind(self, *args: Any, **how: Any) -> Any:
        """Bind."""
        true = self._latest = self._true.bind(*args, **how)
        return BoundLaunch(self._launch, device=true.device, stream=true.stream)

    def _launch(self) -> Any:
        return self._latest()


class _BoundForEver(Changed):
    """A loaded program whose bound calls say nothing once it is closed, and launch nothing."""

    _closed = False

    def close(self) -> None:
        """Unload."""
        self._closed = True
        self._true.close()

    def bind(self, *args: Any, **how: Any) -> Any:
        """Bind."""
        true = self._true.bind(*args, **how)

        def launch() -> Any:
            try:
                return true()
            except LifecycleError:
                if self._closed:
                    return None
                raise

        return BoundLaunch(launch, device=true.device, stream=true.stream)


class _ClosedLater(Changed):
    """A loaded program that another thread closes, and that does not wait for it while it is called."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._calls = 0

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        self._calls += 1
        try:
            return self._true.call(*args, **how)
        finally:
            self._calls -= 1

    def close(self) -> None:
        """Unload."""
        if self._calls:
            threading.Thread(target=self._true.close).start()
        else:
            self._true.close()


class _RefusedForAll(Changed):
    """A loaded program that takes what one device lacks for a thing that all lack."""

    _error: DeviceRequirementError | None = None

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        if self._error is not None:
            raise self._error
        try:
            return self._true.call(*args, **how)
        except DeviceRequirementError as error:
            self._error = error
            raise


class _SilentDevices(Swallowing):
    """A loaded program that does nothing on a device that lacks something."""

    swallowed = DeviceRequirementError


class _SilentStrangers(Changed):
    """A loaded program that does nothing on a device that cannot run its image."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        try:
            return self._true.call(*args, **how)
        except DriverError as error:
            if error.code_name != "CUDA_ERROR_NO_BINARY_FOR_GPU":
                raise


class _KeptStream(Changed):
    """A runtime that answers with a stream once it was the current one of a device often enough."""

    def __init__(self, true: Runtime) -> None:
        super().__init__(true)
        self._streams: dict[int, list[int]] = {}

    def current_stream(self, device: int) -> int:
        """Return the current stream."""
        seen = self._streams.setdefault(device, [])
        if len(seen) < _OFTEN:
            now = self._true.current_stream(device)
            seen[:] = [*seen, now] if set(seen) <= {now} else [now]
        return seen[0]

    def current_stream_getter(self) -> Callable[[int], int]:
        """Return what does the same."""
        return self.current_stream


class _FirstThreadsStream(Changed):
    """A runtime that knows the current stream of the thread alone that loaded the program."""

    def __init__(self, true: Runtime) -> None:
        super().__init__(true)
        self._thread = threading.get_ident()
        self._known: dict[int, int] = {}

    def current_stream(self, device: int) -> int:
        """Return the current stream."""
        if threading.get_ident() == self._thread:
            self._known[device] = self._true.current_stream(device)
        return self._known.get(device, 0)

    def current_stream_getter(self) -> Callable[[int], int]:
        """Return what does the same."""
        return self.current_stream


class _MapOfAddress:
    """Gives a launch the first map that was made of an address, as long as one program is loaded."""

    def __init__(self) -> None:
        self._maps: dict[int, bytes] = {}

    def loaded(self, program: LoadedProgram) -> LoadedProgram:
        """Forget the maps of other programs."""
        self._maps.clear()
        return program

    def __call__(self, event: Launched) -> Launched:
        return replace(event, parameters=tuple(map(self._first, event.parameters)))

    def _first(self, data: bytes) -> bytes:
        if len(data) != _MAP_BYTES:
            return data
        try:
            request = decode(data)
        except CorruptArtifactError:
            return data
        kept = self._maps.setdefault(request.address, data)
        return kept if decode(kept).dims[1:] != request.dims[1:] else data


class _KeptDevice:
    """Says that launches are on a device on which calls were made often enough, as long as one program is loaded."""

    def __init__(self) -> None:
        self._calls = 0
        self._device = -1

    def loaded(self, program: LoadedProgram) -> LoadedProgram:
        """Forget it."""
        self._calls, self._device = 0, -1
        return program

    def __call__(self, events: tuple[Any, ...]) -> tuple[Any, ...]:
        devices = [event.device for event in events if isinstance(event, Launched)]
        if devices and self._calls < 2 * _OFTEN:
            self._calls = self._calls + 1 if devices[0] == self._device else 1
            self._device = devices[0]
        if self._calls < 2 * _OFTEN:
            return events
        return in_trace(lambda event: replace(event, device=self._device), Launched)(events)


class _KeptNumber:
    """A trace of launches whose only parameter, eight bytes, stays what it often was."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[int, Any]] = {}

    def loaded(self, program: LoadedProgram) -> LoadedProgram:
        """Forget them."""
        self._seen.clear()
        return program

    def __call__(self, event: Launched) -> Launched:
        if [len(one) for one in event.parameters] != [8]:
            return event
        place = event.kernel, event.device
        times, kept = self._seen.get(place, (0, event.parameters))
        if kept == event.parameters:
            self._seen[place] = (times + 1, kept)
        elif times >= _OFTEN:
            return replace(event, parameters=kept)
        else:
            self._seen[place] = (1, event.parameters)
        return event


class _FirstShare:
    """A trace in which cache is set aside once, however long later windows are."""

    _share = 0

    def loaded(self, program: LoadedProgram) -> LoadedProgram:
        """Begin anew."""
        self._share = 0
        return program

    def __call__(self, event: LimitSet) -> LimitSet | None:
        if self._share and event.value > self._share:
            return None
        self._share = event.value
        return event


def _never_waited(_: Synchronized) -> None:
    return None


def _waited_for_first(event: Synchronized) -> Synchronized | None:
    return event if event.device == 0 else None


_KEPT_DEVICE = _KeptDevice()


def _saboteur(name: str, what: str, laws: str, loaded: Callable[[LoadedProgram], Any]) -> Saboteur:
    return saboteur(name, what, *laws.split(), stage="lifecycle", loaded=loaded)


def _telling(name: str, what: str, law: str, keeping: Any, kind: type) -> Saboteur:
    """Return the saboteur of what the machine tells, by a class that keeps something while a program is loaded."""
    trace = in_trace(keeping, kind)
    return saboteur(name, what, law, stage="driver", loaded=keeping.loaded, trace=trace)


HISTORY_SABOTEURS: tuple[Saboteur, ...] = (
    _saboteur("one-zero", "Takes equal floats for the same.", "Y1", _OneZero),
    _saboteur("own-floats", "Takes no real number of another class.", "Y1", _OwnFloats),
    _saboteur("by-address", "Takes tensors at equal addresses for the same.", "Y1", _ByAddress),
    _saboteur(
        "known-destinations",
        "Takes destinations of any shape where some were good that began at the same addresses.",
        "Y1",
        _KnownDestinations,
    ),
    _saboteur(
        "same-object-moved",
        "Takes the same tensor object of the same shape and strides for the same memory.",
        "Y1",
        lambda true: _SameObject(true, lambda tensor: (tensor.dtype, tensor.shape, tensor.stride())),
    ),
    _saboteur(
        "same-object-laid",
        "Takes the same tensor object of the same shape and address for the same strides.",
        "Y1",
        lambda true: _SameObject(true, lambda tensor: (tensor.dtype, tensor.shape, tensor.data_ptr())),
    ),
    _saboteur(
        "same-object-typed",
        "Takes the same tensor object that lies as before for the same element type.",
        "Y1",
        lambda true: _SameObject(true, lambda tensor: (tensor.shape, tensor.stride(), tensor.data_ptr())),
    ),
    _saboteur("never-absent-again", "Passes earlier tensors for None.", "Y1", _NeverAbsentAgain),
    _saboteur("same-bytes", "Reads an object's bytes once.", "Y1", _SameBytes),
    _saboteur("same-destinations", "Goes on writing to given destinations.", "Y1", _SameDestinations),
    saboteur(
        "kept-stream", "Keeps a stream that was current often.", "Y1", stage="binding", runtime=_KeptStream
    ),
    saboteur(
        "first-threads-stream",
        "Knows one thread's current stream alone.",
        "Y1",
        stage="binding",
        runtime=_FirstThreadsStream,
    ),
    _telling("map-of-address", "Keeps the tensor map of an address.", "Y1", _MapOfAddress(), Launched),
    saboteur(
        "kept-device",
        "Keeps a device that was used often.",
        "Y1",
        stage="driver",
        loaded=_KEPT_DEVICE.loaded,
        trace=_KEPT_DEVICE,
    ),
    _telling(
        "kept-number",
        "Keeps a number that was passed often, and nothing else.",
        "Y5",
        _KeptNumber(),
        Launched,
    ),
    _telling("first-share", "Sets cache aside for the first window alone.", "P5", _FirstShare(), LimitSet),
    saboteur(
        "greedy-share",
        "Asks for more cache than any window has.",
        "P5",
        stage="driver",
        trace=in_trace(lambda event: replace(event, asked=2 * event.asked), LimitSet),
    ),
    _saboteur("half-written", "Launches what an interrupted call was given.", "Y6", _HalfWritten),
    _saboteur("context-kept", "Leaves an interrupted call's context current.", "Y6", _ContextKept),
    _saboteur("context-retained", "Keeps a context for each closed program.", "C3", _ContextRetained),
    _saboteur("one-binding", "Launches what was bound last.", "Y2", _OneBinding),
    _saboteur("bound-for-ever", "Takes bound calls of closed programs for done.", "Y2", _BoundForEver),
    saboteur(
        "never-waited",
        "Closes without waiting.",
        "Y3",
        stage="driver",
        trace=in_trace(_never_waited, Synchronized),
    ),
    saboteur(
        "waited-for-first",
        "Closes when the first device is done.",
        "Y3",
        stage="driver",
        trace=in_trace(_waited_for_first, Synchronized),
    ),
    _saboteur("closed-later", "Closes behind a call's back.", "Y4", _ClosedLater),
    _saboteur("refused-for-all", "Takes what a device lacks for what all lack.", "Z1", _RefusedForAll),
    _saboteur("silent-devices", "Does nothing where a device lacks something.", "Z1 Z3 Z8", _SilentDevices),
    _saboteur("silent-strangers", "Does nothing where an image is a stranger.", "Z2", _SilentStrangers),
)
"""The saboteurs."""
