"""What is installed, found out without importing it, loading it or touching a device."""

from __future__ import annotations

import os
from pathlib import Path

from trunnion.contract.spec import Availability
from trunnion.distributions import version_of
from trunnion.toolchain.launcher_availability import no_driver
from trunnion.toolchain.search import listed_by_loader, path_text
from trunnion_nvrtc.installation import nvrtc_in_wheels

__all__ = ["find_library", "is_loaded", "probe_backend", "probe_compiler"]

_MAJOR = "13"
"""The major version of CUDA that this plugin is written for; bindings and NVRTC must both have it."""


def probe_backend() -> Availability:
    """Say whether programs could be built here, and whether there is a driver to launch them."""
    bindings = _bindings()
    if not bindings.usable:
        return bindings
    driver = "libcuda.so.1"
    where = "loaded already" if is_loaded(driver) else find_library(driver)
    tail = f"driver: {path_text(where)}" if where else no_driver()
    return Availability(usable=True, detail=f"{bindings.detail}; {tail}")


def probe_compiler() -> Availability:
    """Say whether CUDA C++ could be compiled here."""
    bindings = _bindings()
    if not bindings.usable:
        return bindings
    wheel = _wheel()
    if wheel:
        return Availability(usable=True, detail=f"{bindings.detail}; nvidia-cuda-nvrtc {wheel}")
    place = find_library(f"libnvrtc.so.{_MAJOR}")
    if place:
        return Availability(usable=True, detail=f"{bindings.detail}; {path_text(place)}")
    missing = f"libnvrtc.so.{_MAJOR} is not found; run: pip install 'nvidia-cuda-nvrtc=={_MAJOR}.*'"
    return Availability(usable=False, detail=missing)


def _bindings() -> Availability:
    found = version_of("cuda-bindings")
    if found is None:
        return Availability(usable=False, detail=f"run: pip install 'cuda-bindings=={_MAJOR}.*'")
    if found.partition(".")[0] != _MAJOR:
        wanted = f"cuda-bindings {found} is installed, run: pip install 'cuda-bindings=={_MAJOR}.*'"
        return Availability(usable=False, detail=wanted)
    return Availability(usable=True, detail=f"cuda-bindings {found}")


def _wheel() -> str | None:
    """Return the version of NVRTC's wheel if its library is really there."""
    there = any(place.endswith(f".{_MAJOR}") and Path(place).is_file() for place in nvrtc_in_wheels())
    return version_of("nvidia-cuda-nvrtc") if there else None


def find_library(soname: str) -> str | None:
    """Return where the loader would find a library, without loading it; None if nowhere."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    folders += [f"{os.environ[name]}/lib" for name in ("CONDA_PREFIX",) if os.environ.get(name)]
    folders += [f"{os.environ[name]}/lib64" for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    for folder in folders:
        if folder and Path(folder, soname).is_file():
            return str(Path(folder, soname))
    return next(iter(listed_by_loader(soname)), None)


def is_loaded(soname: str) -> bool:
    """Whether this process has a library open: the simulated driver is found in no folder."""
    import ctypes  # noqa: PLC0415 - only a probe needs it

    try:
        ctypes.CDLL(soname, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True
