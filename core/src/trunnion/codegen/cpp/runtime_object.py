"""What all launchers share, compiled once for each toolchain and kept for this user."""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING

from trunnion.toolchain.kept import kept_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["runtime_object"]

_NAME = "runtime.o"
_MOST_KEPT = 8


def runtime_object(identity: str, compiled: Callable[[Path], bytes], staging: Path) -> bytes:
    """Return an object file, compiling it if neither this process nor this user has it yet.

    Parameters
    ----------
    identity
        Everything that the object depends on.
    compiled
        Compiles it in an empty folder.
    staging
        A folder to compile it in where none can be kept.

    Raises
    ------
    TrunnionError
        Whatever the compiler is refused with.
    UntrustedArtifactError
        If others could have written what was kept.
    """
    key = hashlib.sha256(identity.encode()).hexdigest()[:32]
    try:
        path = kept_file(_cache_folder(), key, _NAME, functools.partial(_write, compiled))
        return _read(path)
    except OSError:  # a home that cannot be written to: slower, and no reason to refuse
        return compiled(staging)


def _write(compiled: Callable[[Path], bytes], folder: Path) -> None:
    compiled(folder)  # which leaves the file there, under the name that is kept


def _cache_folder() -> Path:
    import platformdirs  # noqa: PLC0415 - only whoever builds launchers pays for it

    return platformdirs.user_cache_path("trunnion") / "launchers"


@functools.lru_cache(_MOST_KEPT)
def _read(path: Path) -> bytes:
    return path.read_bytes()
