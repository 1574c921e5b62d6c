"""All that the simulated driver remembers, and where each handle leads."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from trunnion.sim.capture import Captures
from trunnion.sim.devices import Device
from trunnion.sim.graph import Graph, GraphExec, GraphNode
from trunnion.sim.interception import Interceptions
from trunnion.sim.memory import DeviceMemory
from trunnion.sim.objects import (
    LEGACY_STREAM,
    PER_THREAD_STREAM,
    Context,
    Event,
    Function,
    Kernel,
    Library,
    Stream,
)
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import Trace
from trunnion.turns import Turn, Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from trunnion.sim.bodies import KernelBody
    from trunnion.sim.devices import Architecture

__all__ = ["DriverState"]

_FIRST_HANDLE: Final = 0x51_0000_0000_0000  # above every user-space address: no handle can pass for memory
_HANDLE_STEP: Final = 0x100

_MOST_OPERATIONS: Final = 16  # who computes much on simulated tensors forgets no trace in between

Handled: TypeAlias = Context | Stream | Event | Library | Kernel | Function | Graph | GraphNode | GraphExec
"""Everything that a handle can stand for."""

_Handled = TypeVar("_Handled", Context, Stream, Event, Library, Kernel, Function, Graph, GraphNode, GraphExec)


class DriverState:
    """What the simulated driver remembers.

    Parameters
    ----------
    archs
        The architecture of each device.
    driver_version
        What ``cuDriverGetVersion`` returns: 1000 x major + 10 x minor.
    thread
        Returns a number that names the calling thread, and that no other thread has or had.
    calls
        The names of the calls that can be intercepted.
    """

    def __init__(
        self,
        archs: Sequence[Architecture],
        driver_version: int,
        thread: Callable[[], int],
        calls: Collection[str] = (),
    ) -> None:
        self._handles = itertools.count(_FIRST_HANDLE, _HANDLE_STEP)
        self.freed: list[int] | None = None
        """The handles that were given back, to be given again, the last first; None: none is given again."""
        self.devices = tuple(Device(ordinal, arch) for ordinal, arch in enumerate(archs))
        self.driver_version = driver_version
        self._initialized_in = 0
        self.thread = thread
        self.trace = Trace()
        self.operations: deque[str] = deque(maxlen=_MOST_OPERATIONS)
        """What the tensor library did last with the elements of a device's tensors: on a GPU kernels, copies, waits."""
        self.memory = DeviceMemory()
        self.bodies: dict[str, KernelBody] = {}
        self.run_bodies: set[str] = set()
        """The kernels whose body was run."""
        self.bodiless: set[str] = set()
        """The kernels of which was said that they have none."""
        self._taking = Turns("the simulated driver is at work", nests=True)
        self._contexts_made = itertools.count(1)
        self.contexts = tuple(
            Context(self.new_handle(), device, next(self._contexts_made)) for device in self.devices
        )
        self._stacks: dict[int, list[Context]] = {}
        self._streams: dict[tuple[int, int], int] = {}
        self._activated: set[int] = set()
        self.handled: dict[int, Handled] = {context.handle: context for context in self.contexts}
        self.captures = Captures(self.new_handle, self.forget_graph)
        self.interceptions = Interceptions(calls)
        self._streams_made = itertools.count(1)

    @property
    def lock(self) -> Turn:
        """A turn of the calling thread, for whoever reads or changes several things at once."""
        return self._taking.turn()

    @property
    def initialized(self) -> bool:
        """Whether ``cuInit`` was called in this process; a forked child has no driver, as on a GPU."""
        return self._initialized_in == os.getpid()

    @property
    def is_forked(self) -> bool:
        """Whether ``cuInit`` was called in a process of which this is a forked child."""
        return self._initialized_in not in (0, os.getpid())

    def initialize(self) -> None:
        """Do what ``cuInit`` does.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_NOT_INITIALIZED``, if this process was forked from one that did it.
        """
        if self.is_forked:
            raise Refusal(Status.NOT_INITIALIZED, "this process was forked after cuInit, and has no driver")
        self._initialized_in = os.getpid()

    def new_handle(self) -> int:
        """Return a handle that is not in use."""
        with contextlib.suppress(IndexError):
            if self.freed is not None:
                return self.freed.pop()
        return next(self._handles)

    def remove(self, thing: Handled) -> None:
        """Make a thing unreachable, and its handle free."""
        if self.handled.pop(thing.handle, None) is not None and self.freed is not None:
            self.freed.append(thing.handle)

    def add(self, thing: Handled) -> None:
        """Make a thing reachable by its handle."""
        self.handled[thing.handle] = thing

    def get(self, kind: type[_Handled], handle: int | None) -> _Handled:
        """Return the thing of that kind behind a handle.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_INVALID_HANDLE``, if there is none (any more).
        """
        found = self.handled.get(handle or 0)
        if not isinstance(found, kind):
            raise Refusal(
                Status.INVALID_HANDLE, f"{handle or 0:#x} is no live {kind.__name__.lower()} of this driver"
            )
        return found

    def forget_graph(self, graph: Graph) -> None:
        """Make a graph and its nodes unreachable; what was instantiated from it goes on to work."""
        self.handled.pop(graph.handle, None)
        for node in graph.nodes:
            self.handled.pop(node.handle, None)
        graph.memory.clear()  # an event that was recorded in the capture may still know the graph

    def destroy(self, context: Context) -> None:
        """Make all that a context held unreachable: nothing of it is valid under one that is retained later."""
        device, is_primary = context.device, context in self.contexts
        for thing in (*context.defaults.values(), *self.handled.values()):
            if isinstance(thing, Kernel) and is_primary:
                thing.functions.pop(device.ordinal, None)
            elif isinstance(thing, Library):
                for name in [key for key in thing.variables if key[1] == context.handle]:
                    del thing.variables[name]
            elif (isinstance(thing, Stream | Event) and thing.context is context) or (
                isinstance(thing, Function) and is_primary and thing.device is device
            ):
                if isinstance(thing, Stream):
                    self.captures.abandon(thing)
                self.handled.pop(thing.handle, None)
        context.limits.clear()
        context.defaults.clear()
        context.number = next(self._contexts_made)  # of the one that is retained later under the same handle
        if not is_primary:
            self.remove(context)

    def make_context(self, device: Device, primary: Context | None = None) -> Context:
        """Return a new context beside the primary one, reachable by its handle; a green one if it is of a primary."""
        number = next(self._contexts_made)
        context = Context(self.new_handle(), device, number, references=1, primary=primary)
        self.add(context)
        return context

    def device(self, ordinal: int) -> Device:
        """Return a device by its ordinal.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_INVALID_DEVICE``, if there is none.
        """
        if not 0 <= ordinal < len(self.devices):
            raise Refusal(Status.INVALID_DEVICE, f"device {ordinal} of {len(self.devices)}")
        return self.devices[ordinal]

    def activate(self, device: Device) -> None:
        """Do what a tensor library does at its first use of a device: initialise, retain the primary context.

        It makes no context current: that the library of the calling thread did so is nothing to rely on.
        """
        with self.lock:
            self.initialize()
            if device.ordinal not in self._activated:
                self._activated.add(device.ordinal)
                self.contexts[device.ordinal].references += 1

    def current_stream(self, device: int) -> int:
        """Return the calling thread's current stream of a device; 0 unless `set_current_stream` set it."""
        return self._streams.get((self.thread(), device), 0)

    def set_current_stream(self, device: int, stream: int) -> int:
        """Make a stream the calling thread's current one of a device, and return the one before."""
        key = (self.thread(), device)
        before = self._streams.get(key, 0)
        self._streams[key] = stream
        return before

    def keep_for_capture(self, handle: int, tensor: object) -> None:
        """Let the graph that a stream captures keep a tensor that was allocated under it; otherwise do nothing.

        Parameters
        ----------
        handle
            The stream; for a default one nothing is kept. The legacy one captures nothing, and of the per-thread one,
            which captures, a tensor library knows nothing.
        tensor
            The tensor.
        """
        stream = self.handled.get(handle)
        if isinstance(stream, Stream) and stream.capture is not None:
            stream.capture.graph.memory.append(tensor)

    def stack(self) -> list[Context]:
        """Return the calling thread's context stack, the current one last."""
        return self._stacks.setdefault(self.thread(), [])

    def end_thread(self) -> None:
        """Forget the calling thread, which ends: its contexts, its current streams and its capture mode."""
        thread = self.thread()
        self._stacks.pop(thread, None)
        for key in [key for key in self._streams.copy() if key[0] == thread]:
            del self._streams[key]
        self.captures.end_thread(thread)

    def current(self) -> Context:
        """Return the calling thread's current context.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_INVALID_CONTEXT`` if the thread has none (a new thread has none),
            ``CUDA_ERROR_CONTEXT_IS_DESTROYED`` if it was released or destroyed.
        """
        stack = self.stack()
        if not stack:
            raise Refusal(Status.INVALID_CONTEXT, "the calling thread has no current context")
        if stack[-1].references == 0:
            raise Refusal(Status.CONTEXT_IS_DESTROYED, "the current context was released or destroyed")
        return stack[-1]

    def new_stream(self, context: Context, flags: int = 0) -> Stream:
        """Return a new stream of a context, reachable by its handle."""
        stream = Stream(self.new_handle(), context, next(self._streams_made), flags)
        self.add(stream)
        return stream

    def replace_stream(self, handle: int, device: Device) -> None:
        """Have a handle stand for a new stream, in place of the one for which it stood."""
        with self.lock:
            context = self.contexts[device.ordinal]
            self.add(Stream(self.get(Stream, handle).handle, context, next(self._streams_made)))

    def stream(self, handle: int) -> Stream:
        """Return the stream behind a handle.

        Parameters
        ----------
        handle
            The handle; 0, 1 and 2 are the default streams of the current context.

        Raises
        ------
        Refusal
            If the handle is not live, or a default stream is meant and no context is current.
        """
        if handle not in (0, LEGACY_STREAM, PER_THREAD_STREAM):
            return self.get(Stream, handle)
        context = self.current()
        own = handle == PER_THREAD_STREAM
        key = self.thread() if own else 0
        with self.lock:
            if key not in context.defaults:
                name = PER_THREAD_STREAM if own else LEGACY_STREAM
                context.defaults[key] = Stream(name, context, next(self._streams_made))
            return context.defaults[key]
