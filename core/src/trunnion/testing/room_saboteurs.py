"""Saboteurs of other contexts than the primary one, of captures behind a bind, and of what tells calls apart."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from trunnion import sim
from trunnion.contract.adapter import BoundLaunch
from trunnion.errors import ArgumentError, CaptureError
from trunnion.sim.abi import Limit
from trunnion.sim.objects import Stream
from trunnion.sim.trace import Launched
from trunnion.testing.saboteur import Changed, Saboteur, in_trace, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.sim import Simulator
    from trunnion.sim.objects import Context

__all__ = ["ROOM_SABOTEURS"]


def _simulator() -> Simulator:
    """Return the simulated driver: these saboteurs are of its tier."""
    return sim.active() or sim.start()


def _context(stream: int | None = None) -> Context | None:
    """Return a stream's context if it has a handle of its own, else the current one."""
    state = _simulator().state
    known = state.handled.get(stream or 0)
    return known.context if isinstance(known, Stream) else next(reversed(state.stack()), None)


def _is_foreign(context: Context | None) -> bool:
    """Whether a context is neither a primary nor a green one, so that it has variables of its own."""
    return context is not None and context.primary is None and context not in _simulator().state.contexts


class _Unrefusing(Changed):
    """A loaded program that does nothing in some contexts that it should refuse, and says nothing."""

    def _passes_over(self, stream: int | None) -> bool:
        raise NotImplementedError

    def call(self, args: Any, *, stream: int | None = None, **how: Any) -> Any:
        """Launch, or not."""
        passes = self._passes_over(stream)
        try:
            return self._true.call(args, stream=stream, **how)
        except ArgumentError as error:
            if error.argument == "stream" and passes:
                return None
            raise


class _AnyStream(_Unrefusing):
    """A loaded program that looks at the current context alone, and never at that of a stream."""

    def _passes_over(self, stream: int | None) -> bool:
        return _is_foreign(_context(stream)) and not _is_foreign(_context())


class _AnyFirst(_Unrefusing):
    """A loaded program that takes the context of its first call for one that has its variables."""

    _called = False

    def _passes_over(self, stream: int | None) -> bool:
        first, self._called = not self._called, True
        return first and _is_foreign(_context(stream))


class _ByHandle(_Unrefusing):
    """A loaded program that knows the contexts that have its variables by their handles."""

    _known: Final[set[int]] = set()

    def _passes_over(self, stream: int | None) -> bool:
        context = _context(stream)
        if context is None or not _is_foreign(context):
            self._known.update([] if context is None else [context.handle])
            return False
        return context.handle in self._known


class _LoweredHere(Changed):
    """A loaded program that gives no cache back where another context than the primary one is current."""

    def close(self) -> None:
        """Unload."""
        if not _is_foreign(_context()):
            self._true.close()
            return
        with _simulator().intercept("cuCtxSetLimit", lambda *_: None):
            self._true.close()


class _RaisedHere(Changed):
    """A loaded program that sets cache aside in the current context, whichever it is, for a window of a stream's."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        if not _is_foreign(_context()):
            return self._true.call(*args, **how)
        with _simulator().intercept("cuStreamSetAttribute", _without_cache):
            return self._true.call(*args, **how)


def _without_cache(proceed: Callable[..., None], *arguments: Any) -> None:
    for context in _simulator().state.contexts:
        context.limits[Limit.PERSISTING_L2_CACHE_SIZE] = 0
    proceed(*arguments)


class _NormalHere(Changed):
    """A loaded program that makes lines normal in the context that its caller had current."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        state, context = _simulator().state, _context()

        def normal(proceed: Callable[..., None], *arguments: Any) -> None:
            if context is None:
                proceed(*arguments)
                return
            state.stack().append(context)
            try:
                proceed(*arguments)
            finally:
                state.stack().pop()

        with _simulator().intercept("cuCtxResetPersistingL2Cache", normal):
            return self._true.call(*args, **how)


class _FillsFirst(Changed):
    """A loaded program whose bound calls fill their outputs, and then look whether their stream is captured."""

    _output: Any = None

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        result = self._true.call(*args, **how)
        self._output = result if hasattr(result, "data_ptr") else None
        return result

    def bind(self, *args: Any, **how: Any) -> Any:
        """Bind."""
        true = self._true.bind(*args, **how)

        def launch() -> Any:
            try:
                return true()
            except CaptureError:
                if self._output is not None:
                    fill = ctypes.CDLL("libcuda.so.1").cuMemsetD8Async
                    fill.argtypes = (ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, ctypes.c_void_p)
                    fill(self._output.data_ptr(), 0, 1, true.stream)
                raise

        return BoundLaunch(launch, name=true.name, device=true.device, stream=true.stream)


_ZEROS: Final = (bytes(8), bytes(7) + b"\x80")
"""The doubles that are equal to zero."""


class _EqualZeros:
    """Launches with the numbers of the launch before, if all are equal to those: as zeros of either sign are."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[bytes, ...]] = {}

    def __call__(self, event: Launched) -> Launched:
        last = self._last.get(event.kernel, ())
        pairs = list(zip(last, event.parameters, strict=False))
        alike = all(one == other or (one in _ZEROS and other in _ZEROS) for one, other in pairs)
        if alike and len(last) == len(event.parameters):
            return replace(event, parameters=last)
        self._last[event.kernel] = event.parameters
        return event


class _AnyTensors(Changed):
    """A tensor library that takes all tensors for alike, where nothing else reads them at once."""

    def guard(self, tensors: tuple[Any, ...]) -> Callable[..., bool] | None:
        """Return what tells nothing apart."""
        return None if self._true.guard(tensors) is None else lambda *_: True


def _lifecycle(name: str, sentence: str, law: str, loaded: type[Changed]) -> Saboteur:
    return saboteur(name, sentence, law, stage="lifecycle", loaded=loaded)


ROOM_SABOTEURS: tuple[Saboteur, ...] = (
    _lifecycle("streams-unseen", "Says nothing of a stream without its variables.", "M2", _AnyStream),
    _lifecycle("any-first-context", "Trusts the context of its first call.", "M2", _AnyFirst),
    _lifecycle("contexts-by-handle", "Knows contexts by their handles alone.", "M2", _ByHandle),
    _lifecycle("lowered-here", "Gives cache back where no other context is.", "P5", _LoweredHere),
    _lifecycle("raised-here", "Sets cache aside in whatever context is there.", "P5", _RaisedHere),
    _lifecycle("normal-here", "Makes lines normal in whatever context is there.", "P4", _NormalHere),
    _lifecycle("fills-first", "Fills, and then refuses to be captured.", "G3", _FillsFirst),
    saboteur(
        "equal-zeros",
        "Takes a zero for the one before, of either sign.",
        "V11",
        stage="driver",
        trace=in_trace(_EqualZeros(), Launched),
    ),
    saboteur("any-tensors", "Takes any tensors for alike.", "Y1", stage="binding", runtime=_AnyTensors),
)
"""The saboteurs."""
