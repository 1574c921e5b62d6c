"""torch's headers and library, which an operator in C++ is built with: found without importing torch."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from trunnion.errors import BackendUnavailableError
from trunnion.toolchain.torch_release import installed_torch
from trunnion.version_numbers import version_numbers

__all__ = ["LEAST_STABLE_TORCH", "TorchFiles", "find_torch_files", "refuse_torch_without_operators"]

LEAST_STABLE_TORCH = (2, 11)
"""The first release of torch whose stable ABI has all that operators use, in Python and in C++."""

_LANDMARK = ("include", "torch", "csrc", "stable", "library.h")
_LIBRARY = ("lib", "libtorch_cpu.so")


@dataclass(frozen=True, slots=True)
class TorchFiles:
    """What an operator in C++ is built with."""

    folder: str
    """The folder of headers."""

    library: str
    """The library, to link with. Its soname is what an operator asks for; its path is not."""


def refuse_torch_without_operators() -> None:
    """Refuse to make operators where there is no torch, or one that is too old.

    Raises
    ------
    BackendUnavailableError
        If torch is not installed, or older than `LEAST_STABLE_TORCH`.
    """
    found, least = installed_torch(), ".".join(map(str, LEAST_STABLE_TORCH))
    if found is None or version_numbers(found) < LEAST_STABLE_TORCH:
        reason = (
            "it is not installed"
            if found is None
            else f"{found} is installed, operators need {least} or later"
        )
        raise BackendUnavailableError("torch", "", f"{reason}; run: pip install 'torch>={least}'")


def find_torch_files() -> TorchFiles:
    """Return torch's headers and library.

    Raises
    ------
    BackendUnavailableError
        If torch is not installed, or too old, or lacks them.
    """
    refuse_torch_without_operators()
    loaded = getattr(sys.modules.get("torch"), "__file__", None)
    spec = util.find_spec("torch") if loaded is None else None
    origin = loaded if spec is None else spec.origin
    home = Path(origin or "").parent
    files = home.joinpath(*_LANDMARK), home.joinpath(*_LIBRARY)
    for file in files:
        if not file.is_file():
            reason = f"it is installed without {file}; install torch from a wheel, which has its headers and libraries"
            raise BackendUnavailableError("torch", "", reason)
    return TorchFiles(str(home / "include"), str(files[1]))
