"""The installed release of torch, found out without importing it: launchers in C++ take tensors of newer ones only."""

from __future__ import annotations

import sys

from trunnion.errors import BackendUnavailableError
from trunnion.version_numbers import version_numbers

__all__ = ["LEAST_TORCH", "installed_torch", "refuse_old_torch", "torch_problem"]

LEAST_TORCH = (2, 10)
"""The first release of torch whose tensors have ``__dlpack_c_exchange_api__``: through it TVM-FFI takes them, their
device's current stream and torch's allocator."""


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


def torch_problem() -> str:
    """Return why the torch that is here cannot be used, and what to do; empty if it can, or if there is none."""
    found = installed_torch()
    if found is None or version_numbers(found) >= LEAST_TORCH:
        return ""
    least = ".".join(map(str, LEAST_TORCH))
    return (
        f"torch {found} is installed, whose tensors TVM-FFI cannot take; it needs {least} or later, "
        f"run: pip install 'torch>={least}'"
    )


def refuse_old_torch(plugin: str, distribution: str) -> None:
    """Refuse to load anything where torch is too old to call it.

    Parameters
    ----------
    plugin
        The backend that would load it; named in the error, as is
    distribution
        what brings that backend.

    Raises
    ------
    BackendUnavailableError
        If torch is here and older than `LEAST_TORCH`.
    """
    problem = torch_problem()
    if problem:
        raise BackendUnavailableError(plugin, distribution, problem)
