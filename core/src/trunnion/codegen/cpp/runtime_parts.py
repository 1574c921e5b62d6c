"""What all launchers share, compiled once for each toolchain and kept for this user."""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING

from trunnion.codegen.cpp.library import check_object
from trunnion.errors import DeviceRequirementError
from trunnion.storage.refusals import warn_not_kept
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


class _ChangedError(Exception):
    """What a part is made from changed while it was made: it is of no known identity, and not kept."""


def runtime_object(identity: Callable[[], str], compiled: Callable[[Path], bytes], staging: Path) -> bytes:
    """Return an object file, compiling it if neither this process nor this user has it yet.

    Parameters
    ----------
    identity
        Returns everything that the object depends on, as it is now.
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
    before = identity()

    def make(built: Path) -> None:
        made.append(compiled(staging))
        _check_same(before, identity)
        (built / _OBJECT).write_bytes(made[0])

    try:
        kept = kept_file(_cache_folder(), _key(before), _OBJECT, make, check=check_object, most=_MOST_KEPT)
        return _read(kept)
    except _ChangedError:  # nobody knows of which toolchain it is
        return made[0] if made else compiled(staging)
    except OSError as error:  # a home that is full or cannot be written to: slower, and no reason to refuse
        warn_not_kept("what C++ launchers share is compiled anew each time, because it cannot be kept", error)
        return made[0] if made else compiled(staging)


def runtime_header(
    header: str, identity: Callable[[], str], compiled: Callable[[Path, str], object]
) -> Path | None:
    """Return the folder to search first for headers: one is precompiled there, which spares half of a launcher's time.

    GCC takes a file ``NAME.gch`` in the place of ``NAME`` if it was made by the same compiler with the same options,
    and else goes on to the header itself: nothing depends on this. See "Using Precompiled Headers" in its manual.

    Parameters
    ----------
    header
        The header's plain name, in the folder ``trunnion``.
    identity
        Returns everything that its compiled form depends on, as it is now.
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
    name, before = f"{header}{_PRECOMPILED}", identity()

    def make(built: Path) -> None:
        compiled(built, name)
        _check_same(before, identity)

    try:
        folder = _cache_folder() / _key(f"{header} {before}")
        kept_file(folder, _FOLDER, name, make)
        mark_used(folder)
    except (OSError, DeviceRequirementError, _ChangedError):  # the second: there is no room to compile it in
        return None
    return folder


def _check_same(before: str, identity: Callable[[], str]) -> None:
    """Refuse to keep what was made while something that it depends on changed."""
    if identity() != before:
        raise _ChangedError


def _key(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def _cache_folder() -> Path:
    import platformdirs  # noqa: PLC0415 - only whoever builds launchers pays for it

    return platformdirs.user_cache_path("trunnion") / "launchers"


@functools.lru_cache(_MOST_READ)
def _read(path: Path) -> bytes:
    return path.read_bytes()
