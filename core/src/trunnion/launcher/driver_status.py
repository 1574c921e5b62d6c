"""What the driver's statuses mean to a caller: which typed error, with what advice. The one table for all launchers."""

from __future__ import annotations

import math
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import CaptureError, DeviceRequirementError, DriverError, TrunnionError, shorten
from trunnion.image.target import image_target
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES
from trunnion.model.plan.refusals import AFTER_FORK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from trunnion.launcher.frames import LaunchFrame

    Refusal = DriverError | DeviceRequirementError

__all__ = [
    "OF_IMAGE",
    "PRIORITY_ATTRIBUTE",
    "RefusedLaunch",
    "about",
    "naming_kernel",
    "naming_variable",
    "of_unlike_device",
    "status_error",
]

PRIORITY_ATTRIBUTE = next(row.id for row in LAUNCH_ATTRIBUTES if row.field == "priority")
"""``CU_LAUNCH_ATTRIBUTE_PRIORITY``."""


_WINDOW_ATTRIBUTE = 1  # CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW

_CAPTURE = range(900, 909)
"""CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED to CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, and CUDA_ERROR_CAPTURED_EVENT."""

_TOO_SMALL = {
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": (
        "a device that holds all blocks of a cooperative launch at once",
        "",
    ),
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": (
        "a cluster that the kernel and the device take, and a grid that is a multiple of it",
        "a kernel that was compiled for a cluster (program.kernels[...].cluster says which) is launched in no other",
    ),
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": (
        "a driver that is at least as new as the compiler that made the PTX",
        "update the driver, or compile to a cubin, for a real architecture such as target='sm_90a'",
    ),
}
"""What the device or the driver would have to be, and what to do."""

_PREPARATIONS = frozenset(
    {
        "cuLibraryLoadData",
        "cuLibraryGetGlobal",
        "cuLibraryGetKernel",
        "cuKernelSetAttribute",
        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        "cuDevicePrimaryCtxRetain",
    }
)
"""What a program calls before its first launch on a device, and never again."""

_CLOSING = frozenset({"cuCtxSynchronize", "cuLibraryUnload"})
"""What a program calls when it is closed, and at no other time."""

OF_IMAGE = frozenset({"CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_NOT_FOUND"})
"""What an image that does not fit a device, or the program, is refused with."""
_OF_KERNELS = frozenset(
    {
        "cuKernelGetAttribute",
        "cuKernelSetAttribute",
        "cuLibraryGetKernel",
        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    }
)
"""What is asked of one kernel."""

_IMPLICIT = "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"

_ADVICE = {
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the image was compiled for another architecture: pass target= of this device; "
    "a bundle's program for it is bundle.on(name, device)",
    "CUDA_ERROR_INVALID_IMAGE": "the image is not one that this driver can load: is it newer than the driver?",
    "CUDA_ERROR_INVALID_PTX": "the driver's compiler refuses the PTX: was it made for a later architecture?",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the PTX is of a later version than this driver compiles: update the driver, "
    "say an older .version if the PTX needs no later one, or compile for a real architecture, such as target='sm_90a'",
    "CUDA_ERROR_NOT_FOUND": "the image has no symbol of that name",
    "CUDA_ERROR_NOT_INITIALIZED": f"in a process that was forked after CUDA was used there is none: {AFTER_FORK}",
    "CUDA_ERROR_NO_DEVICE": "no CUDA device is visible: is CUDA_VISIBLE_DEVICES empty?",
    "CUDA_ERROR_INVALID_HANDLE": "a handle is stale or of another device: is the stream one of the tensors' device?",
}


_LAUNCH_ADVICE = {
    "CUDA_ERROR_INVALID_VALUE": "has the block more threads than the kernel was compiled for "
    "(program.kernels[...].max_threads says)?"
}
"""Likewise of launches alone: what of them only a call decides, no build compares with the image."""


@dataclass(frozen=True, slots=True)
class RefusedLaunch:
    """The launch that the driver refused, for the error's text."""

    kernel: str
    """The kernel's name, as the program spells it."""

    attributes: tuple[tuple[int, tuple[int | None, ...]], ...] = ()
    """Its attributes: ``CUlaunchAttributeID``, and the driver's numbers; of a window none."""

    shape: tuple[int, ...] = ()
    """Grid x, y, z and block x, y, z; empty: not known, of a launcher that was built before it told them."""

    priorities: tuple[int, int] | None = None
    """The least and the greatest number that the device takes as a priority; None: not asked, or not known."""

    @classmethod
    def of(
        cls,
        frame: LaunchFrame,
        kernel: str,
        shape: tuple[int, ...],
        priorities: Callable[[], tuple[int, int]] | None,
    ) -> Self:
        """Return what was refused.

        Parameters
        ----------
        frame
            The launch, with the attributes that the call decided.
        kernel, shape
            As the fields.
        priorities
            Asks the device for `priorities`; None: nobody does.
        """
        spec, known, computed = frame.spec, None, dict(frame.computed)
        if priorities is not None and any(number == PRIORITY_ATTRIBUTE for number, _ in spec.attributes):
            with suppress(TrunnionError):  # no context may be current: the launch's stream knew its own
                known = priorities()
        window = ((_WINDOW_ATTRIBUTE, ()),) if spec.window is not None else ()
        attributes = ((number, computed.get(number, values)) for number, values in spec.attributes)
        return cls(kernel, (*attributes, *window), shape, known)

    @property
    def text(self) -> str:
        """What was launched, in the words of `trunnion.KernelLaunch`."""
        grid, block = self.shape[:3], self.shape[3:6]
        shown = [f"grid={grid}", f"block={block} ({math.prod(block)} threads)"] if self.shape else []
        shown += [_attribute(number, values) for number, values in self.attributes]
        text = f"the launch is of kernel {shorten(self.kernel)}"
        text += f" with {', '.join(shown)}" if shown else " without launch attributes"
        if self.priorities is not None:
            text += f"; the device takes priorities from {self.priorities[0]} to {self.priorities[1]}"
        return text


def _attribute(number: int, values: tuple[int | None, ...]) -> str:
    """Return an attribute as a launch's author wrote it."""
    for row in LAUNCH_ATTRIBUTES:
        if row.id == number:
            return row.spelled(values)
    return "window" if number == _WINDOW_ATTRIBUTE else f"attribute {number}"


def status_error(
    call: str,
    code: int,
    said: tuple[str, str],
    stream: int | None = None,
    launch: RefusedLaunch | None = None,
) -> TrunnionError:
    """Return the error of a status.

    A status that a stream capture is the reason for is a `CaptureError`, and one that says that the device is too
    small, or the driver too old, a `DeviceRequirementError`.

    Parameters
    ----------
    call
        The function that returned it.
    code
        The ``CUresult``.
    said
        Its name and its explanation (``cuGetErrorName``, ``cuGetErrorString``).
    stream
        The handle of the stream that the function was given; None: it takes none.
    launch
        What the function was to launch; None: it launches nothing.
    """
    name, explanation = said
    if name in _TOO_SMALL:
        requirement, hint = _TOO_SMALL[name]
        small = DeviceRequirementError(requirement, f"{name} of {call}: {explanation}", hint)
        return about(small, launch.text if launch else "")
    known = _ADVICE | _LAUNCH_ADVICE if call == "cuLaunchKernelEx" else _ADVICE
    advice = _capture_advice(call, name, stream) if code in _CAPTURE else known.get(name, "")
    explained = "; ".join(part for part in (explanation, advice) if part)
    if code in _CAPTURE:
        return CaptureError(f"{call} failed with {name} ({code}): {explained}")
    explained = "; ".join(part for part in (explained, launch.text if launch else "") if part)
    return DriverError(call, code, name, explained)


def of_unlike_device(error: Refusal, image: bytes, devices: Sequence[tuple[int, int]]) -> Refusal:
    """Return the error of an image that does not fit a device, with the architectures of both.

    Parameters
    ----------
    error
        What the driver said.
    image
        The image.
    devices
        The compute capability of each device.
    """
    target = image_target(image)
    shown = [f"the image is for {target}"] if target else []
    shown += [f"device {ordinal} is sm_{major}{minor}" for ordinal, (major, minor) in enumerate(devices)]
    return about(error, ", ".join(shown))


@contextmanager
def naming_kernel(symbol: str, device: int | None = None) -> Iterator[None]:
    """Name a kernel in what the driver says of it until the block ends; what it says of something else stays as it is.

    Parameters
    ----------
    symbol
        The kernel's exact name in the image.
    device
        The device on which it is refused; None: it is looked up for all of them.
    """
    try:
        yield
    except DriverError as error:
        if error.call not in _OF_KERNELS:
            raise
        where = "" if device is None else f" on device {device}"
        raise about(error, f"the kernel is {shorten(symbol)}{where}") from error.__cause__


@contextmanager
def naming_variable(symbol: str, device: int) -> Iterator[None]:
    """Name a module variable in what the driver says where it is looked up, until the block ends.

    Parameters
    ----------
    symbol
        The variable's exact name in the image.
    device
        The device on which it is looked up.
    """
    try:
        yield
    except DriverError as error:
        if error.call != "cuLibraryGetGlobal":
            raise
        raise about(error, f"the variable is {shorten(symbol)} on device {device}") from error.__cause__


def about(error: Refusal, subject: str) -> Refusal:
    """Return the error that says more, behind all that it says: what the call was about, or nothing."""
    if not subject:
        return error
    if isinstance(error, DeviceRequirementError):
        hint = "; ".join(part for part in (error.hint, subject) if part)
        return DeviceRequirementError(error.requirement, error.got, hint)
    explained = "; ".join(part for part in (error.explanation, subject) if part)
    return DriverError(error.call, error.code, error.code_name, explained)


def _capture_advice(call: str, code_name: str, stream: int | None) -> str:
    if call in _PREPARATIONS:
        return "call preload(device), or the program once, before the capture"
    if call in _CLOSING:
        return "close the program again when the capture has ended"
    if code_name == _IMPLICIT and stream is not None:
        return (
            f"the call goes to stream {stream:#x}, which is not the one that is being captured, but waits for it: call "
            "under the captured stream; a bound launch goes to the stream of bind, so bind under the captured stream"
        )
    return ""
