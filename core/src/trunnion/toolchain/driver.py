"""The CUDA driver of this machine: its version is asked, nothing is initialised."""

from __future__ import annotations

import ctypes
import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path

from trunnion.contract.diagnosis import Component, Finding, Severity
from trunnion.toolchain.inquiry import inquire
from trunnion.toolchain.search import Place, judge, loader_places, path_text

__all__ = ["InstalledDriver", "installed_driver"]

_SONAME = "libcuda.so.1"
_KERNEL_MODULE = Path("/proc/driver/nvidia/version")
_WINDOWS_DEVICE = Path("/dev/dxg")  # what stands for a GPU in a Linux that Windows runs
_RELEASE = re.compile(r"\s(\d{3,}\.[0-9.]+)\s")
_SECONDS = 10.0
_ASK = f"""
import ctypes, json
driver = ctypes.CDLL({_SONAME!r})
version = ctypes.c_int()
status = driver.cuDriverGetVersion(ctypes.byref(version))
with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
    paths = [line.split(maxsplit=5)[5].strip() for line in maps if "/libcuda.so" in line]
print(json.dumps({{"status": status, "version": version.value, "path": paths[0] if paths else ""}}))
"""


@dataclass(frozen=True, slots=True)
class InstalledDriver:
    """What was found out about the driver."""

    component: Component
    """The driver, and where it was looked for."""

    cuda: tuple[int, int] | None
    """The newest CUDA version that it understands (``cuDriverGetVersion``); None if there is no working driver."""

    findings: tuple[Finding, ...]
    """What is wrong with it."""

    simulated: bool = False
    """Whether it is the simulated driver, which runs in this process."""


def installed_driver() -> InstalledDriver:
    """Return the driver that a program would find, with its version; ``cuInit`` is not called.

    The driver is loaded in a process of its own, once, unless this process has loaded it already. One that does not
    answer within 10 s cannot be used.
    """
    here = _loaded_here()
    answer = here or _answer(os.environ.get("LD_LIBRARY_PATH", ""))
    module = _kernel_module()
    path = str(answer.get("path", ""))
    places = [*loader_places(_SONAME)]
    if here:
        places.insert(0, Place("loaded in this process", path))
    number = answer.get("version") if answer.get("status") == 0 else None
    cuda = (number // 1000, number % 1000 // 10) if isinstance(number, int) and number > 0 else None
    said = ["simulated"] if here and here["simulated"] else []
    said += [f"kernel module {module}" if module else "no kernel module is loaded"]
    component = Component(
        name=_SONAME,
        kind="driver",
        version="" if cuda is None else f"CUDA {cuda[0]}.{cuda[1]}",
        chosen=path_text(path),
        detail="; ".join(said),
        candidates=judge(places, path),
    )
    simulated = bool(here) and bool(here["simulated"])
    findings = () if simulated else _findings(answer, cuda, module)
    return InstalledDriver(component, cuda, findings, simulated)


@functools.cache
def _answer(_search_path: str) -> dict[str, object]:
    """Return what the driver says of itself, asked once: several plugins want to know, and it may not answer."""
    return inquire(_ASK, seconds=_SECONDS)


def _findings(answer: dict[str, object], cuda: tuple[int, int] | None, module: str) -> tuple[Finding, ...]:
    if cuda is not None:
        if module:
            return ()
        summary = "the driver's library is here, but no NVIDIA kernel module is loaded: there is no device"
        advice = "load it, or start the container with its devices (docker run --gpus all)"
        return (Finding(Severity.WARNING, "no-kernel-module", summary, advice),)
    failure = str(answer.get("failure") or f"cuDriverGetVersion failed with status {answer.get('status')}")
    if "cannot open shared object file" in failure and not module:
        summary = (
            "there is no NVIDIA driver: programs for the CPU run here, where a backend launches on it; those for CUDA "
            "can be built, and run on the simulated driver alone"
        )
        advice = "run those with: trunnion run --simulate (it takes a C compiler and torch)"
        return (Finding(Severity.INFO, "no-driver", summary, advice),)
    advice = (
        f"install the driver again, or mend the search path; the kernel module is {module or 'not loaded'}"
    )
    return (Finding(Severity.ERROR, "broken-driver", f"{_SONAME} cannot be used: {failure}", advice),)


def _loaded_here() -> dict[str, object]:
    """Return version and path of the driver that this process has loaded; empty if it has none."""
    try:
        driver = ctypes.CDLL(_SONAME, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return {}
    version = ctypes.c_int()
    status = driver.cuDriverGetVersion(ctypes.byref(version))
    with Path("/proc/self/maps").open(encoding="utf-8", errors="surrogateescape") as maps:
        paths = [line.split(maxsplit=5)[5].strip() for line in maps if "/libcuda.so" in line]
    path = paths[0] if paths else ""
    return {
        "status": status,
        "version": version.value,
        "path": path,
        "simulated": hasattr(driver, "trunnion_sim_thread"),
    }


def _kernel_module() -> str:
    """Return the release of the loaded kernel module; empty if none is loaded."""
    try:
        said = _KERNEL_MODULE.read_text("utf-8", "replace")
    except OSError:
        return "of the Windows host" if _WINDOWS_DEVICE.exists() else ""
    found = _RELEASE.search(said)
    return found[1] if found else "of an unknown release"
