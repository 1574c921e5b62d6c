"""Whether C++ launchers can be built and loaded, found out without importing or loading what they need."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.contract.spec import Availability
from trunnion.errors import BackendUnavailableError
from trunnion.toolchain.host import find_host_toolchain
from trunnion.toolchain.search import loader_places, path_text
from trunnion.toolchain.torch_release import installed_torch, refuse_old_torch

if TYPE_CHECKING:
    from collections.abc import Collection

    from trunnion.toolchain.host import HostToolchain

__all__ = ["no_driver", "probe_launchers"]

_DRIVER = "libcuda.so.1"
_CUDA = "cuda"


def probe_launchers(plugin: str, distribution: str, targets: Collection[str] = ("cuda",)) -> Availability:
    """Say whether launchers can be built and loaded here, and whether there are torch and a driver to run them with.

    A compiler is asked for its version, which takes some milliseconds the first time.

    Parameters
    ----------
    plugin
        The backend that asks.
    distribution
        What brings it.
    targets
        The kinds of target that it launches on; all but ``"cuda"`` do without CUDA's headers.
    """
    try:
        toolchain, unusable = _toolchain(plugin, targets)
        refuse_old_torch(plugin, distribution)
    except BackendUnavailableError as error:
        return Availability(usable=False, detail=error.reason)
    torch, driver = installed_torch(), path_text(_driver())
    found = [
        f"apache-tvm-ffi {toolchain.ffi.distribution}",
        *(f"{name} {version}" for name, version in toolchain.versions.items() if name == "cuda.h"),
        toolchain.compiler.name,
        f"torch {torch}" if torch else "no torch here: it builds, it cannot call",
        f"driver: {driver}" if driver else f"{no_driver()}{_without_driver(targets)}",
    ]
    return Availability(usable=True, detail="; ".join(found), unusable=unusable)


def no_driver() -> str:
    """Return what a backend for CUDA can do without a driver, in words."""
    return "no NVIDIA driver here: for CUDA it builds, and launches on the simulated driver alone"


def _without_driver(targets: Collection[str]) -> str:
    others = ", ".join(sorted({*targets} - {_CUDA}))
    return f"; for {others} it builds and launches" if others else ""


def _toolchain(plugin: str, targets: Collection[str]) -> tuple[HostToolchain, dict[str, str]]:
    """Return what launchers are built with, and what is missing for some kind of target alone."""
    try:
        return find_host_toolchain(plugin), {}
    except BackendUnavailableError as error:
        if not set(targets) - {_CUDA}:
            raise
        return find_host_toolchain(plugin, cuda=False), {_CUDA: error.reason}


def _driver() -> str:
    """Return where the driver is, without loading it; empty if there is none."""
    try:
        ctypes.CDLL(_DRIVER, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        places = (place.path for place in loader_places(_DRIVER))
        return next((path for path in places if path and Path(path).is_file()), "")
    return "loaded already"  # so it is, for one, if it is simulated: then it lies in no folder
