"""The simulated driver: every entry point of the shim, connected to its handler."""

from __future__ import annotations

import atexit
import functools
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.sim import (
    handlers_capture,
    handlers_context,
    handlers_device,
    handlers_function,
    handlers_graph,
    handlers_launch,
    handlers_library,
    handlers_memory,
    handlers_occupancy,
    handlers_stream,
    handlers_tensormap,
)
from trunnion.sim.call import Call
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import CallRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trunnion.sim.call import Handler
    from trunnion.sim.shim import Entry, Shim
    from trunnion.sim.state import DriverState

__all__ = ["HANDLERS", "Driver"]

HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        **handlers_device.HANDLERS,
        **handlers_context.HANDLERS,
        **handlers_stream.HANDLERS,
        **handlers_capture.HANDLERS,
        **handlers_graph.HANDLERS,
        **handlers_library.HANDLERS,
        **handlers_function.HANDLERS,
        **handlers_occupancy.HANDLERS,
        **handlers_launch.HANDLERS,
        **handlers_memory.HANDLERS,
        **handlers_tensormap.HANDLERS,
    }
)
"""Every handler, by exported symbol (without ``_ptsz`` and ``_ptds``)."""


class Driver:
    """Connects a shim to a state, and keeps what handlers raise until it can leave.

    Parameters
    ----------
    shim
        The loaded shim.
    state
        What the driver remembers.
    """

    def __init__(self, shim: Shim, state: DriverState) -> None:
        self._shim = shim
        self._state = state

    def connect(self) -> None:
        """Register a handler for every entry point, until the interpreter ends."""
        for entry in self._shim.entries:
            self._shim.register(entry, self._guarded(entry, HANDLERS[entry.handler]))
        atexit.register(self._shim.unregister)

    def take_pending(self) -> list[BaseException]:
        """Return and forget what handlers raised in the calling thread, oldest first."""
        pending, thread = self._shim.pending, self._state.thread()
        mine = [raised for raised in tuple(pending) if raised[0] == thread]
        for raised in mine:
            pending.remove(raised)
        return [error for _, error in mine]

    def has_pending(self) -> bool:
        """Whether handlers raised in the calling thread."""
        thread = self._state.thread()
        return any(raised[0] == thread for raised in tuple(self._shim.pending))

    def keep(self, error: BaseException) -> None:
        """Keep an exception of the calling thread that cannot be raised through native code."""
        self._shim.pending.append((self._state.thread(), error))

    def _guarded(self, entry: Entry, handler: Handler) -> Callable[..., int]:
        call = Call(entry, self._shim.entries, self._state)
        interceptions, bound = self._state.interceptions, functools.partial(handler, call)
        early = entry.base in handlers_device.UNINITIALIZED

        def guarded(*arguments: Any) -> int:
            try:
                if not (early or self._state.initialized):
                    raise Refusal(Status.NOT_INITIALIZED, "cuInit was not called")  # noqa: TRY301 - one way out
                interceptions.run(entry.base, bound, *arguments)
            except Refusal as refusal:
                if entry.base != "cuGetProcAddress":  # asking what there is, is no event
                    self._state.trace.add(CallRefused(entry.symbol, refusal.status, refusal.reason))
                return refusal.status
            return Status.SUCCESS

        return guarded
