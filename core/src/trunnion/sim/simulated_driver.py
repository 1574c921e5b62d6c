"""The simulated driver of a process: its devices, its memory, its streams, and what was asked of it."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from trunnion.arguments import expect_text
from trunnion.errors import ArgumentTypeError, ArgumentValueError, LifecycleError
from trunnion.messages import describe, first_line, shorten, type_name
from trunnion.sim.controls import Controls
from trunnion.sim.devices import check_integer
from trunnion.sim.driver import Driver
from trunnion.sim.objects import LEGACY_STREAM, PER_THREAD_STREAM
from trunnion.sim.state import DriverState
from trunnion.sim.status import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from trunnion.sim.bodies import KernelBody
    from trunnion.sim.devices import Architecture, Device
    from trunnion.sim.memory import DeviceMemory
    from trunnion.sim.objects import Context
    from trunnion.sim.recording import RecordedGraph
    from trunnion.sim.shim import Shim
    from trunnion.sim.trace import Event

__all__ = ["SimulatedDriver"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class SimulatedDriver(Controls):
    """The simulated driver of this process, with no tensor library; `trunnion.sim.simulator.Simulator` is one.

    Parameters
    ----------
    shim
        The loaded shim.
    archs
        The architecture of each device.
    driver_version
        The driver's CUDA version: 1000 x major + 10 x minor.
    """

    def __init__(self, shim: Shim, archs: Sequence[Architecture], driver_version: int) -> None:
        self._shim = shim
        calls = {entry.base for entry in shim.entries}
        super().__init__(DriverState(archs, driver_version, shim.thread, calls))
        self._driver = Driver(shim, self._state)
        self._driver.connect()

    def holds_lock(self) -> bool:
        """Whether the calling thread held Python's lock when it last called the driver."""
        return self._shim.holds_lock()

    @property
    def shim(self) -> Shim:
        """The loaded shim."""
        return self._shim

    @property
    def arch(self) -> str:
        """The architecture of the first device, for example ``"sm_90a"``; most often that of every device."""
        return self.archs[0]

    @property
    def archs(self) -> tuple[str, ...]:
        """The architecture of each device."""
        return tuple(device.arch.name for device in self._state.devices)

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return len(self._state.devices)

    @property
    def driver_version(self) -> int:
        """The driver's CUDA version: 1000 x major + 10 x minor."""
        return self._state.driver_version

    @property
    def library_path(self) -> str:
        """The path of the loaded ``libcuda.so.1``."""
        return str(self._shim.path)

    @property
    def memory(self) -> DeviceMemory:
        """The memory of all devices."""
        return self._state.memory

    @property
    def state(self) -> DriverState:
        """What the driver remembers."""
        return self._state

    @property
    def trace(self) -> tuple[Event, ...]:
        """Everything that the driver was asked to do, oldest first."""
        return self._state.trace.events()

    def clear_trace(self) -> None:
        """Forget the trace."""
        self._state.trace.clear()
        self._state.operations.clear()

    def register_body(self, symbol_name: str, body: KernelBody) -> None:
        """Run a Python function whenever a kernel is launched.

        Parameters
        ----------
        symbol_name
            The kernel's exact symbol name. A kernel without a body is only recorded, with a `KernelBodyWarning` if
            there is a body for a name that no kernel has.
        body
            Called with a `KernelCall` for each launch, and done before the launch returns. What it raises is
            raised again by `raise_pending`.

        Raises
        ------
        ArgumentTypeError
            If the name is no text, or the body cannot be called.
        """
        symbol_name = expect_text(symbol_name, "symbol_name", "a kernel's symbol, as text")
        if not callable(body):
            raise ArgumentTypeError("body", describe(body), "a function of a KernelCall")
        self._state.bodies[symbol_name] = body

    def unregister_body(self, symbol_name: str) -> None:
        """Stop running a body; nothing happens if there is none."""
        self._state.bodies.pop(symbol_name, None)

    @property
    def unused_bodies(self) -> frozenset[str]:
        """The symbols that have a body and stand in no launch of `trace`: a name may be misspelled."""
        from trunnion.sim.trace import Launched  # noqa: PLC0415 - as in the package, only who asks pays

        launched = {event.kernel for event in self.trace if isinstance(event, Launched)}
        return frozenset(self._state.bodies) - launched

    def raise_pending(self) -> None:
        """Raise what a handler or a kernel body raised in this thread since the last call, if anything.

        The first of several is raised, with notes about the others.
        """
        pending = self._driver.take_pending()
        if not pending:
            return
        for later in pending[1:]:
            pending[0].add_note(f"after it, in the same thread: {type_name(later)}: {first_line(later)}")
        raise pending[0]

    def has_pending(self) -> bool:
        """Whether `raise_pending` would raise."""
        return self._driver.has_pending()

    def forget_pending(self) -> None:
        """Forget what handlers and kernel bodies raised in this thread."""
        self._driver.take_pending()

    def reraise(self) -> AbstractContextManager[None]:
        """Return a context that raises, where it ends, what handlers and kernel bodies raised inside.

        Native code stands between a body and its launch, and lets no exception through: the launch returns an
        error status, and a launcher raises a `DriverError` for it. Here the exception itself comes out, with the
        launcher's as its context.
        """
        return _Reraise(self)

    def call(self, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Return ``function(*args, **kwargs)``, called inside `reraise`."""
        with self.reraise():
            return function(*args, **kwargs)

    def keep_pending(self, error: BaseException) -> None:
        """Keep an exception that cannot pass through native code, for `raise_pending` to raise."""
        self._driver.keep(error)

    def device(self, ordinal: int) -> Device:
        """Return a device, initialised and with its primary context retained, as a tensor library does it.

        Raises
        ------
        ArgumentTypeError
            If it is no integer.
        ArgumentValueError
            If there is no such device.
        LifecycleError
            If this process was forked from one that used the driver: as on a GPU, a child has none.
        """
        self._check_ordinal(ordinal)
        device = self._state.devices[ordinal]
        try:
            self._state.activate(device)
        except Refusal as refusal:
            raise LifecycleError(
                f"{refusal.reason}; start the child anew, and a simulator in it"
            ) from refusal
        return device

    @contextmanager
    def current(self, device: int) -> Iterator[None]:
        """Make a device's primary context current in the calling thread, as a tensor library may have left it.

        Raises
        ------
        ArgumentValueError
            If there is no such device.
        """
        self.device(device)
        stack = self._state.stack()
        depth = len(stack)
        stack.append(self._state.contexts[device])
        try:
            yield
        finally:
            del stack[depth:]

    def new_stream(self, device: int = 0) -> int:
        """Return the handle of a new stream.

        Raises
        ------
        ArgumentValueError
            If there is no such device.
        """
        return self._state.new_stream(self._state.contexts[self.device(device).ordinal]).handle

    def replace_stream(self, stream: int, device: int = 0) -> None:
        """Destroy a stream, and create another one that gets its handle, as a driver may give it again.

        Parameters
        ----------
        stream
            The handle.
        device
            The ordinal of the device of the new one.

        Raises
        ------
        ArgumentTypeError
            If the handle or the device is no integer.
        ArgumentValueError
            If there is no such device, or no such stream; nobody destroys a default stream (0, 1, 2).
        """
        handle, place = check_integer("stream", stream, 0), self.device(device)
        try:
            self._state.replace_stream(handle, place)
        except Refusal as refusal:
            expected = "the handle of a stream that was made and not destroyed: new_stream() returns one"
            raise ArgumentValueError("stream", shorten(hex(handle)), expected) from refusal

    @contextmanager
    def stream(self, handle: int, device: int = 0) -> Iterator[None]:
        """Make a stream the current one of a device, in this thread, until the block ends.

        Parameters
        ----------
        handle
            The stream; 0, 1 and 2 are the driver's default streams.
        device
            The ordinal of its device.

        Raises
        ------
        ArgumentTypeError
            If the handle or the device is no integer.
        ArgumentValueError
            If there is no such device, or the handle is negative.
        """
        self.device(device)
        before = self._state.set_current_stream(device, check_integer("handle", handle, 0))
        try:
            yield
        finally:
            self._state.set_current_stream(device, before)

    @contextmanager
    def capture(
        self, stream: int | None = None, device: int = 0, mode: str = "thread_local"
    ) -> Iterator[RecordedGraph]:
        """Capture a stream until the block ends: what it is given becomes nodes of a graph, and does not run.

        Parameters
        ----------
        stream
            The handle of the stream; None: a new one, which ends with the graph. It is the current stream of its
            device meanwhile.
        device
            The ordinal of the stream's device; for a default stream (0, 1, 2), its context is current meanwhile.
        mode
            What the capture forbids meanwhile: ``"global"``, ``"thread_local"`` or ``"relaxed"``, as
            ``cuStreamBeginCapture`` says.

        Returns
        -------
        context manager of RecordedGraph
            It has its nodes once the block has ended, and `RecordedGraph.launch` runs them. Once it is closed or
            collected, the memory that was allocated for its nodes is free.

        Raises
        ------
        ArgumentTypeError
            If the stream or the device is no integer, or the mode no text.
        ArgumentValueError
            If there is no such device or mode, or the stream's handle is negative.
        DriverError
            If the driver refuses to begin the capture, or something in the block invalidated it.
        """
        from trunnion.sim.recording import record  # noqa: PLC0415 - only who captures pays

        handle = self.new_stream(device) if stream is None else check_integer("stream", stream, 0)
        recording = record(self._state, handle, mode, owned=stream is None)
        default = handle in (0, LEGACY_STREAM, PER_THREAD_STREAM)
        # A default stream is one of the current context's.
        place = self.current(device) if default else nullcontext()
        with place, self.stream(handle, device), recording as graph:
            yield graph


class _Reraise:
    """Raises what is pending where a block ends; it goes before the error that native code made of it.

    Native code that was told of an error in place of a push or a pop leaves the context stack uneven: it becomes
    what it was before.
    """

    def __init__(self, simulator: SimulatedDriver) -> None:
        self._simulator = simulator
        self._contexts: tuple[Context, ...] = ()

    def __enter__(self) -> None:
        self._contexts = tuple(self._simulator.state.stack())
        self._simulator.forget_pending()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._simulator.has_pending():
            self._simulator.state.stack()[:] = self._contexts
        self._simulator.raise_pending()  # Python makes the launcher's own error its context
