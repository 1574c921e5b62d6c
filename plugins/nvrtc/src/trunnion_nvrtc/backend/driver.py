"""The CUDA driver, through ``cuda.bindings.driver``: the facade of the Python launcher.

The one place where this plugin launches. Every status ends in `check`.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import TYPE_CHECKING, Any

import cuda.bindings.driver as cu

from trunnion.errors import CaptureError, DeviceRequirementError, TrunnionError
from trunnion.launcher.driver_status import RefusedLaunch
from trunnion.launcher.entered import EnteredContexts, within_primary
from trunnion.launcher.facade import EncodedMap, StreamState
from trunnion.launcher.l2_persisting import process_set_aside
from trunnion.model.plan import refusals
from trunnion_nvrtc.backend.status import LEAST_VERSION, call_driver, calls, check, driver_error
from trunnion_nvrtc.backend.structures import (
    Attempt,
    LaunchConfig,
    by_reference,
    config_of,
    set_attributes,
    set_window,
    window_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from trunnion.launcher.facade import ComputedAttributes, FillStep, LaunchSpec, MakeCaller, WindowSpec
    from trunnion.model.tensormap.fields import DriverArgument, MapFields

__all__ = ["Attempt", "CudaDriver", "check", "cuda_driver", "driver_error", "set_window"]

_PER_THREAD = 2  # CU_STREAM_PER_THREAD
_RELAXED = int(cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
_LAUNCH_EX = 11080  # CUDA 11.8, which brought cuLaunchKernelEx
_EXCHANGE_MODE = 10010  # CUDA 10.1, which brought cuThreadExchangeStreamCaptureMode


class CudaDriver:
    """The driver of this process.

    Raises
    ------
    DeviceRequirementError
        If there is no driver, or it is older than CUDA 12.0.
    DriverError
        If it cannot be initialised.
    """

    def __init__(self) -> None:
        try:
            (status,) = calls.cuInit(0)
        except (
            RuntimeError
        ) as error:  # what cuda.bindings raises if libcuda.so.1, or a symbol of it, is missing
            raise refusals.NO_DRIVER(error) from error
        check("cuInit", status)
        version = self.driver_version()
        if version < LEAST_VERSION:  # cuda.bindings raises a RuntimeError for each function that is not there
            raise refusals.OLD_DRIVER(LEAST_VERSION, "cuLibraryLoadData", version)
        self._contexts: list[Any] = [None] * call_driver("cuDeviceGetCount")
        self._retainers: dict[int, object] = {}
        self._sharing: dict[int, int] = {}  # of contexts that have the primary one's variables: id by handle
        self._entered = EnteredContexts(_current_context, _pop)
        self.set_aside = process_set_aside()
        self._launch_address = _address("cuLaunchKernelEx", _LAUNCH_EX)
        # Given arguments that need no conversion, such a call takes half of the time of the one of ``cuda.bindings``
        # (``benchmarks/launch.py --pieces``). It gives up the interpreter's lock, as that one does: a launch waits
        # where the queue of a stream is full.
        self._launch_ex = ctypes.CFUNCTYPE(ctypes.c_int)(self._launch_address)
        exchange = _address("cuThreadExchangeStreamCaptureMode", _EXCHANGE_MODE)
        self._exchange_mode = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))(exchange)

    def device_count(self) -> int:
        """Return the number of devices."""
        return len(self._contexts)

    def driver_version(self) -> int:
        """Return the version of CUDA that the driver supports (``cuDriverGetVersion``)."""
        return int(call_driver("cuDriverGetVersion"))

    def device_attribute(self, device: int, attribute: int) -> int:
        """Return an attribute of a device (``cuDeviceGetAttribute``)."""
        number = cu.CUdevice_attribute(attribute)
        return int(call_driver("cuDeviceGetAttribute", number, self._device(device)))

    def load(self, image: bytes) -> Any:
        """Load an image for all devices (``cuLibraryLoadData``); no stream that is being captured notices it."""
        return self._relaxed(call_driver, "cuLibraryLoadData", image, [], [], 0, [], [], 0)

    def _relaxed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Make a call that would break the captures of other streams, with the thread's mode relaxed meanwhile."""
        # The driver writes the mode that was: an interrupt between a call and what is done with its result loses that.
        mode = ctypes.c_int(_RELAXED)
        try:
            check("cuThreadExchangeStreamCaptureMode", self._exchange_mode(mode))
            # An interrupt behind the call strikes within the block, as behind a return it does not.
            made = call(*arguments)
        finally:
            if mode.value != _RELAXED:
                self._exchange_mode(mode)
        return made

    def variable(self, library: Any, symbol: str) -> tuple[int, int]:
        """Return the address and the bytes of a variable on the current device (``cuLibraryGetGlobal``)."""
        address, nbytes = call_driver("cuLibraryGetGlobal", library, symbol.encode())
        return int(address), int(nbytes)

    def address_in(self, stream: int, device: int, variable: tuple[Any, str]) -> int | None:
        """Return where a variable is in a stream's context; see `ContextFacade.address_in`."""
        context: Any = None
        if stream <= _PER_THREAD:
            current = _current_context()
        else:
            context = call_driver("cuStreamGetCtx", cu.CUstream(stream))
            current = int(context)
        if current in {0, int(self._primary(device))}:
            return None
        status, number = calls.cuCtxGetId(cu.CUcontext(current))
        if not status and self._sharing.get(current) == number:
            return None
        address = (
            self._address(*variable) if context is None else self._under(context, self._address, *variable)
        )
        # A green context is one for as long as it lives, and no other one of the process gets its id, by whose handle
        # another may be reached later.
        if not status and address == within_primary(self, device, self._address, *variable):
            self._sharing[current] = number
        return address

    def _address(self, library: Any, symbol: str) -> int:
        address, _ = self._relaxed(self.variable, library, symbol)
        return int(address)

    def write(self, writes: Sequence[tuple[int, bytes]]) -> None:
        """Write bytes, and wait until they are there; see `VariableFacade.write`."""
        self._relaxed(_write, writes)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within a device, in a stream's order (``cuMemcpyDtoDAsync``)."""
        places = cu.CUdeviceptr(target), cu.CUdeviceptr(source)
        call_driver("cuMemcpyDtoDAsync", *places, nbytes, cu.CUstream(stream), stream=stream)

    def unload(self, library: Any) -> None:
        """Unload an image (``cuLibraryUnload``)."""
        call_driver("cuLibraryUnload", library)

    def kernel(self, library: Any, symbol: str) -> Any:
        """Return a kernel's handle (``cuLibraryGetKernel``)."""
        return call_driver("cuLibraryGetKernel", library, symbol.encode())

    def set_kernel_attribute(self, kernel: Any, device: int, attribute: int, value: int) -> None:
        """Set an attribute of a kernel on a device (``cuKernelSetAttribute``)."""
        name = cu.CUfunction_attribute(attribute)
        call_driver("cuKernelSetAttribute", name, value, kernel, self._device(device))

    def occupancy(self, kernel: Any, threads: int, dynamic_smem_bytes: int) -> int:
        """Return the blocks that a multiprocessor holds (``cuOccupancyMaxActiveBlocksPerMultiprocessor``)."""
        # The driver takes a kernel's handle in the place of a function's.
        function = cu.CUfunction(int(kernel))
        call = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        return int(call_driver(call, function, threads, dynamic_smem_bytes))

    def _device(self, ordinal: int) -> Any:
        return call_driver("cuDeviceGet", ordinal)

    def enter(self, device: int) -> bool:
        """Push the device's primary context unless a context of that device is current, a green one included."""
        status, current = calls.cuCtxGetDevice()
        if not status and int(current) == device:
            return False
        self._push(self._primary(device), sys._getframe(1))  # noqa: SLF001 - who leaves
        return True

    def enter_primary(self, device: int) -> bool:
        """Push the device's primary context unless that very one is current."""
        context = self._primary(device)
        if _current_context() == int(context):
            return False
        self._push(context, sys._getframe(1))  # noqa: SLF001 - who leaves
        return True

    def _primary(self, device: int) -> Any:
        return self._contexts[device] or self._retain(device)

    def _push(self, context: Any, owner: FrameType) -> None:
        self._entered.note(owner)
        call_driver("cuCtxPushCurrent", context)

    def _under(self, context: Any, work: Callable[..., int], *given: Any) -> int:
        """Return what a function returns under a context, which is pushed meanwhile."""
        self._push(context, sys._getframe())  # noqa: SLF001 - who leaves
        try:
            return work(*given)
        finally:
            self.leave()

    def _retain(self, device: int) -> Any:
        """Retain the primary context once; it stays for the life of the process, as torch's does."""
        self._contexts[device] = context = call_driver("cuDevicePrimaryCtxRetain", self._device(device))
        mine = object()  # whoever is second gives its reference back: another thread's, or a signal's handler
        if self._retainers.setdefault(device, mine) is not mine:
            call_driver("cuDevicePrimaryCtxRelease", self._device(device))
        return context

    def leave(self) -> None:
        """Pop what `enter` pushed."""
        status, _ = calls.cuCtxPopCurrent()
        self._entered.left()
        check("cuCtxPopCurrent", status)

    def recover(self) -> None:
        """Pop what a call that was interrupted pushed: see `DriverFacade.recover`."""
        self._entered.recover()

    def stream_state(self, stream: int) -> StreamState:
        """Return a stream's device and whether it is captured (``cuStreamGetCtx``, ``cuStreamIsCapturing``)."""
        handle = cu.CUstream(stream)
        status, found = calls.cuStreamIsCapturing(handle)
        # The legacy stream, while another one is being captured: it is not.
        implicit = status == cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
        if not implicit:
            check("cuStreamIsCapturing", status)
        none = cu.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
        capturing = not implicit and found != none
        if stream <= _PER_THREAD:
            return StreamState(_current_device(), capturing=capturing)
        # cuStreamGetDevice would invalidate the stream's capture, and drivers before CUDA 12.8 do not have it.
        device = self._under(call_driver("cuStreamGetCtx", handle), _current_device)
        return StreamState(device, capturing=capturing)

    # Tensor maps and fills --------------------------------------------------------------------------------------

    def encode(self, fields: MapFields) -> EncodedMap:
        """Encode a tensor map (``cuTensorMapEncodeTiled``, ``cuTensorMapEncodeIm2col``)."""
        encoded = call_driver(fields.call, *map(_map_argument, fields.arguments()))
        return EncodedMap(int(encoded.getPtr()), encoded)

    def fill(self, step: FillStep, address: int, count: int, stream: int) -> None:
        """Write a repeated number (``cuMemsetD8Async`` and its like)."""
        at, handle = cu.CUdeviceptr(address + step.offset), cu.CUstream(stream)
        if step.pitch != step.width:
            call_driver("cuMemsetD2D32Async", at, step.pitch, step.value, 1, count, handle, stream=stream)
        else:
            call_driver(f"cuMemsetD{8 * step.width}Async", at, step.value, count, handle, stream=stream)

    # Launches ---------------------------------------------------------------------------------------------------

    def new_config(self, spec: LaunchSpec) -> LaunchConfig:
        """Return a configuration with what is known before a call."""
        return config_of(spec)

    def set_attributes(self, config: LaunchConfig, attributes: ComputedAttributes) -> None:
        """Give a launch what its call decides; see `AttributeFacade.set_attributes`."""
        set_attributes(config, attributes)

    def launch(
        self,
        config: LaunchConfig,
        kernel: Any,
        shape: tuple[int, ...],
        stream: int,
        parameters: int,
        window: tuple[int, int] | None,
    ) -> None:
        """Launch (``cuLaunchKernelEx``); `CudaDialect` inlines this."""
        fields = config.fields
        fields.gridDimX, fields.gridDimY, fields.gridDimZ = shape[0:3]
        fields.blockDimX, fields.blockDimY, fields.blockDimZ = shape[3:6]
        fields.sharedMemBytes = shape[6]
        fields.hStream = cu.CUstream(stream)
        if window is not None:
            set_window(config, window)
        call_driver("cuLaunchKernelEx", fields, kernel, parameters, 0, stream=stream)

    def prepared(
        self,
        config: LaunchConfig,
        kernel: Any,
        parameters: ctypes.Array[ctypes.c_void_p],
        make_caller: MakeCaller,
    ) -> tuple[Callable[..., int], tuple[Any, ...]]:
        """Return a call of ``cuLaunchKernelEx``; see `PreparingFacade.prepared`.

        Arguments that are made once save half of a call through `ctypes`. Whoever calls keeps what they refer to.
        """
        addresses = (config.address, int(kernel), ctypes.addressof(parameters), 0)
        compiled = make_caller(self._launch_address, addresses, (config, parameters))
        if compiled is not None:
            return compiled, ()
        return self._launch_ex, (*map(by_reference, addresses[:3]), None)

    def retry(self, attempt: Attempt) -> None:
        """Launch again, under a context, what was refused for want of one; anything else is an error.

        Only the driver's own streams need a current context, and only where there is one device do launchers not look
        for it before.
        """
        frame = attempt.frame
        wanting = attempt.status == cu.CUresult.CUDA_ERROR_INVALID_CONTEXT
        if not wanting or not self.enter(attempt.device):
            stream = int(frame.config.fields.hStream)
            raise driver_error("cuLaunchKernelEx", attempt.status, stream, self._refused(attempt))
        try:
            status = frame.fire(*frame.arguments)
            if status:
                raise driver_error("cuLaunchKernelEx", status, launch=self._refused(attempt))
        finally:
            self.leave()

    def _refused(self, attempt: Attempt) -> RefusedLaunch:
        fields = attempt.frame.config.fields
        grid = fields.gridDimX, fields.gridDimY, fields.gridDimZ
        block = fields.blockDimX, fields.blockDimY, fields.blockDimZ
        return RefusedLaunch.of(attempt.frame, attempt.kernel, (*grid, *block), self.priorities)

    def priorities(self) -> tuple[int, int]:
        """Return what the current device takes as a priority (``cuCtxGetStreamPriorityRange``)."""
        least_urgent, most_urgent = call_driver("cuCtxGetStreamPriorityRange")
        return int(most_urgent), int(least_urgent)  # the most urgent priority is the least number

    def synchronize(self, device: int) -> None:
        """Wait for all work on a device (``cuCtxSynchronize``); see `DriverFacade.synchronize`."""
        failures: list[TrunnionError] = []
        for wait in (self._synchronize_primary, self._synchronize_current):
            try:
                wait(device)
            except TrunnionError as error:  # both are done, whatever the first raises
                failures.append(error)
        if failures:  # a capture's first: then nothing is unloaded
            raise next((one for one in failures if isinstance(one, CaptureError)), failures[0])

    def _synchronize_primary(self, device: int) -> None:
        within_primary(self, device, _synchronize)

    def _synchronize_current(self, device: int) -> None:
        """Wait in the current context, if that is another one of a device than its primary one."""
        status, current = calls.cuCtxGetDevice()
        if not status and int(current) == device and _current_context() != int(self._primary(device)):
            _synchronize()

    # Windows ----------------------------------------------------------------------------------------------------

    def persisting_limit(self) -> int | None:
        """Return ``CU_LIMIT_PERSISTING_L2_CACHE_SIZE`` (``cuCtxGetLimit``); None where there is none (MIG, MPS)."""
        status, nbytes = calls.cuCtxGetLimit(cu.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
        if status == cu.CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT:
            return None
        check("cuCtxGetLimit", status)
        return int(nbytes)

    def set_persisting_limit(self, nbytes: int) -> None:
        """Set it (``cuCtxSetLimit``)."""
        limit = cu.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE
        (status,) = self._relaxed(calls.cuCtxSetLimit, limit, nbytes)
        if status != cu.CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT:
            check("cuCtxSetLimit", status)

    def set_stream_window(self, stream: int, spec: WindowSpec, address: int, nbytes: int) -> None:
        """Set a stream's window (``cuStreamSetAttribute``); 0 bytes take it away."""
        value = cu.CUstreamAttrValue()
        window_of(value.accessPolicyWindow, spec, (address, nbytes))
        attribute = cu.CUstreamAttrID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
        call_driver("cuStreamSetAttribute", cu.CUstream(stream), attribute, value)

    def reset_persisting(self, stream: int) -> None:
        """Wait for a stream and make persisting lines normal (``cuCtxResetPersistingL2Cache``)."""
        self._relaxed(call_driver, "cuStreamSynchronize", cu.CUstream(stream))
        call_driver("cuCtxResetPersistingL2Cache")


def _address(function: str, version: int) -> int:
    """Return the address of a function of the driver, by the version of CUDA that brought it.

    Raises
    ------
    DeviceRequirementError
        If the driver has no such function.
    """
    flags = cu.CUdriverProcAddress_flags.CU_GET_PROC_ADDRESS_DEFAULT
    status, address, _ = calls.cuGetProcAddress(function.encode(), version, int(flags))
    if status or not address:
        wanted = f"a driver for CUDA {version // 1000}.{version % 1000 // 10} or later, with {function}"
        raise DeviceRequirementError(wanted, f"one without it: {status}", "update the driver")
    return int(address)


def _write(writes: Sequence[tuple[int, bytes]]) -> None:
    """Write bytes on a stream of their own, and wait until they are there."""
    stream = call_driver("cuStreamCreate", int(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
    try:
        for address, data in writes:
            call_driver("cuMemcpyHtoDAsync", cu.CUdeviceptr(address), data, len(data), stream)
        call_driver("cuStreamSynchronize", stream)
    finally:
        (status,) = calls.cuStreamDestroy(stream)
    check("cuStreamDestroy", status)


def _map_argument(argument: DriverArgument) -> Any:
    """Return an argument of a map's encoding as the bindings take it."""
    kind, value = argument
    if not isinstance(value, tuple):
        return getattr(cu, kind)(value) if kind.startswith("CU") else value
    # Of an empty list a null pointer is made, which the driver refuses: the strides of one dimension too.
    numbers = value or (0,)
    return (
        list(numbers) if kind == "int[]" else [getattr(cu, kind.removesuffix("[]"))(one) for one in numbers]
    )


@functools.cache
def cuda_driver() -> CudaDriver:
    """Return the driver of this process; made once, so that every program shares its contexts."""
    return CudaDriver()


def _current_context() -> int:
    return int(call_driver("cuCtxGetCurrent"))


def _synchronize() -> None:
    call_driver("cuCtxSynchronize")


def _pop() -> None:
    call_driver("cuCtxPopCurrent")


def _current_device() -> int:
    return int(call_driver("cuCtxGetDevice"))
