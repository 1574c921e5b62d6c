"""Which architecture a device has."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["arch_of", "device_arch"]

_FIRST_ACCELERATED = (9, 0)


def arch_of(major: int, minor: int) -> str:
    """Return the real architecture of a compute capability: ``"sm_90a"`` for 9.0, ``"sm_89"`` for 8.9.

    The ``a`` variant runs on this capability alone and has all of its instructions (wgmma, tcgen05).
    """
    return f"sm_{major}{minor}{'a' if (major, minor) >= _FIRST_ACCELERATED else ''}"


def device_arch(ordinal: int = 0) -> str | None:
    """Return the architecture of a device; None if there is no driver or no such device.

    Initialises the driver (``cuInit``) and makes no context.

    Parameters
    ----------
    ordinal
        The device, counted from 0.
    """
    try:
        driver: Any = importlib.import_module("cuda.bindings.driver")
    except ImportError:
        return None
    attributes = driver.CUdevice_attribute
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError:
        # The bindings could not load libcuda.so.1.
        return None
    if int(status) != 0:
        return None
    status, device = driver.cuDeviceGet(ordinal)
    if int(status) != 0:
        return None
    _, major = driver.cuDeviceGetAttribute(attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)
    _, minor = driver.cuDeviceGetAttribute(attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)
    return arch_of(major, minor)
