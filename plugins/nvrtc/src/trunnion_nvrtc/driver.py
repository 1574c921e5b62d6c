"""The CUDA driver, through ``cuda.bindings.driver``: the facade of the Python launcher.

The one place where this plugin launches. Every status ends in `check`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cuda.bindings.driver as cu

from trunnion.codegen.python.facade import EncodedMap
from trunnion.errors import BackendUnavailableError, DriverError

if TYPE_CHECKING:
    from trunnion.codegen.python.facade import LaunchSpec
    from trunnion.model.tensormap_rules import TiledFields

__all__ = ["CudaDriver", "check", "cuda_driver", "driver_error", "launch_error"]

_ADVICE = {
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the image was compiled for another architecture: pass target= of this device",
    "CUDA_ERROR_INVALID_IMAGE": "the image is not one that this driver can load: is it newer than the driver?",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the PTX is newer than the driver: compile to a cubin",
    "CUDA_ERROR_NOT_FOUND": "the image has no symbol of that name",
    "CUDA_ERROR_NO_DEVICE": "no CUDA device is visible: is CUDA_VISIBLE_DEVICES empty?",
    "CUDA_ERROR_INVALID_HANDLE": "a handle is stale or of another device: is the stream one of the tensors' device?",
}


def check(call: str, status: Any) -> None:
    """Raise what a driver's status says.

    Parameters
    ----------
    call
        The function that returned it.
    status
        A ``CUresult``.

    Raises
    ------
    DriverError
        Unless the status is ``CUDA_SUCCESS``.
    """
    if status:
        raise driver_error(call, status)


def driver_error(call: str, status: Any) -> DriverError:
    """Return the error of a status, with its name, its explanation and advice."""
    code = int(status)
    found, name = cu.cuGetErrorName(status)
    known, text = cu.cuGetErrorString(status)
    code_name = f"status {code}" if found or name is None else name.decode()
    explanation = "" if known or text is None else text.decode()
    advice = _ADVICE.get(code_name, "")
    return DriverError(call, code, code_name, "; ".join(part for part in (explanation, advice) if part))


def launch_error(status: Any) -> DriverError:
    """Return the error of a failed launch; called by generated launchers."""
    return driver_error("cuLaunchKernelEx", status)


class CudaDriver:
    """The driver of this process.

    Raises
    ------
    BackendUnavailableError
        If there is no driver.
    DriverError
        If it cannot be initialised.
    """

    def __init__(self) -> None:
        try:
            (status,) = cu.cuInit(0)
        except (
            RuntimeError
        ) as error:  # what cuda.bindings raises if libcuda.so.1, or a symbol of it, is missing
            raise BackendUnavailableError(
                "nvrtc",
                "trunnion-nvrtc",
                "there is no CUDA driver (libcuda.so.1); install the NVIDIA driver, or simulate: trunnion.sim.start()",
                str(error),
            ) from error
        check("cuInit", status)
        status, count = cu.cuDeviceGetCount()
        check("cuDeviceGetCount", status)
        self._contexts: list[Any] = [None] * count

    def device_count(self) -> int:
        """Return the number of devices."""
        return len(self._contexts)

    def load(self, image: bytes) -> Any:
        """Load an image for all devices (``cuLibraryLoadData``)."""
        status, library = cu.cuLibraryLoadData(image, [], [], 0, [], [], 0)
        check("cuLibraryLoadData", status)
        return library

    def unload(self, library: Any) -> None:
        """Unload an image (``cuLibraryUnload``)."""
        (status,) = cu.cuLibraryUnload(library)
        check("cuLibraryUnload", status)

    def kernel(self, library: Any, symbol: str) -> Any:
        """Return a kernel's handle (``cuLibraryGetKernel``)."""
        status, kernel = cu.cuLibraryGetKernel(library, symbol.encode())
        check("cuLibraryGetKernel", status)
        return kernel

    def set_dynamic_smem(self, kernel: Any, device: int, nbytes: int) -> None:
        """Allow a kernel that much dynamic shared memory on a device (``cuKernelSetAttribute``)."""
        attribute = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        (status,) = cu.cuKernelSetAttribute(attribute, nbytes, kernel, self._device(device))
        check("cuKernelSetAttribute", status)

    def _device(self, ordinal: int) -> Any:
        status, device = cu.cuDeviceGet(ordinal)
        check("cuDeviceGet", status)
        return device

    def enter(self, device: int) -> bool:
        """Push the device's primary context unless a context of that device is current, a green one included."""
        status, current = cu.cuCtxGetDevice()
        if not status and int(current) == device:
            return False
        (status,) = cu.cuCtxPushCurrent(self._contexts[device] or self._retain(device))
        check("cuCtxPushCurrent", status)
        return True

    def _retain(self, device: int) -> Any:
        """Retain the primary context once; it stays for the life of the process, as torch's does."""
        status, context = cu.cuDevicePrimaryCtxRetain(self._device(device))
        check("cuDevicePrimaryCtxRetain", status)
        self._contexts[device] = context
        return context

    def leave(self) -> None:
        """Pop what `enter` pushed."""
        status, _ = cu.cuCtxPopCurrent()
        check("cuCtxPopCurrent", status)

    def encode_tiled(self, fields: TiledFields, l2_promotion: int) -> EncodedMap:
        """Encode a tensor map (``cuTensorMapEncodeTiled``)."""
        rank = len(fields.dims)
        status, encoded = cu.cuTensorMapEncodeTiled(
            cu.CUtensorMapDataType(fields.dtype_code),
            rank,
            fields.address,
            [cu.cuuint64_t(extent) for extent in fields.dims],
            [cu.cuuint64_t(stride) for stride in fields.strides],
            [cu.cuuint32_t(extent) for extent in fields.box],
            [cu.cuuint32_t(step) for step in fields.element_strides],
            cu.CUtensorMapInterleave(fields.interleave),
            cu.CUtensorMapSwizzle(fields.swizzle),
            cu.CUtensorMapL2promotion(l2_promotion),
            cu.CUtensorMapFloatOOBfill(fields.oob_fill),
        )
        check("cuTensorMapEncodeTiled", status)
        return EncodedMap(int(encoded.getPtr()), encoded)

    def new_config(self, spec: LaunchSpec) -> Any:
        """Return a ``CUlaunchConfig`` with what is known before a call."""
        config = cu.CUlaunchConfig()
        for axis, grid, block in zip("XYZ", spec.grid, spec.block, strict=True):
            setattr(config, f"gridDim{axis}", grid or 0)
            setattr(config, f"blockDim{axis}", block or 0)
        config.sharedMemBytes = spec.dynamic_smem_bytes or 0
        config.numAttrs = 0
        return config

    def launch(self, config: Any, kernel: Any, shape: tuple[int, ...], stream: int, parameters: int) -> None:
        """Launch (``cuLaunchKernelEx``); `CudaDialect` inlines this."""
        config.gridDimX, config.gridDimY, config.gridDimZ = shape[0:3]
        config.blockDimX, config.blockDimY, config.blockDimZ = shape[3:6]
        config.sharedMemBytes = shape[6]
        config.hStream = cu.CUstream(stream)
        (status,) = cu.cuLaunchKernelEx(config, kernel, parameters, 0)
        check("cuLaunchKernelEx", status)

    def synchronize(self, device: int) -> None:
        """Wait for all work on a device (``cuCtxSynchronize``)."""
        entered = self.enter(device)
        try:
            (status,) = cu.cuCtxSynchronize()
            check("cuCtxSynchronize", status)
        finally:
            if entered:
                self.leave()


@functools.cache
def cuda_driver() -> CudaDriver:
    """Return the driver of this process; made once, so that every program shares its contexts."""
    return CudaDriver()
