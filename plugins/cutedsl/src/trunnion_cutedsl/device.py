"""Which architecture a device has, asked of the driver itself."""

from __future__ import annotations

import ctypes
from typing import Final

__all__ = ["device_arch"]

_MAJOR: Final = 75  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
_MINOR: Final = 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
_FIRST_ACCELERATED: Final = (9, 0)


def device_arch(ordinal: int = 0) -> str | None:
    """Return the architecture of a device; None if there is no driver or no such device.

    Where there is an ``a`` variant, which has all instructions of this capability, it is that. Initialises the driver
    (``cuInit``) and makes no context.

    Parameters
    ----------
    ordinal
        The device, counted from 0.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, numbers = ctypes.c_int(), (ctypes.c_int(), ctypes.c_int())
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), ordinal):
        return None
    for attribute, number in zip((_MAJOR, _MINOR), numbers, strict=True):
        if driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device):
            return None
    major, minor = (number.value for number in numbers)
    return f"sm_{major}{minor}{'a' if (major, minor) >= _FIRST_ACCELERATED else ''}"
