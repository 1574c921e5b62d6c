"""What is installed, found out without importing it, loading it or touching a device."""

from __future__ import annotations

from trunnion.contract.spec import Availability
from trunnion.toolchain.host_compiler import INSTALL_COMPILER, try_compilers
from trunnion.toolchain.launcher_availability import probe_launchers

__all__ = ["DISTRIBUTION", "TARGETS", "probe_backend", "probe_compiler"]

TARGETS = ("cuda", "cpu")
"""The kinds of target that the backend launches on."""

DISTRIBUTION = "trunnion-tvm-ffi"
"""What brings this package."""


def probe_backend() -> Availability:
    """Say whether launchers can be built and loaded here, and whether there are torch and a driver to run them with."""
    return probe_launchers("tvm_ffi", DISTRIBUTION, TARGETS)


def probe_compiler() -> Availability:
    """Say whether kernels for the CPU could be compiled here."""
    trials = list(try_compilers())
    found = next((trial.compiler for trial in trials if trial.compiler is not None), None)
    if found is not None:
        return Availability(usable=True, detail=f"{found.name} for {found.machine}")
    return Availability(usable=False, detail=f"no C++ compiler can be used; {INSTALL_COMPILER}")
