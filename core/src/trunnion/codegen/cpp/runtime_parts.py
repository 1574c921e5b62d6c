"""What all launchers share, compiled once for each toolchain and kept for this user."""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING

from trunnion.errors import DeviceRequirementError
from trunnion.toolchain.kept import kept_file, mark_used

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["runtime_header", "runtime_object"]

_OBJECT = "runtime.o"
_FOLDER = "trunnion"
_PRECOMPILED = ".gch"
_MOST_READ = 8
_MOST_KEPT = 16  # objects, and folders of headers: both for CUDA and the CPU, for each version and toolchain


def runtime_object(identity: str, compiled: Callable[[Path], bytes], staging: Path) -> bytes:
    """Return an object file, compiling it if neither this process nor this user has it yet.

    Parameters
    ----------
    identity
        Everything that the object depends on.
    compiled
        Compiles it in the given folder.
    staging
        The folder to compile it in. It is not one of the cache, so that no error is laid to a cache that is full.

    Raises
    ------
    TrunnionError
        Whatever the compiler is refused with.
    UntrustedArtifactError
        If others could have written what was kept.
    """
    made: list[bytes] = []

    def make(built: Path) -> None:
        made.append(compiled(staging))
        (built / _OBJECT).write_bytes(made[0])

    try:
        return _read(kept_file(_cache_folder(), _key(identity), _OBJECT, make, most=_MOST_KEPT))
    except OSError:  # a home that is full or cannot be written to: slower, and no reason to refuse
        return made[0] if made else compiled(staging)


def runtime_header(header: str, identity: str, compiled: Callable[[Path, str], object]) -> Path | None:
    """Return the folder to search first for headers: one is precompiled there, which spares half of a launcher's time.

    GCC takes a file ``NAME.gch`` in the place of ``NAME`` if it was made by the same compiler with the same options,
    and else goes on to the header itself: nothing depends on this. See "Using Precompiled Headers" in its manual.

    Parameters
    ----------
    header
        The header's plain name, in the folder ``trunnion``.
    identity
        Everything that its compiled form depends on.
    compiled
        Compiles it in the given folder, under the given name.

    Returns
    -------
    pathlib.Path or None
        None where nothing can be kept.

    Raises
    ------
    TrunnionError
        Whatever the compiler is refused with.
    UntrustedArtifactError
        If others could have written what was kept.
    """
    name = f"{header}{_PRECOMPILED}"
    try:
        folder = _cache_folder() / _key(f"{header} {identity}")
        kept_file(folder, _FOLDER, name, lambda built: _discard(compiled(built, name)))
        mark_used(folder)
    except (OSError, DeviceRequirementError):  # the latter: there is no room to compile it in
        return None
    return folder


def _discard(_value: object) -> None:
    """Take what is of no use here: the file lies where it is wanted."""


def _key(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def _cache_folder() -> Path:
    import platformdirs  # noqa: PLC0415 - only whoever builds launchers pays for it

    return platformdirs.user_cache_path("trunnion") / "launchers"


@functools.lru_cache(_MOST_READ)
def _read(path: Path) -> bytes:
    return path.read_bytes()
