"""`PythonProgram`: run a generated Python launcher over a driver facade, from load to close."""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.codegen.python.maps import TiledEncoder
from trunnion.codegen.python.tensors import TensorChecks
from trunnion.contract.adapter import LoadedProgram
from trunnion.errors import CorruptArtifactError, LifecycleError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.codegen.python.facade import DriverFacade, LaunchSpec
    from trunnion.contract.runtime import Runtime

__all__ = ["LaunchFrame", "PythonProgram"]


_BROKEN = (SyntaxError, ValueError, KeyError, ImportError, NameError, TypeError, AttributeError)
"""What executing a text can raise that is no launcher, or one for another version of this module."""


class LaunchFrame:
    """What one launch writes into: its parameters, their addresses, its configuration."""

    __slots__ = ("address", "buffer", "config", "pointers", "stream")

    def __init__(self, spec: LaunchSpec, facade: DriverFacade) -> None:
        self.buffer = ctypes.create_string_buffer(max(spec.nbytes, 1))
        """The parameters' bytes, but for tensor maps."""
        base = ctypes.addressof(self.buffer)
        self.pointers = (ctypes.c_void_p * max(len(spec.offsets), 1))(
            *(None if offset is None else base + offset for offset in spec.offsets)
        )
        """The address of each parameter."""
        self.address = ctypes.addressof(self.pointers)
        """The address of `pointers`, which the driver is given."""
        self.config = facade.new_config(spec)
        """The driver's configuration, filled as far as it is known."""
        self.stream: int | None = None
        """The stream that stands in `config`."""


class _Frame:
    """Everything that one call writes into. A call takes one for itself, so calls may nest and run at once."""

    __slots__ = ("__weakref__", "busy", "launches", "thread")

    def __init__(self, specs: Sequence[LaunchSpec], facade: DriverFacade) -> None:
        self.thread = threading.get_ident()
        self.launches = tuple(LaunchFrame(spec, facade) for spec in specs)
        self.busy = False


class _Pool(threading.local):
    """The frames of one thread that no call is using."""

    def __init__(self) -> None:
        self.free: list[_Frame] = []


@dataclass(frozen=True, slots=True)
class LauncherModule:
    """A generated module, executed."""

    make: Callable[[Any], Callable[..., Any]]
    """Returns the launcher for a context."""

    launches: tuple[LaunchSpec, ...]
    """``LAUNCHES``."""

    encodes: tuple[Any, ...]
    """``ENCODES``."""

    @classmethod
    def execute(cls, text: str, filename: str) -> LauncherModule:
        """Run the text of a module. It is code: the caller has decided to trust it.

        Raises
        ------
        CorruptArtifactError
            If the text is not a launcher.
        """
        namespace: dict[str, Any] = {"__name__": filename}
        try:
            exec(compile(text, f"<{filename}>", "exec"), namespace)  # noqa: S102 - a launcher is code; load() says so
            return cls(namespace["make"], namespace["LAUNCHES"], namespace["ENCODES"])
        except _BROKEN as error:
            raise CorruptArtifactError(filename, f"is not a launcher of this version: {error}") from error


class Context(TensorChecks):
    """What a generated launcher finds under ``context``: hoisted once, then variables of its closure."""

    def __init__(self, module: LauncherModule, image: bytes, symbols: Sequence[str], parts: _Parts) -> None:
        facade = parts.facade
        super().__init__(parts.runtime, facade.device_count())
        self.facade = facade
        self.enter, self.leave = facade.enter, facade.leave
        self.pool = _Pool()
        self.frames: weakref.WeakSet[_Frame] = weakref.WeakSet()
        self.lock = threading.RLock()
        self.closing = threading.Lock()
        self.unloaded = False
        self.closed_because = ""
        self.specs = module.launches
        self.symbols = tuple(symbols)
        self.library = facade.load(image)
        with ExitStack() as undo:
            undo.callback(facade.unload, self.library)
            self.kernels = [facade.kernel(self.library, symbol) for symbol in symbols]
            undo.pop_all()
        self.encoders = [TiledEncoder(spec, facade) for spec in module.encodes]
        self.states: list[list[int] | None] = [None] * self.device_count
        """For each device the dynamic shared memory that each kernel is allowed, in bytes; None: not preloaded."""

    def new_frame(self) -> _Frame:
        """Return a frame that is not in use."""
        frame = _Frame(self.specs, self.facade)
        with self.lock:
            self.frames.add(frame)
        return frame

    def preload(self, device: int) -> list[int]:
        """Prepare a device and return its state; called by a launcher that finds none.

        Raises
        ------
        LifecycleError
            If the program was closed, or the process forked.
        """
        with self.lock:
            if self.closed_because:
                raise LifecycleError(self.closed_because)
            state = self.states[device]
            if state is not None:
                return state
            entered = self.facade.enter(device)
            try:
                state = [0] * len(self.kernels)
                for spec in self.specs:
                    self._allow(state, device, spec.kernel, spec.dynamic_smem_bytes or 0)
                self.states[device] = state
            finally:
                if entered:
                    self.facade.leave()
            return state

    def raise_dynamic_smem(self, device: int, kernel: int, nbytes: int) -> None:
        """Allow a kernel more dynamic shared memory than any call before needed.

        Raises
        ------
        LifecycleError
            If the program was closed meanwhile.
        """
        with self.lock:
            self._allow(self.preload(device), device, kernel, nbytes)

    def _allow(self, state: list[int], device: int, kernel: int, nbytes: int) -> None:
        """Raise a kernel's limit, never lower it.

        How much a kernel has without asking depends on its static shared memory (``cuKernelSetAttribute``: the sum of
        both is limited), so it always asks. Two names of a program may be one kernel: they share the limit.
        """
        if nbytes > state[kernel]:
            self.facade.set_dynamic_smem(self.kernels[kernel], device, nbytes)
            for alias, symbol in enumerate(self.symbols):
                if symbol == self.symbols[kernel]:
                    state[alias] = nbytes

    def shut(self, reason: str) -> list[int]:
        """Let no further call launch; return the devices that were in use."""
        with self.lock:  # a preload under way would store its state after these were taken away
            self.closed_because = self.closed_because or reason
            used = [device for device, state in enumerate(self.states) if state is not None]
            # A launcher marks its frame busy before it reads its device's state: after this line it finds None.
            self.states[:] = [None] * len(self.states)
            return used

    def busy(self) -> bool:
        """Whether some call is between its checks and its last launch."""
        with self.lock:  # another thread may be adding a frame
            return any(frame.busy for frame in self.frames)

    def unload(self) -> None:
        """Wait for all launches and unload the image; every step is done once, whatever an earlier one raises.

        Raises
        ------
        LifecycleError
            If the calling thread is inside a launch of this program, which would have to wait for itself.
        """
        here = threading.get_ident()
        with self.lock:
            within = any(frame.busy and frame.thread == here for frame in self.frames)
        if within:
            raise LifecycleError(
                "a program cannot be closed from within its own launch; close it after the call"
            )
        with self.closing:
            if self.unloaded:
                return
            used = self.shut("the program was closed")
            while self.busy():
                time.sleep(0.0005)
            self.unloaded = True
            with ExitStack() as steps:
                steps.callback(self.facade.unload, self.library)
                for device in used:
                    steps.callback(self.facade.synchronize, device)

    def forget(self) -> None:
        """Give everything up in a forked child: a CUDA context does not survive a fork, not even to be unloaded."""
        # The threads that held these locks, or were in the middle of a call, do not exist here.
        self.lock, self.closing = threading.RLock(), threading.Lock()
        self.unloaded = True
        self.shut("the process forked after the program was loaded; load it again in the child")


@dataclass(frozen=True, slots=True)
class _Parts:
    facade: DriverFacade
    runtime: Runtime


class PythonProgram(LoadedProgram):
    """A loaded Python launcher.

    Parameters
    ----------
    text
        The launcher's source.
    image
        The device image.
    symbols
        The exact name of each kernel in the image, in the plan's order.
    facade
        The driver.
    runtime
        The tensor library.

    Raises
    ------
    CorruptArtifactError
        If the text is not a launcher.
    DriverError
        If the driver refuses the image.
    """

    def __init__(
        self, text: str, image: bytes, symbols: Sequence[str], facade: DriverFacade, runtime: Runtime
    ) -> None:
        module = LauncherModule.execute(text, "launcher.py")
        self._context = Context(module, image, symbols, _Parts(facade, runtime))
        self._launch = module.make(self._context)
        _LOADED.add(self._context)

    @property
    def entry(self) -> Callable[..., Any]:
        """The generated function itself."""
        return self._launch

    def call(
        self,
        args: Sequence[Any],
        *,
        out: Sequence[Any] | None = None,
        stream: int | None = None,
        device: int | None = None,
    ) -> Any:
        """Launch; see `LoadedProgram.call`."""
        return self._launch(*args, out=out, stream=stream, device=device)

    def preload(self, device: int) -> None:
        """Prepare a device; see `LoadedProgram.preload`."""
        self._context.preload(self._context.check_ordinal(device))

    def close(self) -> None:
        """Wait for the program's launches on every device that it used, then unload the image."""
        self._context.unload()


_LOADED: weakref.WeakSet[Context] = weakref.WeakSet()
"""Every context of this process: a forked child must forget them, because a CUDA context does not survive a fork."""


def _forget_in_child() -> None:
    for context in list(_LOADED):
        context.forget()


os.register_at_fork(after_in_child=_forget_in_child)
