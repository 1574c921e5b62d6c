"""Which architecture a device has, asked of the driver itself."""

from __future__ import annotations

import ctypes
from typing import Final

__all__ = ["arch_of", "device_arch", "device_capability", "has_driver"]

_SONAME: Final = "libcuda.so.1"
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


def device_arch(ordinal: int = 0) -> str | None:
    """Return the architecture of a device, as `arch_of` names it; None if there is no driver or no such device.

    Initialises the driver (``cuInit``) and makes no context.

    Parameters
    ----------
    ordinal
        The device, counted from 0.
    """
    capability = device_capability(ordinal)
    return None if capability is None else arch_of(capability)


def has_driver() -> bool:
    """Return whether there is a driver that can be loaded, the simulated one included; it is not initialised."""
    return _driver() is not None


def device_capability(ordinal: int = 0) -> tuple[int, int] | None:
    """Return the compute capability of a device; None if there is no driver or no such device.

    Initialises the driver (``cuInit``) and makes no context.

    Parameters
    ----------
    ordinal
        The device, counted from 0.
    """
    driver = _driver()
    if driver is None:
        return None
    device, numbers = ctypes.c_int(), (ctypes.c_int(), ctypes.c_int())
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), ordinal):
        return None
    for attribute, number in zip(_ATTRIBUTES, numbers, strict=True):
        if driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device):
            return None
    major, minor = (number.value for number in numbers)
    return major, minor


def _driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(_SONAME)
    except OSError:
        return None
