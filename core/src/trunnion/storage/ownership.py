"""Whose a file or a folder must be that is believed, and who made the links on the way to it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from trunnion.errors import UntrustedArtifactError

__all__ = ["check_links", "check_owner", "trusted_owners"]

_MOST_LINKS = 40  # as many as Linux follows


def trusted_owners() -> tuple[int, ...]:
    """Return whose files are trusted: root's and this user's."""
    return 0, os.geteuid()


def check_owner(
    status: os.stat_result, owner: int | tuple[int, ...], what: str, *, sticky: bool = False
) -> None:
    """Refuse what somebody else owns or could write to.

    Parameters
    ----------
    status
        Of a file, or of a folder.
    owner
        The user who must own it, or those of whom one must.
    what
        What errors call it.
    sticky
        Whether others may write to a folder with the sticky bit, where they can exchange nothing.

    Raises
    ------
    UntrustedArtifactError
        If it does not belong to the owner, or group or others may write.
    """
    _check_user(status, owner if isinstance(owner, tuple) else (owner,), what)
    kept = sticky and status.st_mode & stat.S_ISVTX
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not kept:
        raise UntrustedArtifactError(
            f"{what} can be written by others (mode {stat.S_IMODE(status.st_mode):03o}); run chmod go-w on it"
        )


def _check_user(status: os.stat_result, owners: tuple[int, ...], what: str) -> None:
    if status.st_uid not in owners:
        expected = " or ".join(dict.fromkeys(map(str, owners)))
        raise UntrustedArtifactError(
            f"{what} belongs to user {status.st_uid}, expected {expected}; use a place of your own"
        )


def check_links(path: Path) -> None:
    """Refuse a path if somebody else than root or this user made a link that it leads through, or could have.

    Whoever makes a link says where it leads, be it to files of this user's: in a folder with the sticky bit, too,
    where nobody can exchange a link, and anybody can add one.

    Parameters
    ----------
    path
        The absolute path of a file or a folder that is there.

    Raises
    ------
    UntrustedArtifactError
        If a link or its folder belongs to somebody else, or others may write to the folder.
    OSError
        If that cannot be known.
    """
    for link in _links(path):
        folder, owners = link.parent, trusted_owners()
        check_owner(folder.stat(), owners, f"{folder}, of a link on the way to it,", sticky=True)
        _check_user(link.lstat(), owners, f"{link}, a link on the way to it,")


def _links(path: Path) -> list[Path]:
    """Return each link on the way to a path, and on the ways that links lead; no folder above one is a link."""
    found: list[Path] = []
    here, left = Path(path.anchor), list(reversed(path.parts[1:]))
    while left:
        place = here / left.pop()
        if place.name == "..":
            here = here.parent
        elif not place.is_symlink():
            here = place
        else:
            found.append(place)
            if len(found) > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            to = place.readlink()
            here = Path(to.anchor) if to.is_absolute() else here
            left += reversed(to.parts[1:] if to.is_absolute() else to.parts)
    return found
