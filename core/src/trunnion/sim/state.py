"""All that the simulated driver remembers: contexts, streams, libraries, kernels and their handles."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from trunnion.sim.abi import DeviceAttribute, FunctionAttribute
from trunnion.sim.devices import Device
from trunnion.sim.memory import DeviceMemory
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.image import CubinInfo, KernelInfo
    from trunnion.sim.bodies import KernelBody
    from trunnion.sim.devices import Architecture

__all__ = [
    "LEGACY_STREAM",
    "PER_THREAD_STREAM",
    "Context",
    "DriverState",
    "Function",
    "Kernel",
    "Library",
    "Stream",
]

LEGACY_STREAM: Final = 1
"""``CU_STREAM_LEGACY``."""

PER_THREAD_STREAM: Final = 2
"""``CU_STREAM_PER_THREAD``."""

_FIRST_HANDLE: Final = 0x51_0000_0000_0000  # above every user-space address: no handle can pass for memory
_HANDLE_STEP: Final = 0x100


@dataclass(slots=True, eq=False)
class Context:
    """A primary context."""

    handle: int
    """``CUcontext``."""

    device: Device
    """The device that it belongs to."""

    references: int = 0
    """How often it is retained; at 0 it is destroyed."""


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A stream."""

    handle: int
    """``CUstream``."""

    device: Device
    """The device that it belongs to."""


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """A loaded image."""

    handle: int
    """``CUlibrary``."""

    sha256: str
    """Of the image's bytes, hexadecimal."""

    info: CubinInfo
    """What the image says about itself."""

    kernels: dict[str, Kernel] = field(default_factory=dict, repr=False)
    """Its kernels by exact symbol name."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A kernel of a library; it serves every device."""

    handle: int
    """``CUkernel``."""

    library: Library
    """The library that it belongs to."""

    info: KernelInfo
    """What the image says about it."""

    attributes: dict[tuple[int, int], int] = field(default_factory=dict)
    """What ``cuKernelSetAttribute`` set, by (device, attribute)."""

    functions: dict[int, Function] = field(default_factory=dict, repr=False)
    """The kernel's function in each device's context."""

    def attribute(self, device: Device, attribute: FunctionAttribute) -> int:
        """Return what was set, or what holds from the start."""
        value = self.attributes.get((device.ordinal, attribute))
        if value is not None:
            return value
        if attribute is FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES:
            return device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK)
        return -1 if attribute is FunctionAttribute.PREFERRED_SHARED_MEMORY_CARVEOUT else 0


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A kernel in one device's context."""

    handle: int
    """``CUfunction``."""

    kernel: Kernel
    """The kernel."""

    device: Device
    """The device whose context it belongs to."""


_Handled = TypeVar("_Handled", Context, Stream, Library, Kernel, Function)


class DriverState:
    """What the simulated driver remembers.

    Parameters
    ----------
    arch
        The architecture of every device.
    devices
        How many devices there are.
    driver_version
        What ``cuDriverGetVersion`` returns: 1000 x major + 10 x minor.
    thread
        Returns a number that names the calling thread, and that no other thread has or had.
    """

    def __init__(
        self, arch: Architecture, devices: int, driver_version: int, thread: Callable[[], int]
    ) -> None:
        self._handles = itertools.count(_FIRST_HANDLE, _HANDLE_STEP)
        self.devices = tuple(Device(ordinal, arch) for ordinal in range(devices))
        self.driver_version = driver_version
        self.initialized = False
        self.thread = thread
        self.trace = Trace()
        self.memory = DeviceMemory()
        self.bodies: dict[str, KernelBody] = {}
        self.lock = threading.RLock()
        self.contexts = tuple(Context(self.new_handle(), device) for device in self.devices)
        self._stacks: dict[int, list[Context]] = {}
        self._streams: dict[tuple[int, int], int] = {}
        self._activated: set[int] = set()
        self.handled: dict[int, Context | Stream | Library | Kernel | Function] = {
            context.handle: context for context in self.contexts
        }

    def new_handle(self) -> int:
        """Return a handle that was never used."""
        return next(self._handles)

    def add(self, thing: Stream | Library | Kernel | Function) -> None:
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
            self.initialized = True
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

    def stack(self) -> list[Context]:
        """Return the calling thread's context stack, the current one last."""
        return self._stacks.setdefault(self.thread(), [])

    def current(self) -> Context:
        """Return the calling thread's current context.

        Raises
        ------
        Refusal
            ``CUDA_ERROR_INVALID_CONTEXT`` if the thread has none (a new thread has none),
            ``CUDA_ERROR_CONTEXT_IS_DESTROYED`` if its primary context was released.
        """
        stack = self.stack()
        if not stack:
            raise Refusal(Status.INVALID_CONTEXT, "the calling thread has no current context")
        if stack[-1].references == 0:
            raise Refusal(Status.CONTEXT_IS_DESTROYED, "the current primary context was released")
        return stack[-1]

    def stream_device(self, stream: int) -> Device:
        """Return the device on which work on a stream runs.

        Parameters
        ----------
        stream
            The handle; 0, 1 and 2 are default streams, whose device is the current context's.

        Raises
        ------
        Refusal
            If the handle is not live, or a default stream is meant and no context is current.
        """
        if stream in (0, LEGACY_STREAM, PER_THREAD_STREAM):
            return self.current().device
        found = self.get(Stream, stream)
        if self.contexts[found.device.ordinal].references == 0:
            raise Refusal(Status.CONTEXT_IS_DESTROYED, "the stream's primary context was released")
        return found.device
