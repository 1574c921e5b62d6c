"""Files that are built once for this user and kept: published whole, and read only if nobody else could write them."""

from __future__ import annotations

import functools
import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from trunnion.errors import CorruptArtifactError
from trunnion.storage.descriptors import write_through
from trunnion.storage.ownership import check_links, check_owner
from trunnion.storage.turns import Rank
from trunnion.storage.use import mark_used
from trunnion.storage.workshop import Workshop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trunnion.storage.turns import FileTurn

__all__ = ["forget_file", "kept_file"]

_DIGEST = "sha256"
_MOST_KNOWN = 64


def _anything(_data: bytes) -> None:
    """Find nothing wrong with it."""


def kept_file(
    cache: Path,
    key: str,
    name: str,
    make: Callable[[Path], None],
    *,
    check: Callable[[bytes], None] = _anything,
    most: int | None = None,
) -> Path:
    """Return the path of a file that is kept, after making it if the cache lacks it.

    Parameters
    ----------
    cache
        The folder that holds one folder for each key.
    key
        What identifies everything that the file depends on; a plain name, and neither ``locks`` nor ``staging``.
    name
        The file's name.
    make
        Writes the file of that name into the folder that it is given, which is its own.
    check
        Raises a `CorruptArtifactError` if a file of these bytes can be of no use: a compiler may report success and
        have written half of it. Such a file is not kept, and one that was kept is made again. It is asked once in a
        process for each file; hand over the same function each time.
    most
        How many keys may be left when the file was made, this one included: those that were used longest ago are
        removed. None: any number.

    Raises
    ------
    OSError
        If the cache cannot be used, or somebody else has built this key for longer than `WAIT_SECONDS`; a
        `DeadlockError` if whoever builds it cannot be waited for.
    CorruptArtifactError
        If what was made is of no use.
    UntrustedArtifactError
        If others could have written the file, or made a link on the way to the cache.
    """
    check_links(cache.absolute())
    target = cache / key / name
    if not _is_whole(target, check):
        workshop = Workshop(cache, Rank.PART, name)
        workshop.prepare()
        with workshop.turn(key) as mine:
            if not _is_whole(target, check):  # else another process was faster
                workshop.sweep(key)
                with workshop.folder(key) as staging:
                    _build(target, make, check, staging, mine)
                    _remove_oldest(cache, key, most, staging)
    for path in (target, target.parent, cache):
        check_owner(path.stat(), os.geteuid(), str(path))
    mark_used(target.parent)
    return target


def forget_file(cache: Path, key: str, name: str) -> None:
    """Keep a file no longer that turned out to be of no use, where it can be removed: it is made again.

    Parameters
    ----------
    cache, key, name
        As `kept_file` takes them.
    """
    workshop = Workshop(cache, Rank.PART, name)
    with suppress(OSError):
        workshop.prepare()
        with workshop.turn(key), workshop.folder(key) as staging:
            (cache / key).rename(staging / "broken")


def _build(
    target: Path, make: Callable[[Path], None], check: Callable[[bytes], None], staging: Path, mine: FileTurn
) -> None:
    """Make the file in a folder of its own and rename that, whole, over whatever is there."""
    built = staging / "image"
    built.mkdir(mode=0o700)
    made = built / target.name
    make(built)
    mine.confirm()
    data = made.read_bytes()
    check(data)
    (built / _DIGEST).write_text(hashlib.sha256(data).hexdigest())
    for path in (made, built / _DIGEST):
        path.chmod(0o600)  # a tool makes files as the umask says, which may let a group write
        write_through(path)
    write_through(built)
    if target.parent.is_symlink() or target.parent.exists():
        target.parent.rename(staging / "broken")
    built.rename(target.parent)
    write_through(target.parent.parent)


def _remove_oldest(cache: Path, key: str, most: int | None, staging: Path) -> None:
    """Remove the keys that were used longest ago, each at once; others may do so at this moment."""
    if most is None:
        return
    used: list[tuple[int, Path]] = []
    for one in cache.iterdir():
        if one.name not in {key, *Workshop.names} and one.is_dir() and not one.is_symlink():
            with suppress(FileNotFoundError):
                used.append((one.stat().st_mtime_ns, one))
    for _, one in sorted(used, reverse=True)[most - 1 :]:
        with suppress(FileNotFoundError):
            one.rename(staging / one.name)


def _is_whole(target: Path, check: Callable[[bytes], None]) -> bool:
    """Whether the file is there, as it was when it was made: a machine may have stopped while it was written."""
    try:
        details = target.stat()
        stamp = (details.st_ino, details.st_size, details.st_ctime_ns)
        return _digest(target, check, stamp) == target.with_name(_DIGEST).read_text("ascii", "replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False


@functools.lru_cache(_MOST_KNOWN)
def _digest(target: Path, check: Callable[[bytes], None], _stamp: tuple[int, ...]) -> str:
    """Return the digest of a file, empty if it is of no use; once in a process, as long as nobody writes to it."""
    data = target.read_bytes()
    try:
        check(data)
    except CorruptArtifactError:
        return ""
    return hashlib.sha256(data).hexdigest()
