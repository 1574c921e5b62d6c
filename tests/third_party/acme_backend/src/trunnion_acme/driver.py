"""`AcmeDriver`: the CUDA driver through ctypes, as core's Python launchers want it.

Every structure and number here is from ``cuda.h``; every function is described in the CUDA Driver API manual.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

from trunnion.codegen.python.facade import EncodedMap
from trunnion.errors import BackendUnavailableError, DriverError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.codegen.python.facade import LaunchSpec
    from trunnion.model.tensormap_rules import TiledFields

__all__ = ["AcmeDriver", "LaunchConfig", "acme_driver"]

_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8  # CUfunction_attribute
_TENSOR_MAP_BYTES = 128
_TENSOR_MAP_ALIGNMENT = 64

_INT, _UINT, _POINTER = ctypes.c_int, ctypes.c_uint, ctypes.c_void_p
# The types of what each function takes: without them ctypes would pass every integer as 32 bits.
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (_UINT,),
    "cuGetErrorName": (_INT, _POINTER),
    "cuGetErrorString": (_INT, _POINTER),
    "cuDeviceGetCount": (_POINTER,),
    "cuDeviceGet": (_POINTER, _INT),
    "cuDevicePrimaryCtxRetain": (_POINTER, _INT),
    "cuCtxGetDevice": (_POINTER,),
    "cuCtxPushCurrent_v2": (_POINTER,),
    "cuCtxPopCurrent_v2": (_POINTER,),
    "cuCtxSynchronize": (),
    "cuLibraryLoadData": (_POINTER, _POINTER, _POINTER, _POINTER, _UINT, _POINTER, _POINTER, _UINT),
    "cuLibraryUnload": (_POINTER,),
    "cuLibraryGetKernel": (_POINTER, _POINTER, ctypes.c_char_p),
    "cuKernelSetAttribute": (_INT, _INT, _POINTER, _INT),
    "cuTensorMapEncodeTiled": (_POINTER, _INT, _UINT, *(_POINTER,) * 5, *(_INT,) * 4),
    "cuLaunchKernelEx": (_POINTER, _POINTER, _POINTER, _POINTER),
}


class LaunchConfig(ctypes.Structure):
    """``CUlaunchConfig``."""

    _fields_ = (
        ("grid", _UINT * 3),
        ("block", _UINT * 3),
        ("dynamic_smem_bytes", _UINT),
        ("stream", _POINTER),
        ("attributes", _POINTER),
        ("attribute_count", _UINT),
    )


class AcmeDriver:
    """A `trunnion.codegen.python.facade.DriverFacade`.

    Raises
    ------
    BackendUnavailableError
        If there is no driver, or it is too old.
    DriverError
        If it cannot be initialised.
    """

    def __init__(self) -> None:
        try:
            # By its soname: where the simulated driver is loaded, this is the simulated one.
            self._library = ctypes.CDLL("libcuda.so.1")
            for name, types in _SIGNATURES.items():
                getattr(self._library, name).argtypes = types
        except (OSError, AttributeError) as error:
            advice = "install the NVIDIA driver, or simulate: trunnion.sim.start()"
            raise BackendUnavailableError("acme", "trunnion-acme", advice, str(error)) from error
        self._call("cuInit", 0)
        count = _INT()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        self._contexts: list[int | None] = [None] * count.value

    def _call(self, name: str, *arguments: Any) -> None:
        """Call the driver; anything but success is a `DriverError`."""
        status = getattr(self._library, name)(*arguments)
        if status:
            raise DriverError(
                name, status, self._text("cuGetErrorName", status), self._text("cuGetErrorString", status)
            )

    def _text(self, function: str, status: int) -> str:
        text = ctypes.c_char_p()
        unknown = getattr(self._library, function)(status, ctypes.byref(text))
        return f"status {status}" if unknown or text.value is None else text.value.decode()

    # Devices and contexts --------------------------------------------------------------------------------------

    def device_count(self) -> int:
        """Return the number of devices."""
        return len(self._contexts)

    def enter(self, device: int) -> bool:
        """Push the device's primary context, unless a context of that device is current already."""
        current = _INT(-1)
        if not self._library.cuCtxGetDevice(ctypes.byref(current)) and current.value == self._device(device):
            return False
        self._call("cuCtxPushCurrent_v2", self._contexts[device] or self._retain(device))
        return True

    def leave(self) -> None:
        """Pop what `enter` pushed."""
        self._call("cuCtxPopCurrent_v2", ctypes.byref(_POINTER()))

    def synchronize(self, device: int) -> None:
        """Wait for all work on a device."""
        entered = self.enter(device)
        try:
            self._call("cuCtxSynchronize")
        finally:
            if entered:
                self.leave()

    def _device(self, ordinal: int) -> int:
        device = _INT()
        self._call("cuDeviceGet", ctypes.byref(device), ordinal)
        return device.value

    def _retain(self, device: int) -> int | None:
        """Retain the primary context, once; it stays for the life of the process."""
        context = _POINTER()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device(device))
        self._contexts[device] = context.value
        return context.value

    # Images and kernels ----------------------------------------------------------------------------------------

    def load(self, image: bytes) -> int | None:
        """Load an image for all devices; the driver copies it."""
        library = _POINTER()
        self._call("cuLibraryLoadData", ctypes.byref(library), image, None, None, 0, None, None, 0)
        return library.value

    def unload(self, library: int) -> None:
        """Unload an image."""
        self._call("cuLibraryUnload", library)

    def kernel(self, library: int, symbol: str) -> int | None:
        """Return the handle of the kernel of that exact name."""
        kernel = _POINTER()
        self._call("cuLibraryGetKernel", ctypes.byref(kernel), library, symbol.encode())
        return kernel.value

    def set_dynamic_smem(self, kernel: int, device: int, nbytes: int) -> None:
        """Allow a kernel that much dynamic shared memory on a device."""
        attribute = _MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._call("cuKernelSetAttribute", attribute, nbytes, kernel, self._device(device))

    # Launches --------------------------------------------------------------------------------------------------

    def encode_tiled(self, fields: TiledFields, l2_promotion: int) -> EncodedMap:
        """Encode a tensor map; `fields` has the driver's order and units."""
        storage = ctypes.create_string_buffer(_TENSOR_MAP_BYTES + _TENSOR_MAP_ALIGNMENT)
        address = ctypes.addressof(storage)
        address += -address % _TENSOR_MAP_ALIGNMENT
        self._call(
            "cuTensorMapEncodeTiled",
            address,
            fields.dtype_code,
            len(fields.dims),
            fields.address,
            _array(ctypes.c_uint64, fields.dims),
            _array(ctypes.c_uint64, fields.strides),
            _array(ctypes.c_uint32, fields.box),
            _array(ctypes.c_uint32, fields.element_strides),
            fields.interleave,
            fields.swizzle,
            l2_promotion,
            fields.oob_fill,
        )
        return EncodedMap(address, storage)

    def new_config(self, spec: LaunchSpec) -> LaunchConfig:
        """Return a configuration; `launch` fills it in."""
        del spec  # a dialect of one's own would write what is known into it, once
        return LaunchConfig()

    def launch(
        self, config: LaunchConfig, kernel: int, shape: tuple[int, ...], stream: int, parameters: int
    ) -> None:
        """Launch; one thread at a time uses a configuration."""
        config.grid[:], config.block[:] = shape[0:3], shape[3:6]
        config.dynamic_smem_bytes = shape[6]
        config.stream = stream
        self._call("cuLaunchKernelEx", ctypes.byref(config), kernel, parameters, None)


def _array(kind: Any, values: Sequence[int | None]) -> Any:
    return (kind * len(values))(*values)


@functools.cache
def acme_driver() -> AcmeDriver:
    """Return the driver of this process; made once, so that all programs share its contexts."""
    return AcmeDriver()
