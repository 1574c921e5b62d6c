"""The parts of a bundle: ZIP archives of artifacts, stored as they are, so that equal builds have equal bytes."""

from __future__ import annotations

import os
import stat
import zipfile
from typing import IO, TYPE_CHECKING, Final

from trunnion.artifacts.artifact import Artifact, check_owner
from trunnion.artifacts.manifest import MANIFEST_NAME, MAX_MANIFEST_BYTES, Manifest
from trunnion.errors import CorruptArtifactError
from trunnion.storage.descriptors import opened

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["read_part", "write_part"]

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a ZIP archive can say."""

_MODE: Final = 0o100644 << 16
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe there must not hang the reader


def write_part(out: IO[bytes], artifacts: Iterable[Artifact]) -> None:
    """Write artifacts into a new archive, each in a folder that is called by its digest.

    Parameters
    ----------
    out
        An empty file.
    artifacts
        The artifacts; equal ones are written once.
    """
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for digest, artifact in sorted({one.digest: one for one in artifacts}.items()):
            files = {**artifact.files, MANIFEST_NAME: artifact.manifest.to_json()}
            for name, data in sorted(files.items()):
                entry = zipfile.ZipInfo(f"{digest}/{name}", _EPOCH)
                entry.create_system, entry.external_attr = 3, _MODE  # Unix, and a plain file
                archive.writestr(entry, data)


def read_part(file: Path, digest: str, owner: int | None) -> Artifact:
    """Read an artifact from an archive, and verify every byte of it.

    Parameters
    ----------
    file
        The archive.
    digest
        The artifact's.
    owner
        If given, the user who must own the archive, while nobody else may write to it.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    CorruptArtifactError
        If it is no such archive, or has no such artifact, whole and unchanged.
    UntrustedArtifactError
        If ``owner`` is given and somebody else could have written it.
    OSError
        If it cannot be read at this moment.
    """
    with opened(file, _READ_FLAGS) as descriptor:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CorruptArtifactError(file.name, "is not a plain file")
        if owner is not None:
            check_owner(status, owner, str(file))
        with os.fdopen(descriptor, "rb", closefd=False) as data:
            try:
                with zipfile.ZipFile(data) as archive:
                    return _artifact(archive, digest)
            except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
                if isinstance(error, CorruptArtifactError):
                    raise
                raise CorruptArtifactError(file.name, f"is no archive that can be read: {error}") from error


def _artifact(archive: zipfile.ZipFile, digest: str) -> Artifact:
    manifest = Manifest.from_json(_member(archive, f"{digest}/{MANIFEST_NAME}", None))
    files = {
        name: _member(archive, f"{digest}/{name}", record.size) for name, record in manifest.files.items()
    }
    artifact = Artifact(manifest, files)
    if artifact.digest != digest:
        raise CorruptArtifactError(MANIFEST_NAME, f"is of artifact {artifact.digest[:12]}, not {digest[:12]}")
    return artifact


def _member(archive: zipfile.ZipFile, name: str, size: int | None) -> bytes:
    """Return a member's bytes; what it says of its size is checked before anything is read."""
    try:
        entry = archive.getinfo(name)
    except KeyError:
        raise CorruptArtifactError(name, "is missing from the part") from None
    limit = MAX_MANIFEST_BYTES if size is None else size
    if entry.file_size > limit or (size is not None and entry.file_size != size):
        raise CorruptArtifactError(
            name, f"has {entry.file_size} bytes, expected {size or f'at most {limit}'}"
        )
    if entry.compress_type != zipfile.ZIP_STORED:
        raise CorruptArtifactError(name, "is compressed, expected one that is stored as it is")
    return archive.read(entry)
