"""`DriverFacade`: all that a Python launcher asks of a driver.

A Python backend of somebody else's is this class and a `BackendSpec`; the emitter, the argument checks and the
lifecycle come from core. `WindowFacade` is what access-policy windows ask beside it, and `VariableFacade` what module
variables do; a backend that does not declare them leaves it out.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from trunnion.launcher.l2_persisting import LimitDriver
from trunnion.model.plan.launch_plan import TENSOR_MAP_BYTES
from trunnion.turns import kept_property

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.errors import LifecycleError
    from trunnion.launcher.l2_persisting import SetAside
    from trunnion.model.plan.refusals import RefusalRow
    from trunnion.model.tensormap.fields import MapFields

__all__ = [
    "FIRST_STREAM",
    "AttributeFacade",
    "ComputedAttributes",
    "ContextFacade",
    "DriverFacade",
    "EncodedMap",
    "FillStep",
    "GoneFacade",
    "LaunchSpec",
    "MakeCaller",
    "OccupancyFacade",
    "PreparingFacade",
    "PriorityFacade",
    "StreamState",
    "VariableFacade",
    "WindowFacade",
    "WindowSpec",
]

FIRST_STREAM = 3
"""The first handle of a stream that knows its device: those below are the driver's own, of the current context."""

ComputedAttributes = tuple[tuple[int, tuple[int, ...]], ...]
"""The launch attributes that a call decides, in order: ``CUlaunchAttributeID``, and all of the driver's numbers."""

Extents = tuple[int | None, int | None, int | None]
"""x, y, z; None: known only at the call."""


@dataclass(frozen=True)
class EncodedMap:
    """An encoded tensor map."""

    address: int
    """The address of its 128 bytes, in host memory."""

    owner: Any
    """What keeps those bytes alive."""

    @kept_property  # calls that are alike compare it with itself
    def data(self) -> bytes:
        """Its bytes, for a struct that it is a part of."""
        return ctypes.string_at(self.address, TENSOR_MAP_BYTES)


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """What is known of an access-policy window before any call (``CUaccessPolicyWindow``)."""

    hit_ratio: float
    """The share of accesses that get `hit_property`."""

    hit_property: int
    """``CUaccessProperty`` of hits."""

    miss_property: int
    """``CUaccessProperty`` of the other accesses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """What is known of a launch before any call."""

    kernel: int
    """The kernel's place in the plan."""

    offsets: tuple[int | None, ...]
    """For each parameter its offset in the launch's buffer, in bytes; None: a tensor map, which lies elsewhere."""

    nbytes: int
    """The buffer's size."""

    grid: Extents
    """Blocks along x, y, z."""

    block: Extents
    """Threads along x, y, z."""

    dynamic_smem_bytes: int | None
    """Dynamic shared memory, in bytes; None: known only at the call."""

    attributes: tuple[tuple[int, tuple[int | None, ...]], ...] = ()
    """The launch attributes: ``CUlaunchAttributeID``, and the driver's numbers (one, or x, y and z); None: known only
    at the call."""

    window: WindowSpec | None = None
    """The window that is an attribute of the launch: the last attribute; its range is known only at the call."""

    window_bytes: tuple[int, int] = (0, 0)
    """The least and the greatest length that `window` can have in any call, in bytes, before the device's limits."""

    stream_window: WindowSpec | None = None
    """The window that the stream holds for this launch; no part of the configuration."""

    deferred: bool = False
    """Whether a device is asked for `attributes` and `dynamic_smem_bytes` by the first call in which it happens; False:
    when the device is prepared."""


@dataclass(frozen=True, slots=True)
class StreamState:
    """What the driver says of a stream."""

    device: int
    """The ordinal of the device that it belongs to; of the driver's own streams, that of the current context."""

    capturing: bool
    """Whether it is being captured into a graph."""


@dataclass(frozen=True, slots=True)
class FillStep:
    """One write of a repeated number to device memory."""

    value: int
    """The number's bits."""

    width: int
    """Its bytes: 1, 2 or 4."""

    offset: int
    """Bytes between the memory's first element and the first number."""

    pitch: int
    """Bytes from one number to the next; `width`: they are dense."""


class DriverFacade(Protocol):
    """A driver, as a Python launcher sees it. Every method raises `DriverError` if the driver refuses.

    It raises `CaptureError` where a stream capture forbids the call, and `DeviceRequirementError` where the device is
    too small for the launch.
    """

    def device_count(self) -> int:
        """Return the number of devices."""

    def driver_version(self) -> int:
        """Return the version of CUDA that the driver supports: 13000 is 13.0 (``cuDriverGetVersion``)."""

    def device_attribute(self, device: int, attribute: int) -> int:
        """Return a ``CUdevice_attribute`` of a device, both by number (``cuDeviceGetAttribute``)."""

    def load(self, image: bytes) -> Any:
        """Load an image for all devices, and return its handle (``cuLibraryLoadData``).

        A first call loads, perhaps while a stream is being captured, which this must not break: the mode of the thread
        is relaxed meanwhile (``cuThreadExchangeStreamCaptureMode``).
        """

    def unload(self, library: Any) -> None:
        """Unload an image (``cuLibraryUnload``)."""

    def kernel(self, library: Any, symbol: str) -> Any:
        """Return the handle of the kernel of that exact name (``cuLibraryGetKernel``)."""

    def set_kernel_attribute(self, kernel: Any, device: int, attribute: int, value: int) -> None:
        """Set a ``CUfunction_attribute`` of a kernel on a device (``cuKernelSetAttribute``)."""

    def enter(self, device: int) -> bool:
        """Make sure that a context of the device is current; return whether `leave` must undo it."""

    def leave(self) -> None:
        """Undo what `enter` did."""

    def recover(self) -> None:
        """Make current what was current before all that this thread entered and did not leave.

        A call that ended in an exception asks for it: what a signal's handler raises may come between any two steps,
        between a push and the note of it too, and in `leave`.
        """

    def stream_state(self, stream: int) -> StreamState:
        """Return what a stream's handle stands for (``cuStreamGetCtx``, ``cuStreamIsCapturing``).

        For the driver's own streams 0, 1 and 2 a context must be current.
        """

    def encode(self, fields: MapFields) -> EncodedMap:
        """Encode a tensor map: call ``fields.call`` with `MapFields.arguments`, in a context of its device."""

    def fill(self, step: FillStep, address: int, count: int, stream: int) -> None:
        """Write ``count`` numbers from ``address + step.offset`` on (``cuMemsetD8Async`` and its like)."""

    def new_config(self, spec: LaunchSpec) -> Any:
        """Return a launch configuration with everything filled in that is known before a call."""

    def launch(
        self,
        config: Any,
        kernel: Any,
        shape: tuple[int, ...],
        stream: int,
        parameters: int,
        window: tuple[int, int] | None,
    ) -> None:
        """Launch (``cuLaunchKernelEx``).

        Parameters
        ----------
        config
            What `new_config` returned; used by one thread at a time.
        kernel
            What `kernel` returned.
        shape
            Grid x, y, z, block x, y, z, and dynamic shared memory in bytes.
        stream
            The stream's handle.
        parameters
            The address of an array with the address of each parameter.
        window
            The address and the bytes of the window of `LaunchSpec.window`; None if there is none.
        """

    def synchronize(self, device: int) -> None:
        """Wait for all work on a device (``cuCtxSynchronize``).

        That is the work in its primary context and in green ones of it, and in the current one if that is another of
        the device.
        """


class ContextFacade(Protocol):
    """What a driver may be asked that tells a device's contexts apart.

    Others, which have neither module variables nor access-policy windows, leave it out: then a program belongs to the
    context that is current when a device is prepared.
    """

    def enter_primary(self, device: int) -> bool:
        """Make the device's primary context current, whichever other one is; return whether `leave` must undo it."""

    def address_in(self, stream: int, device: int, variable: tuple[Any, str]) -> int | None:
        """Return where a variable is in a stream's context; None: as in the primary one, or there is no context yet.

        Parameters
        ----------
        stream
            The stream's handle; for the driver's own streams 0, 1 and 2 the current context is asked.
        device
            The device's ordinal.
        variable
            The image's handle, and the exact name.
        """


class OccupancyFacade(Protocol):
    """What facts of the device ask of a driver, beside its attributes.

    A backend that does not declare them leaves it out.
    """

    def occupancy(self, kernel: Any, threads: int, dynamic_smem_bytes: int) -> int:
        """Return the most blocks of a kernel that one multiprocessor of the current device holds at once.

        ``cuOccupancyMaxActiveBlocksPerMultiprocessor``, which takes a ``CUkernel`` in the place of a ``CUfunction``.

        Parameters
        ----------
        kernel
            What `DriverFacade.kernel` returned.
        threads
            Threads of a block.
        dynamic_smem_bytes
            Dynamic shared memory of a block, in bytes.
        """


class AttributeFacade(Protocol):
    """What launches of which a call decides an attribute ask of a driver; others leave it out."""

    def set_attributes(self, config: Any, attributes: ComputedAttributes) -> None:
        """Write the attributes that a call decides into a configuration, before it is launched.

        Parameters
        ----------
        config
            What `DriverFacade.new_config` returned; used by one thread at a time.
        attributes
            The attributes.
        """


class PriorityFacade(Protocol):
    """What a driver may be asked of a launch that it refused; others leave it out, and the error says less."""

    def priorities(self) -> tuple[int, int]:
        """Return the least and the greatest number that the current device takes as a priority."""


class MakeCaller(Protocol):
    """`Runtime.caller`."""

    def __call__(
        self, function: int, addresses: tuple[int, int, int, int], kept: object, /
    ) -> Callable[[], int] | None:
        """Return what calls a C function faster than Python can; None: nothing does."""


class PreparingFacade(Protocol):
    """What a dialect asks of a driver whose launches are prepared once for each frame; others leave it out."""

    def prepared(
        self, config: Any, kernel: Any, parameters: Any, make_caller: MakeCaller
    ) -> tuple[Callable[..., int], tuple[Any, ...]]:
        """Return what launches, and what it is called with: the same in every call, and it returns a status.

        Parameters
        ----------
        config
            What `DriverFacade.new_config` returned.
        kernel
            What `DriverFacade.kernel` returned.
        parameters
            The ctypes array with the address of each parameter.
        make_caller
            `Runtime.caller`.
        """


class VariableFacade(Protocol):
    """What module variables ask of a driver; a context of the device is current at every call."""

    def variable(self, library: Any, symbol: str) -> tuple[int, int]:
        """Return the address and the bytes of the variable of that exact name (``cuLibraryGetGlobal``)."""

    def write(self, writes: Sequence[tuple[int, bytes]]) -> None:
        """Write bytes, each behind an address, and wait until they are there, whatever is launched next on any stream.

        Some other stream may be being captured, which this must not break: the mode of the thread is relaxed meanwhile
        (``cuThreadExchangeStreamCaptureMode``), and what is written goes through a stream of its own that waits for no
        other (``cuStreamCreate`` with ``CU_STREAM_NON_BLOCKING``, ``cuMemcpyHtoDAsync``, ``cuStreamSynchronize``).
        """

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within a device, in the order of a stream, which may be being captured (``cuMemcpyDtoDAsync``)."""


class GoneFacade:
    """Stands for a driver that must not be asked any more: its contexts did not survive a fork.

    Parameters
    ----------
    reason
        What to say.
    """

    def __init__(self, reason: RefusalRow[LifecycleError]) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse every method.

        Raises
        ------
        LifecycleError
            Always.
        """
        raise self._reason()


class WindowFacade(LimitDriver, Protocol):
    """What access-policy windows ask of a driver; a context of the device is current at every call.

    Attributes
    ----------
    set_aside
        The one owner of the set-aside in this process, `trunnion.launcher.l2_persisting.process_set_aside`.
    """

    set_aside: SetAside

    def set_stream_window(self, stream: int, spec: WindowSpec, address: int, nbytes: int) -> None:
        """Set a stream's window (``cuStreamSetAttribute``); 0 bytes: take it away."""

    def reset_persisting(self, stream: int) -> None:
        """Wait for a stream and make all persisting lines normal (``cuCtxResetPersistingL2Cache``).

        Some other stream may be being captured, which waiting would break: the mode of the thread is relaxed meanwhile,
        as in `DriverFacade.load` (``cuStreamSynchronize``; measured on an H100, driver 580).
        """
