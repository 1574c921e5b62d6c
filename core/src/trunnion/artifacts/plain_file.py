"""Plain files: reading one of which nothing is known, never more than so much, and if asked only our own; writing one.

What is written is what can be read again: nobody else may write to it, whatever the umask.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trunnion.errors import ArtifactError, CorruptArtifactError, shorten
from trunnion.storage.descriptors import opened, write_through
from trunnion.storage.ownership import check_links, check_owner, trusted_owners
from trunnion.storage.refusals import advice, said
from trunnion.storage.scratch import temporary_beside

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from pathlib import Path

__all__ = ["opened_plain_file", "read_plain_file", "unreadable", "write_plain_file"]

_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK  # a pipe there must not hang the reader
_FILE_MODE = 0o644  # whatever the umask: who reads it refuses what others can write


@contextmanager
def opened_plain_file(file: Path, *, trusting: bool) -> Iterator[BufferedReader]:
    """Open a file, or what it is a link to, for reading.

    Parameters
    ----------
    file
        Its absolute path.
    trusting
        Whether it does not matter who could have written it, because something else vouches for its bytes.

    Raises
    ------
    CorruptArtifactError
        If it is not a plain file.
    UntrustedArtifactError
        If somebody else than root or this user could have written it, and that matters.
    OSError
        If it cannot be opened.
    """
    with opened(file, _READ_FLAGS) as descriptor:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CorruptArtifactError(shorten(file.name), "is not a plain file")
        if not trusting:
            check_owner(status, trusted_owners(), str(file))
            check_links(file)
            folder = file.resolve().parent
            check_owner(folder.stat(), trusted_owners(), str(folder), sticky=True)
        with os.fdopen(descriptor, "rb", closefd=False) as data:
            yield data


def read_plain_file(file: Path, most: int, *, trusting: bool) -> bytes:
    """Return a file's bytes, or those of what it is a link to.

    Parameters
    ----------
    file
        Its absolute path.
    most
        No such file is longer, in bytes; nothing of a longer one is read.
    trusting
        Whether it does not matter who could have written it, because something else vouches for its bytes.

    Raises
    ------
    CorruptArtifactError
        If it is not a plain file, or too large.
    UntrustedArtifactError
        If somebody else than root or this user could have written it, and that matters.
    OSError
        If it cannot be read.
    """
    with opened_plain_file(file, trusting=trusting) as data:
        nbytes = os.fstat(data.fileno()).st_size
        if nbytes > most:
            raise CorruptArtifactError(shorten(file.name), f"has {nbytes} bytes, expected at most {most}")
        return data.read(most + 1)


def write_plain_file(file: Path, data: bytes, most: int) -> None:
    """Write a file, whole or not at all, in the place of whatever file is there; its bytes reach the disk first.

    Parameters
    ----------
    file
        Its absolute path.
    data
        Its bytes.
    most
        No such file is longer, in bytes: a longer one would not be read again.

    Raises
    ------
    ArtifactError
        If it cannot be written, or there are more bytes.
    """
    if len(data) > most:
        raise ArtifactError(
            f"cannot write {shorten(str(file))}: got {len(data)} bytes, expected at most {most}: it could not be read "
            "again; divide what it is about"
        )
    try:
        with temporary_beside(file) as folder:
            (folder / "finished").write_bytes(data)
            (folder / "finished").chmod(_FILE_MODE)
            write_through(folder / "finished")
            os.replace(folder / "finished", file)  # noqa: PTH105 - of a file, whatever is there
            write_through(file.parent.resolve())
    except OSError as error:
        raise ArtifactError(f"cannot write {shorten(str(file))}: {said(error)}; {advice(error)}") from error


def unreadable(file: Path, error: OSError, *, absent: str = "name a file that is") -> ArtifactError:
    """Return the error of a file that the system does not let be read; ``absent`` says what to do where none is."""
    if error.errno == errno.ENOENT:
        return ArtifactError(f"cannot open {shorten(str(file))}: nothing is there; {absent}")
    return ArtifactError(f"cannot open {shorten(str(file))}: {said(error)}; {advice(error)}")
