"""An artifact: a built program as bytes."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from trunnion.arguments import expect, expect_text, file_path
from trunnion.artifacts.manifest import (
    DIGEST,
    MANIFEST_NAME,
    MAX_FILE_BYTES,
    MAX_MANIFEST_BYTES,
    FileRecord,
    Manifest,
    artifact_key,
    plain_inputs,
)
from trunnion.artifacts.publish import publish
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArtifactError,
    CorruptArtifactError,
    UntrustedArtifactError,
    shorten,
)
from trunnion.messages import describe, type_name
from trunnion.plain import ForeignError, is_a, is_exactly, sequence
from trunnion.storage.descriptors import opened
from trunnion.storage.interrupts import Uninterrupted
from trunnion.storage.ownership import check_links, check_owner, trusted_owners
from trunnion.storage.refusals import advice, said
from trunnion.storage.scratch import temporary_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path


__all__ = [
    "IMAGE_PREFIX",
    "Artifact",
    "check_digest",
    "expect_digests",
    "read_artifact",
    "read_manifest",
]

IMAGE_PREFIX = "image."
"""What the name of a file that is a device image begins with; its kind follows."""

MAX_DIGESTS = 1 << 16
"""The most digests that a caller may allow."""

# O_NONBLOCK: a pipe put where a file should be must not hang the reader. It means nothing for regular files.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_MOST_HELD = 1 << 20  # bytes that are read at once before an interrupt comes: some tenths of a millisecond

# What says that a file is not there, or is something else.
_NO_PLAIN_FILE = frozenset({errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV})

# Never writable by others, whatever the umask: the store refuses to read what others could have changed.
_FILE_MODE = 0o644
_DIRECTORY_MODE = 0o755


@dataclass(frozen=True, slots=True)
class Artifact:
    """A built program, whole and in memory: files, and the manifest that says what they must be.

    Raises
    ------
    CorruptArtifactError
        If the files are not those of the manifest.
    """

    manifest: Manifest
    """What it is."""

    files: Mapping[str, bytes]
    """The bytes of every file, by name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", MappingProxyType(dict(sorted(self.files.items()))))
        _check_names(self.files, self.manifest)
        for name, data in self.files.items():
            if FileRecord.of(data) != self.manifest.files[name]:
                raise CorruptArtifactError(
                    name, "its bytes are not those that the manifest names; build it again"
                )

    def __hash__(self) -> int:
        return hash(self.manifest)

    def __reduce__(self) -> tuple[Callable[..., Artifact], tuple[object, ...]]:
        return Artifact, (self.manifest, dict(self.files))

    def keyed(self, inputs: Mapping[str, str]) -> Artifact:
        """Return this artifact with the key of ``inputs``, under which an `ArtifactStore` keeps it.

        A store takes it if what they name ``program``, ``target`` and ``backend``, if anything, is its own.

        Raises
        ------
        ArgumentTypeError
            If they are no mapping of texts to texts.
        ArgumentValueError
            If there are none.
        """
        plain = plain_inputs(inputs)
        if not plain:
            raise ArgumentValueError("inputs", "none", "one at least; without a key it is artifact.unkeyed()")
        return Artifact(replace(self.manifest, key_inputs=plain, key=artifact_key(plain)), self.files)

    def unkeyed(self) -> Artifact:
        """Return this artifact without its key, and what that is made of: paths of the machine that built it."""
        if not self.manifest.key:
            return self
        return Artifact(replace(self.manifest, key_inputs={}, key=""), self.files)

    def including(self, name: str, data: bytes) -> Artifact:
        """Return this artifact with one more file.

        Raises
        ------
        CorruptArtifactError
            If the name is not a plain name.
        ArgumentTypeError
            If the name is no text, or the data no bytes.
        """
        name, data = expect_text(name, "name", "the name of a file"), expect(data, bytes, "data", "bytes")
        files = {**self.manifest.files, name: FileRecord.of(data)}
        return Artifact(replace(self.manifest, files=files), {**self.files, name: data})

    @property
    def images(self) -> Mapping[str, bytes]:
        """The device images, by kind, such as ``"cubin"``, ``"ptx"`` or ``"host-object"``."""
        return MappingProxyType(
            {
                name.removeprefix(IMAGE_PREFIX): data
                for name, data in self.files.items()
                if name.startswith(IMAGE_PREFIX)
            }
        )

    @property
    def digest(self) -> str:
        """The SHA-256, in hex, of the manifest and so of everything: that of the file ``manifest.json``."""
        return hashlib.sha256(self.manifest.to_json()).hexdigest()

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the artifact as a directory, which is there whole or not at all.

        Parameters
        ----------
        directory
            Where; it must not exist, unless it is an empty folder, or this very artifact already, or a link to one.

        Raises
        ------
        ArtifactError
            If something else is there, or it cannot be written.
        """
        final = file_path(directory)
        try:
            self._save(final.absolute())
        except OSError as error:
            raise ArtifactError(
                f"cannot save at {shorten(str(final))}: {said(error)}; {advice(error)}"
            ) from error

    def _save(self, final: Path) -> None:
        taken = f"something else is already at {shorten(str(final))}; remove it or choose another place"
        if (final.is_symlink() or final.exists()) and not final.is_dir():
            raise ArtifactError(taken)
        if final.is_symlink():  # whose place no folder can take
            final = final.resolve()
        final.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(final) as folder:
            staging = folder / "finished"
            staging.mkdir()
            self.write(staging)
            if not publish(staging, final) and not self._is_at(final):
                raise ArtifactError(taken)

    def _is_at(self, directory: Path) -> bool:
        try:
            return read_artifact(directory) == self
        except CorruptArtifactError:
            return False

    def write(self, staging: Path) -> None:
        """Write the files into an existing, empty directory that nobody reads yet.

        Raises
        ------
        ArtifactError
            If its manifest is too long to be read again.
        """
        staging.chmod(_DIRECTORY_MODE)
        for name, data in {**self.files, MANIFEST_NAME: self.manifest.to_json()}.items():
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with (
                opened(staging / name, flags, mode=_FILE_MODE) as descriptor,
                os.fdopen(descriptor, "wb", closefd=False) as out,
            ):
                out.write(data)

    @classmethod
    def open(cls, directory: str | os.PathLike[str], *, trusted: bool = False) -> Artifact:
        """Read an artifact and verify every byte of it. Nothing of it is run.

        Parameters
        ----------
        directory
            The folder that `save` wrote.
        trusted
            Whether to refuse what somebody else than root and this user could have written.

        Raises
        ------
        ArtifactError
            If there is no folder, or it cannot be opened.
        CorruptArtifactError
            If its schema is unknown, or a file is missing, changed, extra or not a plain file.
        UntrustedArtifactError
            If it is to be trusted, and somebody else could have written it.
        """
        folder = file_path(directory)
        where, end = shorten(str(folder)), "expected the folder of an artifact, as Artifact.save writes it"
        try:
            if trusted:
                check_links(folder.absolute())
            return read_artifact(folder, trusted_owners() if trusted else None)
        except CorruptArtifactError as error:
            if not os.path.lexists(folder / MANIFEST_NAME):
                raise CorruptArtifactError(
                    where, f"is no artifact: it holds no {MANIFEST_NAME}; {end}"
                ) from None
            raise CorruptArtifactError(error.what, f"{error.problem} (in {where})") from error.__cause__
        except FileNotFoundError as error:
            raise ArtifactError(f"there is nothing at {where}, {end}") from error
        except NotADirectoryError as error:
            raise ArtifactError(f"there is no folder at {where}, {end}") from error
        except OSError as error:
            raise ArtifactError(f"cannot open {where}: {error.strerror}; {end}") from error


def read_artifact(directory: Path, owner: int | tuple[int, ...] | None = None) -> Artifact:
    """Read and verify an artifact.

    Parameters
    ----------
    directory
        Where it is. All that is in it is opened relative to one descriptor of it, so that replacing the
        directory meanwhile cannot mix two artifacts.
    owner
        If given, who must own the directory and each file, while nobody else may write to any; see `check_owner`.

    Raises
    ------
    FileNotFoundError
        If there is no such directory.
    NotADirectoryError
        If something else is there.
    CorruptArtifactError
        If it is not a whole artifact.
    UntrustedArtifactError
        If ``owner`` is given and somebody else could have written it.
    OSError
        If it cannot be read at this moment.
    """
    with opened(directory, os.O_RDONLY | os.O_DIRECTORY) as root, Uninterrupted() as held:
        if owner is not None:
            check_owner(os.fstat(root), owner, str(directory))
        manifest = Manifest.from_json(_read_file(root, MANIFEST_NAME, None, owner, held))
        names = set(os.listdir(root)) - {MANIFEST_NAME}  # noqa: PTH208 - of a descriptor
        _check_names(names, manifest)
        files = {name: _read_file(root, name, manifest.files[name], owner, held) for name in sorted(names)}
    return Artifact(manifest, files)


def read_manifest(directory: Path, owner: int) -> Manifest:
    """Read and verify the manifest of an artifact, and none of its other files; errors are those of `read_artifact`."""
    with opened(directory, os.O_RDONLY | os.O_DIRECTORY) as root, Uninterrupted() as held:
        check_owner(os.fstat(root), owner, str(directory))
        return Manifest.from_json(_read_file(root, MANIFEST_NAME, None, owner, held))


def check_digest(found: str, wanted: str | Iterable[str], what: str) -> None:
    """Refuse what has another digest than it must have, or none of those that are allowed.

    Raises
    ------
    UntrustedArtifactError
        If the digests differ.
    ArgumentTypeError, ArgumentValueError
        If one that is wanted is none, or none is allowed.
    """
    allowed = expect_digests(wanted)
    if found not in allowed:
        one = allowed[0] if len(allowed) == 1 else f"one of the {len(allowed)} that are allowed"
        raise UntrustedArtifactError(f"{what} has the digest {found}, expected {one}: it is another one")


def expect_digests(given: str | Iterable[str]) -> tuple[str, ...]:
    """Return the digests that a caller allows: one, or each of a list or a set.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If one is none, or the list is empty or endless.
    """
    words = "a SHA-256 in hex, a list of them, or None"
    several: tuple[object, ...] | None = (given,) if is_a(given, str) else None
    if several is None:
        try:
            several = sequence([*given] if is_exactly(given, set, frozenset) else given, MAX_DIGESTS + 1)
        except ForeignError as error:
            raise ArgumentTypeError("digest", type_name(given), words) from error.__cause__
    if several is None:
        raise ArgumentTypeError("digest", describe(given), words)
    if not 0 < len(several) <= MAX_DIGESTS:
        got = "none" if not several else f"more than {MAX_DIGESTS}"
        raise ArgumentValueError("digest", got, f"1 to {MAX_DIGESTS} digests")
    allowed = tuple(expect_text(cast("str", one), "digest", words) for one in several)
    for one in allowed:
        if not DIGEST.fullmatch(one):
            raise ArgumentValueError("digest", shorten(one), "64 digits of 0-9 and a-f")
    return allowed


def _check_names(found: Mapping[str, bytes] | set[str], manifest: Manifest) -> None:
    for name in sorted(set(found) ^ manifest.files.keys()):
        problem = "is missing" if name in manifest.files else "is not in the manifest"
        raise CorruptArtifactError(shorten(name), problem)


def _read_file(
    root: int,
    name: str,
    record: FileRecord | None,
    owner: int | tuple[int, ...] | None,
    held: Uninterrupted,
) -> bytes:
    """Return a file's bytes; a record's size is checked before anything is read.

    Interrupts are held for all files at once: for each by itself, as `opened` does, that takes longer than to read it.
    """
    try:
        descriptor = os.open(name, _READ_FLAGS, dir_fd=root)
    except OSError as error:
        if error.errno not in _NO_PLAIN_FILE:
            raise  # the file may be whole: it is this process, at this moment, that cannot read it
        raise CorruptArtifactError(name, f"cannot be opened as a plain file: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CorruptArtifactError(name, "is not a plain file")
        if owner is not None:
            check_owner(status, owner, name)
        limit = MAX_MANIFEST_BYTES if record is None else MAX_FILE_BYTES
        if status.st_size > limit or (record is not None and status.st_size != record.size):
            expected = f"at most {limit}" if record is None else str(record.size)
            raise CorruptArtifactError(name, f"has {status.st_size} bytes, expected {expected}")
        with held.interruptible() if status.st_size > _MOST_HELD else nullcontext():
            return _bytes_of(descriptor, status.st_size)
    finally:
        with suppress(OSError):
            os.close(descriptor)


def _bytes_of(descriptor: int, nbytes: int) -> bytes:
    """Return so many bytes of a file, or all if there are fewer: a file object would take longer than to read it."""
    parts = []
    while nbytes and (part := os.read(descriptor, nbytes)):
        parts.append(part)
        nbytes -= len(part)
    return b"".join(parts)
