"""What the operating system refuses: in words that say what to do, and as a warning where the work is done anyway."""

from __future__ import annotations

import errno
import os
import warnings
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.errors import DeviceRequirementError, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["NotKeptWarning", "advice", "refusals", "refuse_noexec", "said", "warn_not_kept"]

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


class NotKeptWarning(UserWarning):
    """What was built could not be kept, or what is kept could not be read: it is built, and will be built again."""


def said(error: OSError) -> str:
    """Return what the system says, with the file that it is about."""
    about = f": {shorten(os.fsdecode(error.filename))}" if isinstance(error.filename, (str, bytes)) else ""
    return f"{error.strerror or error}{about}"


def advice(error: OSError) -> str:
    """Return what to do about it."""
    return _ADVICE.get(error.errno or 0, "look after that folder")


def warn_not_kept(what: str, error: OSError, stacklevel: int = 2) -> None:
    """Warn that something is built and not kept.

    Parameters
    ----------
    what
        What could not be done.
    error
        What the system said.
    stacklevel
        Whose line the warning names, as `warnings.warn` counts from the caller of this function.
    """
    warnings.warn(f"{what} ({said(error)}); {advice(error)}", NotKeptWarning, stacklevel=stacklevel + 1)


@contextmanager
def refusals(requirement: str, hint: str = "") -> Iterator[None]:
    """Turn what the system refuses in the block into a typed error.

    Parameters
    ----------
    requirement
        What the block needs.
    hint
        What to do, besides what the refusal itself says.

    Raises
    ------
    DeviceRequirementError
        In the place of any `OSError`.
    """
    try:
        yield
    except OSError as error:
        words = "; ".join(filter(None, (advice(error), hint)))
        raise DeviceRequirementError(requirement, said(error), words) from error


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
    try:
        flags = os.statvfs(folder).f_flag
    except OSError:
        return
    if flags & os.ST_NOEXEC:
        got = f"{shorten(str(folder))}, which is mounted noexec"
        raise DeviceRequirementError("a folder that code can be loaded from", got, advice_)
