"""What is installed, found out without importing it, loading it or touching a device."""

from __future__ import annotations

import re
import sys

from trunnion.contract.spec import Availability
from trunnion.errors import BackendUnavailableError

__all__ = ["LEAST_TORCH", "LEAST_TVM_FFI", "installed", "probe_backend", "refuse_old_torch", "torch_problem"]

LEAST_TVM_FFI = (0, 1, 11)
"""The first release of apache-tvm-ffi that this plugin is tested with."""

LEAST_TORCH = (2, 10)
"""The first release of torch whose tensors have ``__dlpack_c_exchange_api__``: through it TVM-FFI takes them, their
device's current stream and torch's allocator."""


def probe_backend() -> Availability:
    """Say whether launchers could be built and loaded here."""
    least = _text(LEAST_TVM_FFI)
    advice = f"run: pip install 'apache-tvm-ffi>={least}'"
    found = installed("apache-tvm-ffi")
    if found is None:
        return Availability(usable=False, detail=advice)
    if _numbers(found) < LEAST_TVM_FFI:
        return Availability(usable=False, detail=f"apache-tvm-ffi {found} is installed, {advice}")
    problem = torch_problem()
    if problem:
        return Availability(usable=False, detail=problem)
    torch = installed("torch")
    tail = f"torch {torch}" if torch else "no torch here: it builds, it cannot call"
    return Availability(usable=True, detail=f"apache-tvm-ffi {found}; {tail}")


def torch_problem() -> str:
    """Return why the torch that is here cannot be used, and what to do; empty if it can, or if there is none.

    torch is not imported. If something else has imported it, that one counts.
    """
    loaded = getattr(sys.modules.get("torch"), "__version__", None)
    found = installed("torch") if loaded is None else str(loaded)
    if found is None or _numbers(found) >= LEAST_TORCH:
        return ""
    least = _text(LEAST_TORCH)
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
        raise BackendUnavailableError("tvm_ffi", "trunnion-tvm-ffi", problem)


def installed(distribution: str) -> str | None:
    """Return the version of a distribution that is installed; None if it is not."""
    from importlib import metadata  # noqa: PLC0415 - slow, and only a probe needs it

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a release: of ``"0.1.15.post2"`` 0, 1 and 15."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _text(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
