"""Lock files: the digest of each bundle and artifact that a project loads, kept beside its sources."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect_text, file_path
from trunnion.artifacts.artifact import check_digest
from trunnion.artifacts.json_document import JsonDocument, spelled
from trunnion.artifacts.manifest import DIGEST
from trunnion.artifacts.plain_file import read_plain_file, unreadable, write_plain_file
from trunnion.built_program import BUNDLE_SUFFIX
from trunnion.bundles.bundle import verified
from trunnion.compilation import load
from trunnion.errors import (
    ArgumentTypeError,
    ArtifactError,
    CorruptArtifactError,
    TrunnionError,
    UntrustedArtifactError,
    shorten,
)
from trunnion.messages import describe, suggestion, type_name
from trunnion.plain import ForeignError, asked, is_a, path_text
from trunnion.signing.message import LOCK
from trunnion.signing.vouching import Vouching
from trunnion.storage.refusals import advice, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from os import PathLike

    from trunnion.bundles.bundle import AbsentPart
    from trunnion.registry import Registry
    from trunnion.signing.keys import PublicKey

__all__ = ["LOCK_FILE", "MAX_LOCK_BYTES", "Checked", "Lock", "is_lock", "locked_digests"]

LOCK_FILE: Final = "trunnion.lock"
"""What a lock file is called unless another name is given."""

_SCHEMA: Final = "trunnion.lock/1"

MAX_LOCK_BYTES: Final = 1 << 24
"""No lock file may be larger: 16 MiB."""

_MOST_NAMED: Final = 8
"""So many paths are named in an error at the most."""

_FIELDS: Final[Mapping[str, type]] = MappingProxyType({"schema": str, "digests": dict})


@dataclass(frozen=True, slots=True)
class Checked:
    """What is found at a path that is locked."""

    path: str
    """The path in the lock file."""

    problem: str
    """Why it is not what is locked; empty: it is."""

    absent: tuple[AbsentPart, ...]
    """Of a bundle that is what is locked, the parts that are not here, of which nothing was verified."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The digests of what a project loads."""

    file: Path
    """Where the lock file is, or is to be; the paths in it begin at its folder."""

    digests: Mapping[str, str]
    """The digest of each: `Bundle.digest` of an index, `Artifact.digest` of a folder; by path, with ``/``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digests", MappingProxyType(dict(self.digests)))

    def __reduce__(self) -> tuple[Callable[..., Lock], tuple[object, ...]]:
        return Lock, (self.file, dict(self.digests))  # which a read-only view of them is not made for

    @classmethod
    def of(cls, paths: Iterable[str | PathLike[str]], file: str | PathLike[str] = LOCK_FILE) -> Lock:
        """Return the lock of what lies at some paths now; every byte of it is verified.

        Parameters
        ----------
        paths
            Bundles' indices and artifacts' folders, below the lock file's folder.
        file
            Where the lock file is to be.

        Raises
        ------
        ArtifactError
            If one is not below that folder, or there is nothing, or it cannot be read; or if the lock file would be
            written over one or into it.
        CorruptArtifactError
            If it is not whole.
        ProgramError
            If a bundle's variants of one program take different parameters.
        ArgumentTypeError
            If they are no list of paths.
        """
        place, found = _place(file), {}
        folder = Path(os.path.realpath(place.parent))
        for path in _several(paths):
            whole = _plain(path)
            if Path(os.path.realpath(whole)) in {folder, folder / place.name}:
                raise ArtifactError(
                    f"{shorten(str(place))} would be written into what it locks, {shorten(str(whole))}; put the lock "
                    "file beside that"
                )
            if not whole.is_relative_to(place.parent):
                raise ArtifactError(
                    f"{shorten(str(whole))} is not below {shorten(str(place.parent))}, where the lock file is"
                )
            found[whole.relative_to(place.parent).as_posix()] = verified(whole).digest
        return cls(place, dict(sorted(found.items())))

    @classmethod
    def open(
        cls,
        file: str | PathLike[str] = LOCK_FILE,
        *,
        trusted_keys: Iterable[PublicKey | str | PathLike[str]] | None = None,
    ) -> Lock:
        """Read a lock file. Whoever can write it decides what is loaded: without trusted keys it is held to its owner.

        Parameters
        ----------
        file
            Where it is. Without trusted keys it and its folder must be root's or this user's, and nobody else may write
            to them.
        trusted_keys
            Public keys, or their files: a lock file that none of them signed (``trunnion sign``) is refused.

        Raises
        ------
        ArtifactError
            If there is none, or it cannot be read.
        CorruptArtifactError
            If it is none.
        UntrustedArtifactError
            If none of the keys signed it, or somebody else could have written a key, or without keys the lock file.
        ArgumentTypeError, ArgumentValueError
            If a key is none.
        BackendUnavailableError
            If there are trusted keys, and the library ``cryptography`` is not installed.
        """
        place, vouching = _absolute(file), Vouching.of(None, trusted_keys)
        try:
            data = read_plain_file(place, MAX_LOCK_BYTES, trusting=vouching.vouches)
        except OSError as error:
            raise unreadable(place, error, absent="trunnion lock PATH... makes one") from error
        vouching.check(place, LOCK, hashlib.sha256(data).hexdigest())
        return cls(place, locked_digests(data, place.name))

    def save(self) -> None:
        """Write the lock file, whole or not at all; paths are sorted, so that it can be compared and merged.

        Raises
        ------
        ArtifactError
            If it cannot be written, or is too large to be read again.
        """
        data = spelled({"schema": _SCHEMA, "digests": dict(self.digests)})
        write_plain_file(self.file, data, MAX_LOCK_BYTES)

    def load(self, path: str, *, registry: Registry | None = None) -> Any:
        """Load a bundle or an artifact as `trunnion.load` does, if it is the one that is locked.

        Parameters
        ----------
        path
            Its path in the lock file.
        registry
            The plugins to choose from; None: those that are installed.

        Raises
        ------
        UntrustedArtifactError
            If it is not in the lock file, or is another one.
        ArtifactError
            As `trunnion.load`.
        """
        path = expect_text(path, "path", "a path of the lock file")
        digest = self.digests.get(path)
        if digest is None:
            meant = suggestion(path, tuple(self.digests))
            every = sorted({*self.digests, path})
            words = " ".join(map(shorten, every)) if len(every) <= _MOST_NAMED else "PATH..."
            raise UntrustedArtifactError(
                f"{shorten(path)} is not in {shorten(str(self.file))}{meant}; lock it, with all that is to stay: "
                f"trunnion lock {words}"
            )
        return load(self.file.parent / path, digest=digest, registry=registry)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each path at which something else lies than what is locked, and what is wrong; all is read.

        Parts of a bundle that are not here are no problem as long as one is: `checked` tells of them.
        """
        return ((one.path, one.problem) for one in self.checked() if one.problem)

    def checked(self) -> Iterator[Checked]:
        """Yield what is found at each path; all is read. Parts of a bundle may be absent: not all need be shipped."""
        for path, digest in self.digests.items():
            absent: tuple[AbsentPart, ...] = ()
            problem = ""
            try:
                found = verified(self.file.parent / path, partly=True)
                check_digest(found.digest, digest, "it")
                absent = found.absent
            except CorruptArtifactError as error:
                named = error.what == PurePosixPath(path).name  # the path itself says so much
                problem = error.problem if named else str(error)
            except TrunnionError as error:
                problem = str(error)
            yield Checked(path, problem, absent)


def is_lock(members: object) -> bool:
    """Return whether a JSON document says that it is a lock file, of this version."""
    return isinstance(members, dict) and members.get("schema") == _SCHEMA


def locked_digests(data: bytes, name: str) -> dict[str, str]:
    """Return the digests that a lock file's bytes name, by path.

    Parameters
    ----------
    data
        The bytes.
    name
        What errors call the file.

    Raises
    ------
    CorruptArtifactError
        If they are no lock file.
    """
    document = JsonDocument(name, MAX_LOCK_BYTES)
    fields = document.record(document.versioned(data, _SCHEMA), _FIELDS, "the lock")
    digests: dict[str, str] = fields["digests"]
    for path, digest in digests.items():
        if not DIGEST.fullmatch(document.typed(digest, str, f"the digest of {shorten(path)}")):
            raise document.corrupt(f"got digest {shorten(digest)}, expected 64 hex digits")
        plain = PurePosixPath(path)
        if plain.is_absolute() or ".." in plain.parts or path in ("", ".") or str(plain) != path:
            raise document.corrupt(
                f"names {shorten(path)}, expected the plain path of something below its folder"
            )
    return digests


def _several(paths: Any) -> list[str | PathLike[str]]:
    expected = "a list of paths of bundles' indices and artifacts' folders"
    if is_a(paths, bytes) or path_text(paths) is not None:  # a text would be taken letter by letter
        raise ArgumentTypeError("paths", describe(paths), expected)
    try:
        return asked(lambda: [*paths])
    except ForeignError as error:
        raise ArgumentTypeError("paths", type_name(paths), expected) from error.__cause__


def _place(file: str | PathLike[str]) -> Path:
    """Return where a lock file is to be: not in the place of a bundle's index, or of a part of one."""
    place = _plain(file)
    if place.name.endswith(BUNDLE_SUFFIX):
        raise ArtifactError(
            f"{shorten(place.name)} is what a bundle's files are called; give the lock file another name, such as "
            f"{LOCK_FILE}"
        )
    return place


def _plain(path: str | PathLike[str]) -> Path:
    """Return the absolute path without ``..``, of the same file."""
    given = _absolute(path)
    plain = Path(os.path.normpath(given))
    if os.path.realpath(plain) != os.path.realpath(given):
        raise ArtifactError(
            f"{shorten(str(given))} leads through a link and on by '..', to {shorten(os.path.realpath(given))}; name "
            "that"
        )
    return plain


def _absolute(path: str | PathLike[str]) -> Path:
    given = file_path(path)
    try:
        return given.absolute()
    except OSError as error:  # there is no working folder
        raise ArtifactError(f"cannot find {shorten(str(given))}: {said(error)}; {advice(error)}") from error
