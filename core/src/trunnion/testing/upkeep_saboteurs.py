"""Saboteurs of what a launcher keeps for its calls: room for their parameters, contexts, its share of the cache."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from trunnion import sim
from trunnion.contract.adapter import BoundLaunch
from trunnion.errors import ArgumentError, ArgumentValueError, DriverError
from trunnion.sim.abi import Limit
from trunnion.testing.saboteur import Changed, Saboteur, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.sim.objects import Context
    from trunnion.sim.state import DriverState

__all__ = ["UPKEEP_SABOTEURS"]

_MOST_FRAMES: Final = 8


def _state() -> DriverState | None:
    """Return the simulated driver's state, where one is."""
    simulator = sim.active()
    return None if simulator is None else simulator.state


def _current() -> Context | None:
    state = _state()
    return next(reversed(state.stack()), None) if state is not None else None


def _is_primary(context: Context | None) -> bool:
    state = _state()
    return state is None or context is None or context in state.contexts


class _FewFrames(Changed):
    """A loaded program with room for a few calls at once: the next take the place of the last of them."""

    def __init__(self, true: Any) -> None:
        super().__init__(true)
        self._within: list[Any] = []

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        self._within.append(args if len(self._within) < _MOST_FRAMES else self._within[-1])
        try:
            return self._true.call(self._within[-1], **how)
        finally:
            self._within.pop()


def _otherwise(true: BoundLaunch, launch: Callable[[], Any]) -> BoundLaunch:
    return BoundLaunch(launch, name=true.name, device=true.device, stream=true.stream)


class _BoundOnceAtATime(Changed):
    """A loaded program whose bound calls are passed over while they are being launched."""

    def bind(self, *args: Any, **how: Any) -> Any:
        """Bind."""
        true, turn = self._true.bind(*args, **how), threading.Lock()

        def launch() -> Any:
            if not turn.acquire(blocking=False):
                return None
            try:
                return true()
            finally:
                turn.release()

        return _otherwise(true, launch)


class _BoundToContext(Changed):
    """A loaded program whose bound calls enter no context once they found one that is the device's."""

    def bind(self, *args: Any, **how: Any) -> Any:
        """Bind."""
        true, found = self._true.bind(*args, **how), False

        def launch() -> Any:
            nonlocal found
            context = _current()
            fits = context is not None and context.device.ordinal == true.device
            if found and not fits:
                raise DriverError("cuLaunchKernelEx", 201, "CUDA_ERROR_INVALID_CONTEXT", "")
            found = found or fits
            return true()

        return _otherwise(true, launch)


class _SilentEntry(Changed):
    """A loaded program whose entry does nothing once it is closed, where it was taken before."""

    _closed = False

    @property
    def entry(self) -> Callable[..., Any]:
        """Launch, or not."""
        true = self._true.entry
        if self._closed:
            return true  # type: ignore[no-any-return]  # a launcher's
        return lambda *args, **how: None if self._closed else true(*args, **how)

    def close(self) -> None:
        """Unload."""
        self._true.close()
        self._closed = True


class _NeverLowered(Changed):
    """A loaded program that gives no cache back while there are others."""

    _others: Final[set[int]] = set()

    def __init__(self, true: Any) -> None:
        super().__init__(true)
        self._others.add(id(self))

    def close(self) -> None:
        """Unload."""
        state = _state()
        limits = [] if state is None else [context.limits for context in state.contexts]
        before = [dict(one) for one in limits]
        self._true.close()
        self._others.discard(id(self))
        key = Limit.PERSISTING_L2_CACHE_SIZE
        for now, then in zip(limits, before, strict=True):
            if self._others and now.get(key, 0):
                now[key] = max(now[key], then.get(key, 0))


class _AnyContext(Changed):
    """A loaded program that does nothing where the current context is none of its own, instead of saying so."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch, or not."""
        try:
            return self._true.call(args, **how)
        except ArgumentError as error:
            if error.argument == "stream" and not _is_primary(_current()):
                return None
            raise


class _PrimaryStreams(Changed):
    """A loaded program that takes the streams of green contexts for another device's."""

    def call(self, args: Any, *, stream: int | None = None, **how: Any) -> Any:
        """Launch, or not."""
        state = _state()
        known = None if state is None or stream is None else state.handled.get(stream)
        if known is not None and not _is_primary(getattr(known, "context", None)):
            raise ArgumentValueError("stream", f"{stream:#x}", "a stream of the tensors' device")
        return self._true.call(args, stream=stream, **how)


class _UnpicklableError(DriverError):
    """An error of the driver that no other process can be told."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a driver's error")


class _Untold(Changed):
    """A loaded program whose errors stay in their process."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        try:
            return self._true.call(args, **how)
        except DriverError as error:
            explained = str(error).partition(": ")[2]
            raise _UnpicklableError(error.call, error.code, error.code_name, explained) from error


def _saboteur(name: str, sentence: str, law: str, loaded: type[Changed]) -> Saboteur:
    return saboteur(name, sentence, law, stage="lifecycle", loaded=loaded)


UPKEEP_SABOTEURS: tuple[Saboteur, ...] = (
    _saboteur("few-frames", "Has room for eight calls at once.", "H1", _FewFrames),
    _saboteur("bound-once-at-a-time", "Passes over a bound call within itself.", "H1", _BoundOnceAtATime),
    _saboteur("bound-to-context", "Enters no context where one was found before.", "N4", _BoundToContext),
    _saboteur("silent-entry", "Does nothing by an entry taken before the close.", "C1", _SilentEntry),
    _saboteur("never-lowered", "Keeps the longest window's cache to the last.", "P5", _NeverLowered),
    _saboteur("any-context", "Says nothing of a context without its variables.", "M2", _AnyContext),
    _saboteur("primary-streams", "Refuses the streams of green contexts.", "Y3", _PrimaryStreams),
    _saboteur("untold", "Raises what cannot be pickled.", "N5", _Untold),
)
"""The saboteurs."""
