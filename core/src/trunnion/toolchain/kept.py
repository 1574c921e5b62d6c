"""Files that are built once for this user and kept: published whole, and read only if nobody else could write them."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.errors import UntrustedArtifactError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["kept_file", "mark_used"]

_DIGEST = "sha256"
_STAGING = "building-"
_MOST_KNOWN = 64


def kept_file(
    cache: Path, key: str, name: str, make: Callable[[Path], None], *, most: int | None = None
) -> Path:
    """Return the path of a file that is kept, after making it if the cache lacks it.

    Parameters
    ----------
    cache
        The folder that holds one folder for each key.
    key
        What identifies everything that the file depends on; a plain name.
    name
        The file's name.
    make
        Writes the file of that name into the folder that it is given, which is its own.
    most
        How many keys may be left when the file was made, this one included: those that were used longest ago are
        removed. None: any number.

    Raises
    ------
    OSError
        If the cache cannot be used.
    UntrustedArtifactError
        If others could have written the file.
    """
    target = cache / key / name
    if not _is_whole(target):
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(cache):
            if not _is_whole(target):  # else another process was faster
                _build(target, make)
                _remove_oldest(cache, key, most)
    for path in (target, target.parent, cache):
        _check_owner(path)
    mark_used(target.parent)
    return target


def mark_used(folder: Path) -> None:
    """Note that what a key keeps was used now, where that can be noted."""
    with suppress(OSError):
        os.utime(folder)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which ends with the process."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _build(target: Path, make: Callable[[Path], None]) -> None:
    """Make the file in a folder of its own and rename that, whole, over whatever is there."""
    cache = target.parent.parent
    for left in cache.glob(f"{_STAGING}*"):
        shutil.rmtree(
            left, ignore_errors=True
        )  # of a process that died: nobody else builds while the lock is held
    with tempfile.TemporaryDirectory(dir=cache, prefix=_STAGING) as staging:
        built = Path(staging) / "image"
        built.mkdir(mode=0o700)
        made = built / target.name
        make(built)
        (built / _DIGEST).write_text(hashlib.sha256(made.read_bytes()).hexdigest())
        for path in (made, built / _DIGEST):
            path.chmod(0o600)  # a tool makes files as the umask says, which may let a group write
            _write_through(path)
        _write_through(built)
        if target.parent.is_symlink() or target.parent.exists():
            target.parent.rename(Path(staging) / "broken")
        built.rename(target.parent)
    _write_through(cache)


def _remove_oldest(cache: Path, key: str, most: int | None) -> None:
    """Remove the keys that were used longest ago, each at once; called with the folder's lock held."""
    if most is None:
        return
    others = [
        one
        for one in cache.iterdir()
        if one.name != key and not one.name.startswith(_STAGING) and one.is_dir() and not one.is_symlink()
    ]
    others.sort(key=lambda one: one.stat().st_mtime_ns, reverse=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=_STAGING, ignore_cleanup_errors=True) as staging:
        for one in others[most - 1 :]:
            one.rename(Path(staging) / one.name)


def _is_whole(target: Path) -> bool:
    """Whether the file is there, as it was when it was made: a machine may have stopped while it was written."""
    try:
        details = target.stat()
        stamp = (details.st_ino, details.st_size, details.st_ctime_ns)
        return _digest(target, stamp) == target.with_name(_DIGEST).read_text("ascii", "replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False


@functools.lru_cache(_MOST_KNOWN)
def _digest(target: Path, _stamp: tuple[int, ...]) -> str:
    """Return the digest of a file; once in a process, as long as nobody writes to it."""
    return hashlib.sha256(target.read_bytes()).hexdigest()


def _write_through(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_owner(path: Path) -> None:
    details = path.stat()
    if details.st_uid != os.getuid() or details.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UntrustedArtifactError(
            f"{path} is owned or writable by others, and loading it runs its code; remove it and start again"
        )
