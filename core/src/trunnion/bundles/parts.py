"""The parts of a bundle: ZIP archives of artifacts, stored as they are, so that equal builds have equal bytes."""

from __future__ import annotations

import hashlib
import os
import zipfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.manifest import MANIFEST_NAME, MAX_MANIFEST_BYTES, Manifest
from trunnion.artifacts.plain_file import opened_plain_file
from trunnion.errors import CorruptArtifactError, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import BufferedReader
    from pathlib import Path

    from trunnion.bundles.index import Part, Variant

__all__ = ["artifacts_in", "opened_part", "write_part"]

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a ZIP archive can say."""

_MODE: Final = 0o100644 << 16


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


@contextmanager
def opened_part(file: Path, part: Part) -> Iterator[BufferedReader]:
    """Open an archive, or what it is a link to: whoever owns it, the index says what each byte of an artifact must be.

    Parameters
    ----------
    file
        The archive.
    part
        What the index says of it.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    CorruptArtifactError
        If it is not a plain file, or not of the size that the index says.
    OSError
        If it cannot be read at this moment.
    """
    with opened_plain_file(file, trusting=True) as data:
        nbytes = os.fstat(data.fileno()).st_size
        if nbytes != part.size:
            raise CorruptArtifactError(file.name, f"has {nbytes} bytes, expected {part.size}")
        yield data


def artifacts_in(data: IO[bytes], part: Part, variants: Iterable[Variant]) -> Iterator[Artifact]:
    """Yield artifacts of an archive, each after every byte of it is verified.

    Parameters
    ----------
    data
        The archive's bytes.
    part
        What the index says of it.
    variants
        What it says of the artifacts.

    Raises
    ------
    CorruptArtifactError
        If it is no such archive, or has no such artifact, whole and unchanged.
    OSError
        If it cannot be read at this moment.
    """
    with _naming(part.file), zipfile.ZipFile(data) as archive:
        for variant in variants:
            yield _artifact(archive, part.size, variant)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Name an archive in what is wrong with it, or with something in it."""
    try:
        yield
    except CorruptArtifactError as error:
        where = f"{error.problem} (in {shorten(name)})"
        raise CorruptArtifactError(error.what, where) from error.__cause__
    except (
        zipfile.BadZipFile,
        EOFError,
        OverflowError,
        ValueError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        said = f"is not the archive that was written, it was edited or damaged: {error}"
        raise CorruptArtifactError(name, said) from error


def _artifact(archive: zipfile.ZipFile, whole: int, variant: Variant) -> Artifact:
    digest = variant.digest
    said = _member(archive, whole, f"{digest}/{MANIFEST_NAME}", None)
    if hashlib.sha256(said).hexdigest() != digest:  # before anything that it says is believed
        raise CorruptArtifactError(MANIFEST_NAME, "is not the one that the index names")
    manifest = Manifest.from_json(said)
    nbytes = sum(record.size for record in manifest.files.values())
    if (manifest.target, manifest.backend, nbytes) != (variant.target, variant.backend, variant.nbytes):
        raise CorruptArtifactError("the index", f"says of artifact {digest[:12]} what its manifest does not")
    files = {
        name: _member(archive, whole, f"{digest}/{name}", record.size)
        for name, record in manifest.files.items()
    }
    return Artifact(manifest, files)


def _member(archive: zipfile.ZipFile, whole: int, name: str, size: int | None) -> bytes:
    """Return a member's bytes; what an archive of so many bytes says of it is checked before anything is read."""
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
    if entry.compress_size != entry.file_size:
        raise CorruptArtifactError(
            name, f"takes {entry.compress_size} bytes of the part, expected {entry.file_size}"
        )
    if not 0 <= entry.header_offset < whole:  # zipfile would ask for that place in the file
        raise CorruptArtifactError(
            name, f"begins at byte {entry.header_offset} of the part, which has {whole}"
        )
    return archive.read(entry)
