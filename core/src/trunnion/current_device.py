"""Which device a thread means that names none: what ``"cuda"`` alone stands for."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Final

__all__ = ["current_device"]

_SONAME: Final = "libcuda.so.1"


def current_device() -> int:
    """Return the ordinal of the calling thread's current device: torch's, where it uses CUDA, else the driver's.

    A thread that has made no device current has the first one, as in torch.
    """
    # Torch may hold a choice back until something is launched. While another thread imports it, this part is not there.
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        return int(cuda.current_device())
    try:
        driver = ctypes.CDLL(_SONAME)
    except OSError:
        return 0  # whoever uses it is told that there is no driver
    device = ctypes.c_int()
    return 0 if driver.cuCtxGetDevice(ctypes.byref(device)) else device.value
