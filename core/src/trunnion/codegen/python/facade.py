"""`DriverFacade`: all that a Python launcher asks of a driver.

A Python backend of somebody else's is this class and a `BackendSpec`; the emitter, the argument checks and the
lifecycle come from core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from trunnion.model.tensormap_rules import TiledFields

__all__ = ["DriverFacade", "EncodedMap", "LaunchSpec"]

Extents = tuple[int | None, int | None, int | None]
"""x, y, z; None: known only at the call."""


@dataclass(frozen=True, slots=True)
class EncodedMap:
    """An encoded tensor map."""

    address: int
    """The address of its 128 bytes, in host memory."""

    owner: Any
    """What keeps those bytes alive."""


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


class DriverFacade(Protocol):
    """A driver, as a Python launcher sees it. Every method raises `DriverError` if the driver refuses."""

    def device_count(self) -> int:
        """Return the number of devices."""

    def load(self, image: bytes) -> Any:
        """Load an image for all devices, and return its handle (``cuLibraryLoadData``)."""

    def unload(self, library: Any) -> None:
        """Unload an image (``cuLibraryUnload``)."""

    def kernel(self, library: Any, symbol: str) -> Any:
        """Return the handle of the kernel of that exact name (``cuLibraryGetKernel``)."""

    def set_dynamic_smem(self, kernel: Any, device: int, nbytes: int) -> None:
        """Allow a kernel that much dynamic shared memory on a device (``cuKernelSetAttribute``)."""

    def enter(self, device: int) -> bool:
        """Make sure that a context of the device is current; return whether `leave` must undo it."""

    def leave(self) -> None:
        """Undo what `enter` did."""

    def encode_tiled(self, fields: TiledFields, l2_promotion: int) -> EncodedMap:
        """Encode a tensor map (``cuTensorMapEncodeTiled``)."""

    def new_config(self, spec: LaunchSpec) -> Any:
        """Return a launch configuration with everything filled in that is known before a call."""

    def launch(self, config: Any, kernel: Any, shape: tuple[int, ...], stream: int, parameters: int) -> None:
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
        """

    def synchronize(self, device: int) -> None:
        """Wait for all work on a device (``cuCtxSynchronize``)."""
