"""What the CUDA driver of this machine says of a kernel of an image, once it is loaded for a device."""

from __future__ import annotations

import ctypes
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.errors import DeviceRequirementError, DriverError
from trunnion.launcher.driver_status import OF_IMAGE, naming_kernel, of_unlike_device, status_error
from trunnion.model.plan.refusals import INTEGER_RANGE, NO_DRIVER
from trunnion.toolchain.device import Absence, find_device

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["ATTRIBUTES", "kernel_attributes"]

_SONAME: Final = "libcuda.so.1"
_EXCHANGE_MODE: Final = "cuThreadExchangeStreamCaptureMode"
_RELAXED: Final = 2  # CU_STREAM_CAPTURE_MODE_RELAXED

ATTRIBUTES: Final = (
    "MAX_THREADS_PER_BLOCK",
    "SHARED_SIZE_BYTES",
    "CONST_SIZE_BYTES",
    "LOCAL_SIZE_BYTES",
    "NUM_REGS",
    "PTX_VERSION",
    "BINARY_VERSION",
)
"""The attributes that the driver is asked for, by the number of each: ``CU_FUNC_ATTRIBUTE_*`` without that prefix.

https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
"""


def kernel_attributes(image: bytes, symbol: str, device: int) -> Mapping[str, int]:
    """Return what the driver says of a kernel; its image is loaded for that, and unloaded again.

    Parameters
    ----------
    image
        A cubin, or PTX, which the driver assembles.
    symbol
        The kernel's exact name in it.
    device
        The ordinal.

    Raises
    ------
    DeviceRequirementError
        If there is no driver.
    ArgumentValueError
        If there is no such device.
    DriverError
        If the driver refuses, such as an image for another architecture.
    CaptureError
        If a stream's capture is the reason.
    """
    driver = _Driver()
    with ExitStack() as held:
        held.enter_context(naming_kernel(symbol))
        driver("cuInit", 0)
        count = driver.number("cuDeviceGetCount")
        if not 0 <= device < count:
            raise INTEGER_RANGE("device", str(device), 0, count - 1)
        handle = driver.number("cuDeviceGet", device)
        context = driver.handle("cuDevicePrimaryCtxRetain", handle)
        held.callback(driver.undo, "cuDevicePrimaryCtxRelease_v2", handle)
        driver("cuCtxPushCurrent_v2", context)
        held.callback(driver.undo, "cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        mode = ctypes.c_int(_RELAXED)  # else what is loaded would end a capture that the thread is in
        driver(_EXCHANGE_MODE, ctypes.byref(mode))
        held.callback(driver.undo, _EXCHANGE_MODE, ctypes.byref(mode))
        held.enter_context(driver.explaining(image, count))
        text = ctypes.create_string_buffer(image, len(image) + 1)  # PTX ends with a NUL
        library = driver.handle("cuLibraryLoadData", text, None, None, 0, None, None, 0)
        held.callback(driver.undo, "cuLibraryUnload", library)
        kernel = driver.handle("cuLibraryGetKernel", library, symbol.encode())
        found = {
            name: driver.number("cuKernelGetAttribute", number, kernel, handle)
            for number, name in enumerate(ATTRIBUTES)
        }
    return MappingProxyType(found)


class _Driver:
    """The driver's functions; each that fails is a `DriverError`."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(_SONAME)
        except OSError as error:
            raise NO_DRIVER(error) from error

    def __call__(self, name: str, *arguments: Any) -> None:
        try:
            status = self._library[name](*arguments)
        except AttributeError as error:
            raise DeviceRequirementError("a driver of CUDA 12.0 or later", f"one without {name}") from error
        if status:
            raise status_error(name, status, (self._said("Name", status), self._said("String", status)))

    def number(self, name: str, *arguments: Any) -> int:
        """Return the number that a function writes to its first argument."""
        found = ctypes.c_int()
        self(name, ctypes.byref(found), *arguments)
        return found.value

    def handle(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """Return the handle that a function writes to its first argument."""
        found = ctypes.c_void_p()
        self(name, ctypes.byref(found), *arguments)
        return found

    def undo(self, name: str, *arguments: Any) -> None:
        """Call a function that takes something back, which says nothing that anybody could heed."""
        self._library[name](*arguments)

    @contextmanager
    def explaining(self, image: bytes, count: int) -> Iterator[None]:
        """Say of an image that does not fit its architecture, and the devices', until the block ends."""
        try:
            yield
        except DriverError as error:
            if error.code_name not in OF_IMAGE:
                raise
            found = (find_device(device) for device in range(count))
            devices = [one for one in found if not isinstance(one, Absence)]
            raise of_unlike_device(error, image, devices) from error.__cause__

    def _said(self, what: str, status: int) -> str:
        text = ctypes.c_char_p()
        self._library[f"cuGetError{what}"](status, ctypes.byref(text))
        return (text.value or b"unknown").decode("ascii", "replace")
