"""Lock files: the digest of each bundle and artifact that a project loads, kept beside its sources."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect_text, file_path
from trunnion.artifacts.artifact import Artifact, check_digest
from trunnion.artifacts.json_document import JsonDocument, spelled
from trunnion.bundles.bundle import Bundle, index_digest
from trunnion.compilation import load
from trunnion.errors import ArtifactError, TrunnionError, UntrustedArtifactError, shorten
from trunnion.storage.refusals import advice, said
from trunnion.storage.scratch import temporary_folder
from trunnion.wording import describe, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike

    from trunnion.registry import Registry

__all__ = ["LOCK_FILE", "Lock"]

LOCK_FILE: Final = "trunnion.lock"
"""What a lock file is called unless another name is given."""

_SCHEMA: Final = "trunnion.lock/1"
_MOST_BYTES: Final = 1 << 24
_FIELDS: Final[Mapping[str, type]] = MappingProxyType({"schema": str, "digests": dict})


@dataclass(frozen=True, slots=True)
class Lock:
    """The digests of what a project loads."""

    file: Path
    """Where the lock file is, or is to be; the paths in it begin at its folder."""

    digests: Mapping[str, str]
    """The digest of each: `Bundle.digest` of an index, `Artifact.digest` of a folder; by path, with ``/``."""

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
            If one is not below that folder, or there is nothing, or it cannot be read.
        CorruptArtifactError
            If it is not whole.
        """
        place = _absolute(file)
        found = {}
        for path in paths:
            whole = Path(os.path.normpath(_absolute(path)))
            if not whole.is_relative_to(place.parent):
                raise ArtifactError(
                    f"{shorten(str(whole))} is not below {shorten(str(place.parent))}, where the lock file is"
                )
            found[whole.relative_to(place.parent).as_posix()] = _digest(whole)
        return cls(place, MappingProxyType(dict(sorted(found.items()))))

    @classmethod
    def open(cls, file: str | PathLike[str] = LOCK_FILE) -> Lock:
        """Read a lock file.

        Raises
        ------
        ArtifactError
            If there is none, or it cannot be read.
        CorruptArtifactError
            If it is none.
        """
        place = _absolute(file)
        document = JsonDocument(place.name, _MOST_BYTES)
        try:
            with place.open("rb") as data:
                members = document.members(data.read(_MOST_BYTES + 1))
        except OSError as error:
            raise ArtifactError(f"cannot open {shorten(str(place))}: {error.strerror}") from error
        if not isinstance(members, dict) or members.get("schema") != _SCHEMA:
            got = members.get("schema") if isinstance(members, dict) else members
            raise document.corrupt(f"got schema {describe(got)}, this trunnion reads {_SCHEMA}")
        fields = document.record(members, _FIELDS, "the lock")
        for path, digest in fields["digests"].items():
            document.typed(digest, str, f"the digest of {shorten(path)}")
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise document.corrupt(f"names {shorten(path)}, expected a path below its folder")
        return cls(place, MappingProxyType(fields["digests"]))

    def save(self) -> None:
        """Write the lock file, whole or not at all; paths are sorted, so that it can be compared and merged.

        Raises
        ------
        ArtifactError
            If it cannot be written.
        """
        data = spelled({"schema": _SCHEMA, "digests": dict(self.digests)})
        try:
            with temporary_folder(self.file.parent, f".{self.file.name[:64]}.") as folder:
                (folder / self.file.name).write_bytes(data)
                os.replace(folder / self.file.name, self.file)  # noqa: PTH105 - of a file, whatever is there
        except OSError as error:
            raise ArtifactError(
                f"cannot write {shorten(str(self.file))}: {said(error)}; {advice(error)}"
            ) from error

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
            raise UntrustedArtifactError(
                f"{shorten(path)} is not in {shorten(str(self.file))}{meant}; lock it: trunnion lock"
            )
        return load(self.file.parent / path, digest=digest, registry=registry)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each path at which something else lies than what is locked, and what is wrong; all is read."""
        for path, digest in self.digests.items():
            try:
                check_digest(_digest(self.file.parent / path), digest, shorten(path))
            except TrunnionError as error:
                yield path, str(error)


def _absolute(path: str | PathLike[str]) -> Path:
    given = file_path(path)
    try:
        return given.absolute()
    except OSError as error:  # there is no working folder
        raise ArtifactError(f"cannot find {shorten(str(given))}: {said(error)}; {advice(error)}") from error


def _digest(path: Path) -> str:
    """Return the digest of what lies at a path, after every byte of it is verified."""
    if os.path.isdir(path):  # noqa: PTH112 - False for a name that is too long, where Path.is_dir raises
        return Artifact.open(path).digest
    bundle = Bundle.open(path, digest=index_digest(path))  # whoever owns it: what counts is what it is
    for variant in {
        one.digest: one for several in bundle.index.programs.values() for one in several
    }.values():
        bundle.artifact(variant)
    return bundle.digest
