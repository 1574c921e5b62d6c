"""What the operating system refuses: in words that say what to do, and as a warning where the work is done anyway."""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.callers import warn
from trunnion.errors import DeviceRequirementError, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = [
    "OTHER_FOLDER", "NotKeptWarning", "advice", "is_noexec", "not_kept", "of_a_folder", "refusals", "refuse_noexec",
    "said", "said_by", "warn_not_kept",
]  # fmt: skip

OTHER_FOLDER: Final = "set TMPDIR to a folder of yours from which code can be loaded"
"""What to do where code cannot be loaded from a scratch folder."""

_ADVICE: Final[Mapping[int, str]] = MappingProxyType(
    {
        errno.ENOSPC: "make room on that disk",
        errno.EDQUOT: "make room: this user's quota is used up",
        errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
        errno.EMFILE: "close files, or raise the limit on open ones (ulimit -n)",
        errno.ENFILE: "close files: this machine has no room for more open ones",
        errno.EAGAIN: "end processes, or raise the limit on their number (ulimit -u)",
        errno.ENOMEM: "end processes: this machine has no memory left",
        errno.EROFS: "name a folder that can be written to",
        errno.EACCES: "name a folder of yours",
        errno.EPERM: "name a folder of yours",
        errno.ENOENT: "make the folder again: it was removed",
        errno.EIO: "look after the disk: it does not read or write",
        errno.ETIMEDOUT: "end that process if it is stopped",
    }
)


_OF_A_FOLDER: Final = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.ENOENT,
        errno.EIO,
        errno.ENOTDIR,
    }
)
"""What another folder would not refuse."""

_TOLD: Final[Mapping[str, int]] = MappingProxyType(
    {
        "Too many open files": errno.EMFILE,
        "Too many open files in system": errno.ENFILE,
        "File too large": errno.EFBIG,
        "File size limit exceeded": errno.EFBIG,
        "Cannot allocate memory": errno.ENOMEM,
        "Resource temporarily unavailable": errno.EAGAIN,
    }
)
"""In a tool's words, what a process and those that it starts run out of, wherever they write."""

_LINE: Final = re.compile(
    rf"^(?!.*(?:#error|#warning|static assertion))\S.*(?::|\[) ?'?({'|'.join(_TOLD)})'?\]?(?:, core dumped)?\.?$",
    re.MULTILINE,
)


class NotKeptWarning(UserWarning):
    """What was built could not be kept, or what is kept could not be read: it is built, and will be built again."""


def said(error: OSError) -> str:
    """Return what the system says, with the file that it is about."""
    about = f": {shorten(os.fsdecode(error.filename))}" if isinstance(error.filename, (str, bytes)) else ""
    return f"{error.strerror or error}{about}"


def advice(error: OSError) -> str:
    """Return what to do about it."""
    return _ADVICE.get(error.errno or 0, "look after that folder")


def of_a_folder(error: OSError) -> bool:
    """Return whether another folder would help, or nobody knows what would."""
    return error.errno in _OF_A_FOLDER or error.errno not in _ADVICE


def said_by(log: str) -> OSError | None:
    """Return what the system refused a tool, as far as the limits of processes are concerned; None: nothing.

    Parameters
    ----------
    log
        What the tool printed, in English.
    """
    found = _LINE.search(log)
    return None if found is None else OSError(_TOLD[found[1]], found[1])


def not_kept(what: str, error: OSError) -> str:
    """Return what a `NotKeptWarning` says: what could not be done, why, and what to do."""
    return f"{what} ({said(error)}); {advice(error)}"


def warn_not_kept(what: str, error: OSError) -> None:
    """Warn that something is built and not kept.

    Parameters
    ----------
    what
        What could not be done.
    error
        What the system said.
    """
    warn(not_kept(what, error), NotKeptWarning)


@contextmanager
def refusals(requirement: str, hint: str = "") -> Iterator[None]:
    """Turn what the system refuses in the block into a typed error.

    Parameters
    ----------
    requirement
        What the block needs.
    hint
        What to do where another folder would help, besides what the refusal itself says.

    Raises
    ------
    DeviceRequirementError
        In the place of any `OSError`.
    """
    try:
        yield
    except OSError as error:
        words = "; ".join(filter(None, (advice(error), hint if of_a_folder(error) else "")))
        raise DeviceRequirementError(requirement, said(error), words) from error


def is_noexec(folder: Path) -> bool:
    """Whether no code can be loaded from a folder: its file system is mounted with ``noexec``.

    Parameters
    ----------
    folder
        The folder.
    """
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)
    except OSError:
        return False


def refuse_noexec(folder: Path, advice_: str) -> None:
    """Refuse a folder from which no code can be loaded; called when loading failed.

    Parameters
    ----------
    folder
        Where the library lies.
    advice_
        What to do.

    Raises
    ------
    DeviceRequirementError
        If its file system is mounted with ``noexec``.
    """
    if is_noexec(folder):
        got = f"{shorten(str(folder))}, which is mounted noexec"
        raise DeviceRequirementError("a folder that code can be loaded from", got, advice_)
