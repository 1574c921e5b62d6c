"""The calls that this process makes of the CUDA driver, as CUPTI tells of them.

Source: CUPTI, "Callback API" (``cuptiSubscribe``, ``cuptiEnableCallback``, ``CUpti_CallbackData``).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.errors import DeviceRequirementError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["DriverCall", "Subscription"]

_DRIVER_API: Final = 1  # CUPTI_CB_DOMAIN_DRIVER_API
_EXIT: Final = 1  # CUPTI_API_EXIT
_MOST_IDS: Final = 4096
_SUFFIXES: Final = ("_ptsz", "_ptds", "_v2")


class _CallbackData(ctypes.Structure):
    """``CUpti_CallbackData``."""

    _fields_ = (
        ("callbackSite", ctypes.c_int),
        ("functionName", ctypes.c_char_p),
        ("functionParams", ctypes.c_void_p),
        ("functionReturnValue", ctypes.c_void_p),
        ("symbolName", ctypes.c_char_p),
        ("context", ctypes.c_void_p),
        ("contextUid", ctypes.c_uint32),
        ("correlationData", ctypes.c_void_p),
        ("correlationId", ctypes.c_uint32),
    )


_CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(_CallbackData)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCall:
    """One call, as it returns: what its arguments point to is still there."""

    name: str
    """The function's, without the suffix of its version and of its per-thread twin."""

    per_thread: bool
    """Whether the null stream means the per-thread default stream."""

    arguments: int
    """The address of a structure whose members are the arguments."""

    status: int
    """``CUresult``."""

    symbol: str
    """The kernel's name, of a launch; else empty."""

    device: int
    """The ordinal of the current context's device; -1 without one."""


class Subscription:
    """Tells of driver calls, in every thread, until the process ends.

    Parameters
    ----------
    names
        The functions, without suffixes.
    told
        Called with each call, in the thread that made it, before it returns.

    Raises
    ------
    DeviceRequirementError
        If CUPTI is not there, or serves somebody else: it has one subscriber in a process.
    """

    def __init__(self, names: Collection[str], told: Callable[[DriverCall], None]) -> None:
        self._cupti = _library()
        self._told = told
        self.raised: list[BaseException] = []
        """What went wrong while calls were told of."""
        self._callback = _CALLBACK(self._hear)  # for as long as the driver may call it
        handle = ctypes.c_void_p()
        self._check(self._cupti.cuptiSubscribe(ctypes.byref(handle), self._callback, None), "cuptiSubscribe")
        for number in range(1, _MOST_IDS):
            name = ctypes.c_char_p()
            if self._cupti.cuptiGetCallbackName(_DRIVER_API, number, ctypes.byref(name)) or not name.value:
                continue
            if _plain(name.value.decode())[0] in names:
                status = self._cupti.cuptiEnableCallback(1, handle, _DRIVER_API, number)
                self._check(status, "cuptiEnableCallback")

    def _check(self, status: int, function: str) -> None:
        if status:
            raise DeviceRequirementError(
                "CUPTI, which tells of driver calls", f"{function} returned {status}", "let no profiler run"
            )

    def _hear(self, _: int, __: int, ___: int, pointer: Any) -> None:
        try:
            data = pointer.contents
            if data.callbackSite != _EXIT:
                return
            name, per_thread = _plain(data.functionName.decode())
            call = DriverCall(
                name=name,
                per_thread=per_thread,
                arguments=data.functionParams,
                status=ctypes.c_int.from_address(data.functionReturnValue).value,
                symbol=(data.symbolName or b"").decode(),
                device=self._device(data.context),
            )
            self._told(call)
        except BaseException as error:  # noqa: BLE001 - nothing may leave a callback
            self.raised.append(error)

    def _device(self, context: int | None) -> int:
        """Return the device of a context: of CUPTI, since the driver may not be called from here."""
        ordinal = ctypes.c_uint32()
        if context is None or self._cupti.cuptiGetDeviceId(ctypes.c_void_p(context), ctypes.byref(ordinal)):
            return -1
        return ordinal.value


def _plain(name: str) -> tuple[str, bool]:
    """Return a function's name without suffixes, and whether it is the per-thread twin."""
    per_thread = name.endswith(_SUFFIXES[:2])
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name, per_thread


def _library() -> ctypes.CDLL:
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib  # noqa: PLC0415 - only on a GPU

        return ctypes.CDLL(load_nvidia_dynamic_lib("cupti").abs_path)
    except (ImportError, RuntimeError, OSError) as error:  # pathfinder's own error is a RuntimeError
        raise DeviceRequirementError(
            "CUPTI, which tells of driver calls",
            f"none: {error}",
            "pip install cuda-pathfinder nvidia-cuda-cupti",
        ) from error
