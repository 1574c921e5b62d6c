"""`AcmeDriver`: the CUDA driver through ctypes, as core's Python launchers want it.

Every structure and number here is from ``cuda.h``; every function is described in the CUDA Driver API manual.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import TYPE_CHECKING, Any

from trunnion.errors import BackendUnavailableError, CaptureError, TrunnionError
from trunnion.launcher.driver_status import status_error
from trunnion.launcher.entered import EnteredContexts
from trunnion.launcher.facade import EncodedMap, StreamState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from trunnion.launcher.facade import FillStep, LaunchSpec
    from trunnion.model.tensormap.fields import MapFields

__all__ = ["AcmeDriver", "LaunchConfig", "acme_driver"]

_PER_THREAD_STREAM = 2
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_CAPTURE_IMPLICIT = 906
_TENSOR_MAP_BYTES = 128
_TENSOR_MAP_ALIGNMENT = 64

_INT, _UINT, _POINTER = ctypes.c_int, ctypes.c_uint, ctypes.c_void_p
# The types of what each function takes: without them ctypes would pass every integer as 32 bits.
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (_UINT,),
    "cuGetErrorName": (_INT, _POINTER),
    "cuGetErrorString": (_INT, _POINTER),
    "cuDeviceGetCount": (_POINTER,),
    "cuDriverGetVersion": (_POINTER,),
    "cuDeviceGet": (_POINTER, _INT),
    "cuDeviceGetAttribute": (_POINTER, _INT, _INT),
    "cuDevicePrimaryCtxRetain": (_POINTER, _INT),
    "cuCtxGetCurrent": (_POINTER,),
    "cuCtxGetDevice": (_POINTER,),
    "cuCtxPushCurrent_v2": (_POINTER,),
    "cuCtxPopCurrent_v2": (_POINTER,),
    "cuCtxSynchronize": (),
    "cuCtxGetStreamPriorityRange": (_POINTER, _POINTER),
    "cuThreadExchangeStreamCaptureMode": (_POINTER,),
    "cuLibraryLoadData": (_POINTER, _POINTER, _POINTER, _POINTER, _UINT, _POINTER, _POINTER, _UINT),
    "cuLibraryUnload": (_POINTER,),
    "cuLibraryGetKernel": (_POINTER, _POINTER, ctypes.c_char_p),
    "cuLibraryGetGlobal": (_POINTER, _POINTER, _POINTER, ctypes.c_char_p),
    "cuKernelSetAttribute": (_INT, _INT, _POINTER, _INT),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (_POINTER, _POINTER, _INT, ctypes.c_size_t),
    "cuTensorMapEncodeTiled": (_POINTER, _INT, _UINT, *(_POINTER,) * 5, *(_INT,) * 4),
    "cuTensorMapEncodeIm2col": (
        _POINTER,
        _INT,
        _UINT,
        *(_POINTER,) * 5,
        _UINT,
        _UINT,
        _POINTER,
        *(_INT,) * 4,
    ),
    "cuStreamGetCtx": (_POINTER, _POINTER),
    "cuStreamIsCapturing": (_POINTER, _POINTER),
    "cuStreamCreate": (_POINTER, _UINT),
    "cuStreamSynchronize": (_POINTER,),
    "cuStreamDestroy_v2": (_POINTER,),
    "cuMemcpyHtoDAsync_v2": (ctypes.c_uint64, _POINTER, ctypes.c_size_t, _POINTER),
    "cuMemcpyDtoDAsync_v2": (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, _POINTER),
    "cuMemsetD8Async": (ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, _POINTER),
    "cuMemsetD16Async": (ctypes.c_uint64, ctypes.c_ushort, ctypes.c_size_t, _POINTER),
    "cuMemsetD32Async": (ctypes.c_uint64, _UINT, ctypes.c_size_t, _POINTER),
    "cuMemsetD2D32Async": (
        ctypes.c_uint64,
        *(ctypes.c_size_t, _UINT, ctypes.c_size_t, ctypes.c_size_t),
        _POINTER,
    ),
    "cuLaunchKernelEx": (_POINTER, _POINTER, _POINTER, _POINTER),
}


class LaunchAttribute(ctypes.Structure):
    """``CUlaunchAttribute``: its number, and a union of 64 bytes that begins with the value's ints."""

    _fields_ = (("id", _INT), ("padding", ctypes.c_char * 4), ("value", _INT * 16))


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
    """A `trunnion.launcher.facade.DriverFacade`.

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
        self._entered = EnteredContexts(self._current, self._pop)

    def _call(self, name: str, *arguments: Any) -> None:
        """Call the driver; anything but success is a `DriverError`."""
        status = getattr(self._library, name)(*arguments)
        if status:
            raise self._error(name, status)

    def _error(self, name: str, status: int) -> Exception:
        said = self._text("cuGetErrorName", status), self._text("cuGetErrorString", status)
        return status_error(name.removesuffix("_v2"), status, said)

    def _text(self, function: str, status: int) -> str:
        text = ctypes.c_char_p()
        unknown = getattr(self._library, function)(status, ctypes.byref(text))
        return f"status {status}" if unknown or text.value is None else text.value.decode()

    # Devices and contexts --------------------------------------------------------------------------------------

    def device_count(self) -> int:
        """Return the number of devices."""
        return len(self._contexts)

    def driver_version(self) -> int:
        """Return the version of CUDA that the driver supports."""
        version = _INT()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        return version.value

    def device_attribute(self, device: int, attribute: int) -> int:
        """Return an attribute of a device."""
        value = _INT()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), attribute, self._device(device))
        return value.value

    def stream_state(self, stream: int) -> StreamState:
        """Return a stream's device, and whether it is being captured."""
        device, capturing = _INT(), _INT()
        status = self._library.cuStreamIsCapturing(stream, ctypes.byref(capturing))
        if status and status != _CAPTURE_IMPLICIT:  # the legacy stream, while another one is being captured
            raise self._error("cuStreamIsCapturing", status)
        if stream <= _PER_THREAD_STREAM:
            self._call("cuCtxGetDevice", ctypes.byref(device))
            return StreamState(device.value, capturing=capturing.value != 0)
        context = _POINTER()  # cuStreamGetDevice would invalidate a capture
        self._call("cuStreamGetCtx", stream, ctypes.byref(context))
        self._push(context.value, sys._getframe())
        try:
            self._call("cuCtxGetDevice", ctypes.byref(device))
        finally:
            self.leave()
        return StreamState(device.value, capturing=capturing.value != 0)

    def enter(self, device: int) -> bool:
        """Push the device's primary context, unless a context of that device is current already."""
        current = _INT(-1)
        if not self._library.cuCtxGetDevice(ctypes.byref(current)) and current.value == self._device(device):
            return False
        self._push(self._contexts[device] or self._retain(device), sys._getframe(1))
        return True

    def enter_primary(self, device: int) -> bool:
        """Push the device's primary context, unless that very one is current."""
        primary = self._contexts[device] or self._retain(device)
        if self._current() == primary:
            return False
        self._push(primary, sys._getframe(1))
        return True

    def _push(self, context: int | None, owner: FrameType) -> None:
        self._entered.note(owner)
        self._call("cuCtxPushCurrent_v2", context)

    def _current(self) -> int | None:
        context = _POINTER()
        self._call("cuCtxGetCurrent", ctypes.byref(context))
        return context.value

    def leave(self) -> None:
        """Pop what `enter` pushed."""
        status = self._library.cuCtxPopCurrent_v2(ctypes.byref(_POINTER()))
        self._entered.left()
        if status:
            raise self._error("cuCtxPopCurrent_v2", status)

    def _pop(self) -> None:
        self._call("cuCtxPopCurrent_v2", ctypes.byref(_POINTER()))

    def recover(self) -> None:
        """Pop what a call that was interrupted pushed."""
        self._entered.recover()

    def synchronize(self, device: int) -> None:
        """Wait for all work on a device: in its primary context, and in the current one if it is of the device."""
        failures: list[TrunnionError] = []
        for enter in (self.enter_primary, self.enter):
            try:
                self._wait(enter, device)
            except TrunnionError as error:  # both are done, whatever the first raises
                failures.append(error)
        if failures:  # a capture's first: then nothing is unloaded
            raise next((one for one in failures if isinstance(one, CaptureError)), failures[0])

    def _wait(self, enter: Callable[[int], bool], device: int) -> None:
        entered = enter(device)
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
        library, mode = _POINTER(), _INT(_RELAXED)
        try:
            self._call(
                "cuThreadExchangeStreamCaptureMode", ctypes.byref(mode)
            )  # a stream may be being captured
            self._call("cuLibraryLoadData", ctypes.byref(library), image, None, None, 0, None, None, 0)
        finally:
            if mode.value != _RELAXED:
                self._library.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        return library.value

    def unload(self, library: int) -> None:
        """Unload an image."""
        self._call("cuLibraryUnload", library)

    def kernel(self, library: int, symbol: str) -> int | None:
        """Return the handle of the kernel of that exact name."""
        kernel = _POINTER()
        self._call("cuLibraryGetKernel", ctypes.byref(kernel), library, symbol.encode())
        return kernel.value

    def set_kernel_attribute(self, kernel: int, device: int, attribute: int, value: int) -> None:
        """Set an attribute of a kernel on a device."""
        self._call("cuKernelSetAttribute", attribute, value, kernel, self._device(device))

    def occupancy(self, kernel: int, threads: int, dynamic_smem_bytes: int) -> int:
        """Return how many blocks of a kernel one multiprocessor of the current device holds at once."""
        blocks = _INT()
        name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        self._call(name, ctypes.byref(blocks), kernel, threads, dynamic_smem_bytes)
        return blocks.value

    # Module variables ------------------------------------------------------------------------------------------

    def variable(self, library: int, symbol: str) -> tuple[int, int]:
        """Return the address and the bytes of a variable on the current device."""
        address, nbytes = ctypes.c_uint64(), ctypes.c_size_t()
        where = ctypes.byref(address), ctypes.byref(nbytes)
        self._call("cuLibraryGetGlobal", *where, library, symbol.encode())
        return address.value, nbytes.value

    def address_in(self, stream: int, device: int, variable: tuple[int, str]) -> int | None:
        """Return where a variable is in a stream's context; None in the device's primary one, or if there is none."""
        context = _POINTER(self._current())
        if stream > _PER_THREAD_STREAM:
            self._call("cuStreamGetCtx", stream, ctypes.byref(context))
        if context.value in (None, self._contexts[device] or self._retain(device)):
            return None
        self._push(context.value, sys._getframe())
        try:
            return self.variable(*variable)[0]
        finally:
            self.leave()

    def write(self, writes: Sequence[tuple[int, bytes]]) -> None:
        """Write bytes through a stream of its own, which disturbs no capture, and wait for it."""
        stream, mode = _POINTER(), _INT(_RELAXED)
        try:
            self._call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
            self._call("cuStreamCreate", ctypes.byref(stream), _NON_BLOCKING)
            try:
                for address, data in writes:
                    self._call("cuMemcpyHtoDAsync_v2", address, data, len(data), stream)
                self._call("cuStreamSynchronize", stream)
            finally:
                status = self._library.cuStreamDestroy_v2(stream)
            if status:
                raise self._error("cuStreamDestroy_v2", status)
        finally:
            if mode.value != _RELAXED:
                self._library.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within a device, in a stream's order."""
        self._call("cuMemcpyDtoDAsync_v2", target, source, nbytes, stream)

    # Launches --------------------------------------------------------------------------------------------------

    def encode(self, fields: MapFields) -> EncodedMap:
        """Encode a tensor map; its arguments have the driver's order and units."""
        storage = ctypes.create_string_buffer(_TENSOR_MAP_BYTES + _TENSOR_MAP_ALIGNMENT)
        address = ctypes.addressof(storage)
        address += -address % _TENSOR_MAP_ALIGNMENT
        arguments = (
            _array(kind, value) if (kind := _NUMBERS.get(of)) else value for of, value in fields.arguments()
        )
        self._call(fields.call, address, *arguments)
        return EncodedMap(address, storage)

    def fill(self, step: FillStep, address: int, count: int, stream: int) -> None:
        """Write a repeated number."""
        at = address + step.offset
        if step.pitch == step.width:
            self._call(f"cuMemsetD{8 * step.width}Async", at, step.value, count, stream)
        else:
            self._call("cuMemsetD2D32Async", at, step.pitch, step.value, 1, count, stream)

    def new_config(self, spec: LaunchSpec) -> LaunchConfig:
        """Return a configuration with the launch's attributes; `launch` fills in the rest."""
        config = LaunchConfig()
        attributes = (LaunchAttribute * max(len(spec.attributes), 1))()
        for attribute, (number, values) in zip(attributes, spec.attributes, strict=False):
            attribute.id = number
            attribute.value[: len(values)] = values
        config.attributes = ctypes.addressof(attributes)
        config.attribute_count = len(spec.attributes)
        config.keep = attributes  # they live as long as the configuration that points to them
        return config

    def launch(
        self,
        config: LaunchConfig,
        kernel: int,
        shape: tuple[int, ...],
        stream: int,
        parameters: int,
        window: tuple[int, int] | None,
    ) -> None:
        """Launch; one thread at a time uses a configuration."""
        del window  # this backend does not declare access-policy windows
        config.grid[:], config.block[:] = shape[0:3], shape[3:6]
        config.dynamic_smem_bytes = shape[6]
        config.stream = stream
        self._call("cuLaunchKernelEx", ctypes.byref(config), kernel, parameters, None)

    def priorities(self) -> tuple[int, int]:
        """Return the least and the greatest number that the current device takes as a priority."""
        least_urgent, most_urgent = _INT(), _INT()
        self._call("cuCtxGetStreamPriorityRange", ctypes.byref(least_urgent), ctypes.byref(most_urgent))
        return most_urgent.value, least_urgent.value


_NUMBERS = {"cuuint32_t[]": ctypes.c_uint32, "cuuint64_t[]": ctypes.c_uint64, "int[]": _INT}


def _array(kind: Any, values: Sequence[int]) -> Any:
    return (kind * len(values))(*values)


@functools.cache
def acme_driver() -> AcmeDriver:
    """Return the driver of this process; made once, so that all programs share its contexts."""
    return AcmeDriver()
