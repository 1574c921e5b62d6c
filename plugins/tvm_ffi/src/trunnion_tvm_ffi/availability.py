"""What is installed, found out without importing it, loading it or touching a device."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path

from trunnion.contract.spec import Availability
from trunnion.errors import BackendUnavailableError
from trunnion.toolchain.host import find_host_toolchain
from trunnion.toolchain.host_compiler import INSTALL_COMPILER, try_compilers
from trunnion.toolchain.search import loader_places

__all__ = [
    "LEAST_TORCH",
    "installed_torch",
    "probe_backend",
    "probe_compiler",
    "refuse_old_torch",
    "torch_problem",
]

LEAST_TORCH = (2, 10)
"""The first release of torch whose tensors have ``__dlpack_c_exchange_api__``: through it TVM-FFI takes them, their
device's current stream and torch's allocator."""

_NAME, _DISTRIBUTION = "tvm_ffi", "trunnion-tvm-ffi"
_DRIVER = "libcuda.so.1"


def probe_backend() -> Availability:
    """Say whether launchers can be built and loaded here, and whether there are torch and a driver to run them with.

    A compiler is asked for its version, which takes some milliseconds the first time.
    """
    try:
        toolchain = find_host_toolchain(_NAME)
        refuse_old_torch()
    except BackendUnavailableError as error:
        return Availability(usable=False, detail=error.reason)
    torch, driver = installed_torch(), _driver()
    found = [
        f"apache-tvm-ffi {toolchain.ffi.distribution}",
        *(f"{name} {version}" for name, version in toolchain.versions.items() if name == "cuda.h"),
        toolchain.compiler.name,
        f"torch {torch}" if torch else "no torch here: it builds, it cannot call",
        f"driver: {driver}" if driver else "no NVIDIA driver here: it builds, it cannot launch",
    ]
    return Availability(usable=True, detail="; ".join(found))


def installed_torch() -> str | None:
    """Return the version of torch; None if there is none. If something else has imported it, that one counts."""
    loaded = getattr(sys.modules.get("torch"), "__version__", None)
    if loaded is not None:
        return str(loaded)
    from importlib import metadata  # noqa: PLC0415 - slow, and only a probe needs it

    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def probe_compiler() -> Availability:
    """Say whether kernels for the CPU could be compiled here."""
    trials = list(try_compilers())
    found = next((trial.compiler for trial in trials if trial.compiler is not None), None)
    if found is not None:
        return Availability(usable=True, detail=f"{found.name} for {found.machine}")
    return Availability(usable=False, detail=f"no C++ compiler can be used; {INSTALL_COMPILER}")


def torch_problem() -> str:
    """Return why the torch that is here cannot be used, and what to do; empty if it can, or if there is none."""
    found = installed_torch()
    if found is None or _numbers(found) >= LEAST_TORCH:
        return ""
    least = ".".join(map(str, LEAST_TORCH))
    return (
        f"torch {found} is installed, whose tensors TVM-FFI cannot take; it needs {least} or later, "
        f"run: pip install 'torch>={least}'"
    )


def refuse_old_torch() -> None:
    """Refuse to load anything where torch is too old to call it.

    Raises
    ------
    BackendUnavailableError
        If torch is here and older than `LEAST_TORCH`.
    """
    problem = torch_problem()
    if problem:
        raise BackendUnavailableError(_NAME, _DISTRIBUTION, problem)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a release: of ``"2.10.0+cpu"`` 2, 10 and 0."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _driver() -> str:
    """Return where the driver is, without loading it; empty if there is none."""
    try:
        ctypes.CDLL(_DRIVER, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        places = (place.path for place in loader_places(_DRIVER))
        return next((path for path in places if path and Path(path).is_file()), "")
    return "loaded already"  # so it is, for one, if it is simulated: then it lies in no folder
