"""What all launchers share, compiled once for each toolchain and kept for this user."""

from __future__ import annotations

import functools
import hashlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.codegen.cpp.library import check_object
from trunnion.errors import DeviceRequirementError
from trunnion.storage.refusals import warn_not_kept
from trunnion.storage.stamps import stamp, unchanged, witnessed
from trunnion.storage.turns import DeadlockError
from trunnion.storage.use import mark_used
from trunnion.storage.user_caches import user_caches
from trunnion.toolchain.build_cache import forget_file, kept_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from trunnion.storage.stamps import Sighting, Stamp

__all__ = ["forget_header", "renewed_object", "runtime_header", "runtime_object"]

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
    before = _Identity.of(identity)

    def make(built: Path) -> None:
        with before.kept(identity):
            made.append(compiled(staging))
        (built / _OBJECT).write_bytes(made[0])

    try:
        kept = kept_file(_cache_folder(), before.key, _OBJECT, make, check=check_object, most=_MOST_KEPT)
        return _read(kept, stamp(str(kept)))
    # Nobody knows of which toolchain it is, or it is being made further up in this thread.
    except (_ChangedError, DeadlockError):
        return made[0] if made else compiled(staging)
    except OSError as error:  # a home that is full or cannot be written to: slower, and no reason to refuse
        warn_not_kept("what C++ launchers share is compiled anew each time, because it cannot be kept", error)
        return made[0] if made else compiled(staging)


def renewed_object(
    doubtful: bytes, identity: Callable[[], str], compiled: Callable[[Path], bytes], staging: Path
) -> bytes:
    """Return an object file that is compiled now, because nothing could be linked with the one that was there.

    Parameters
    ----------
    doubtful
        That one. If the new one is another, it is kept no longer.
    identity, compiled, staging
        As `runtime_object` takes them.

    Raises
    ------
    TrunnionError
        Whatever the compiler is refused with.
    """
    made = compiled(staging)
    if made != doubtful:
        with suppress(OSError):  # nothing is kept of who has no home
            forget_file(_cache_folder(), _Identity.of(identity).key, _OBJECT)
    return made


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
    name, before = f"{header}{_PRECOMPILED}", _Identity.of(identity, header)

    def make(built: Path) -> None:
        with before.kept(identity, header):
            compiled(built, name)

    try:
        folder = _cache_folder() / before.key
        kept_file(folder, _FOLDER, name, make)
        mark_used(folder)
    except (OSError, DeviceRequirementError, _ChangedError):  # the second: there is no room to compile it in
        return None
    return folder


def forget_header(folder: Path, header: str) -> None:
    """Keep a precompiled header no longer, because nothing could be compiled with it: the next build makes it again.

    Parameters
    ----------
    folder, header
        What `runtime_header` returned, and was given.
    """
    forget_file(folder, _FOLDER, f"{header}{_PRECOMPILED}")


@dataclass(frozen=True, slots=True)
class _Identity:
    """What a part is made from."""

    key: str
    """What it is kept under."""

    read: frozenset[Sighting]
    """The files that were read to tell."""

    @classmethod
    def of(cls, identity: Callable[[], str], what: str = "") -> _Identity:
        with witnessed() as read:
            text = f"{what} {identity()}" if what else identity()
        return cls(hashlib.sha256(text.encode()).hexdigest()[:32], frozenset(read))

    @contextmanager
    def kept(self, identity: Callable[[], str], what: str = "") -> Iterator[None]:
        """Refuse to keep what is made in the block while something that it depends on changes, though it is put back.

        Raises
        ------
        _ChangedError
            If it changes, or the compiler reads a file that was not read to tell.
        """
        with witnessed() as read:
            yield
            key = self.of(identity, what).key
        if key != self.key or not unchanged(self.read, read):
            raise _ChangedError


def _cache_folder() -> Path:
    return user_caches() / "launchers"


@functools.lru_cache(_MOST_READ)
def _read(path: Path, _stamp: Stamp | None) -> bytes:
    return path.read_bytes()
