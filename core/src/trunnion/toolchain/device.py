"""Which architecture a device has, asked of the driver itself."""

from __future__ import annotations

import ctypes
import enum
from typing import Final

__all__ = ["Absence", "arch_of", "device_arch", "find_device"]

_SONAME: Final = "libcuda.so.1"
_NOT_INITIALIZED, _NO_DEVICE = 3, 100  # CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_NO_DEVICE
_ATTRIBUTES: Final = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
_FIRST_ACCELERATED: Final = (9, 0)


def arch_of(capability: tuple[int, int]) -> str:
    """Return the real architecture of a compute capability: ``"sm_90a"`` for 9.0, ``"sm_89"`` for 8.9.

    The ``a`` variant runs on this capability alone and has all of its instructions (wgmma, tcgen05).

    Parameters
    ----------
    capability
        Its major and minor number.
    """
    major, minor = capability
    return f"sm_{major}{minor}{'a' if capability >= _FIRST_ACCELERATED else ''}"


class Absence(enum.Enum):
    """Why there is no device, in words."""

    DRIVER = "there is no NVIDIA driver"
    START = "the driver does not start"
    FORKED = "this process was forked from one that had used CUDA"
    DEVICE = "there is no such device"


def device_arch(ordinal: int = 0) -> str | None:
    """Return the architecture of a device, as `arch_of` names it; None if there is no driver or no such device.

    Initialises the driver (``cuInit``) and makes no context.

    Parameters
    ----------
    ordinal
        The device, counted from 0.
    """
    capability = find_device(ordinal)
    return None if isinstance(capability, Absence) else arch_of(capability)


def find_device(ordinal: int = 0) -> tuple[int, int] | Absence:
    """Return the compute capability of a device, or why there is none.

    Initialises the driver (``cuInit``) and makes no context. In the child of a fork `cuInit
    <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__INITIALIZE.html>`_ answers
    ``CUDA_ERROR_NOT_INITIALIZED``, if it was called before.

    Parameters
    ----------
    ordinal
        The device, counted from 0.
    """
    driver = _driver()
    if driver is None:
        return Absence.DRIVER
    status = driver.cuInit(0)
    if status:
        return {_NOT_INITIALIZED: Absence.FORKED, _NO_DEVICE: Absence.DEVICE}.get(status, Absence.START)
    device, numbers = ctypes.c_int(), (ctypes.c_int(), ctypes.c_int())
    if driver.cuDeviceGet(ctypes.byref(device), ordinal):
        return Absence.DEVICE
    for attribute, number in zip(_ATTRIBUTES, numbers, strict=True):
        if driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device):
            return Absence.DEVICE
    major, minor = (number.value for number in numbers)
    return major, minor


def _driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(_SONAME)
    except OSError:
        return None
