"""The local store: each artifact built once, by one builder, and verified whenever it is read."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import filelock
import platformdirs

from trunnion.artifacts.artifact import Artifact, check_owner, read_artifact
from trunnion.artifacts.publish import discard, publish
from trunnion.errors import ArtifactError, CorruptArtifactError, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ArtifactStore", "CorruptArtifactWarning", "default_root"]

_KEY = re.compile(r"[0-9a-f]{64}")
_POLL_SECONDS = 0.01


class CorruptArtifactWarning(UserWarning):
    """A stored artifact was not what it should be; it was set aside and will be built again."""


def default_root() -> Path:
    """Return where artifacts are kept by default: below the platform's folder for this user's caches."""
    return platformdirs.user_cache_path("trunnion") / "artifacts"


class ArtifactStore:
    """Artifacts in a folder of this user's, by key.

    Reading takes no lock. Building takes one lock for each key, which belongs to the operating system: it is
    free the moment its holder dies. What a builder leaves that dies is deleted by whoever opens the store next, or
    builds. Several processes and threads may share a folder.

    Parameters
    ----------
    root
        The folder, made with mode 0700 if it is not there; None: `default_root`.

    Raises
    ------
    ArtifactError
        If there can be none at that place.
    UntrustedArtifactError
        If the folder belongs to somebody else, or others may write to it: what is in it runs as native code.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = (default_root() if root is None else Path(root)).absolute()
        self._owner = os.geteuid()
        try:
            for folder in (self.root, self._entries, self._locks, self._staging, self._corrupt):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                check_owner(folder.stat(), self._owner, str(folder))
            self._sweep()
        except OSError as error:
            advice = "set XDG_CACHE_HOME to a folder of yours" if root is None else "name a folder of yours"
            raise ArtifactError(
                f"artifacts cannot be kept at {shorten(str(self.root))}: {error.strerror}; {advice}"
            ) from error

    @property
    def _entries(self) -> Path:
        return self.root / "entries"

    @property
    def _locks(self) -> Path:
        return self.root / "locks"

    @property
    def _staging(self) -> Path:
        return self.root / "staging"

    @property
    def _corrupt(self) -> Path:
        return self.root / "corrupt"

    def get(self, key: str) -> Artifact | None:
        """Return the artifact of a key, verified; None if there is none.

        A corrupt one is as good as none: a `CorruptArtifactWarning` says so, and it is set aside in the
        folder ``corrupt``.

        Parameters
        ----------
        key
            What `artifact_key` returned.

        Raises
        ------
        UntrustedArtifactError
            If others could have written it.
        """
        _check_key(key)
        try:
            return self._read(key)
        except CorruptArtifactError as error:
            found = self._recover(key)
            text = f"artifact {key[:12]} in {self.root} was corrupt and is set aside: {error}"
            warnings.warn(text, CorruptArtifactWarning, stacklevel=2)
            return found

    def get_or_build(self, key: str, build: Callable[[Path], Artifact]) -> Artifact:
        """Return the artifact of a key, building it if there is none; however many ask, one builds.

        Parameters
        ----------
        key
            What `artifact_key` returned.
        build
            Called with an empty folder that belongs to this build alone and is deleted after it. Returns the
            artifact, with the key (`Artifact.keyed`). What it raises is passed on; who asks next builds.

        Raises
        ------
        ArtifactError
            If ``build`` returned an artifact of another key, or something is in the place of the key's lock.
        UntrustedArtifactError
            If others could have written what is stored.
        """
        found = self.get(key)
        if found is not None:
            return found
        with self._lock(key):
            found = self._read_or_set_aside(key)
            return self._build(key, build) if found is None else found

    def _build(self, key: str, build: Callable[[Path], Artifact]) -> Artifact:
        """Build and publish an artifact; called with the key's lock held."""
        self._sweep(key)
        work = Path(tempfile.mkdtemp(prefix=f"{key}-", dir=self._staging))
        try:
            scratch, finished = work / "scratch", work / "finished"
            scratch.mkdir()
            finished.mkdir()
            artifact = build(scratch)
            if artifact.manifest.key != key:
                raise ArtifactError(
                    f"got an artifact of key {shorten(artifact.manifest.key)} for key {shorten(key)}; "
                    "return artifact.keyed(inputs) with the inputs that the key was computed from"
                )
            artifact.write(finished)
            publish(finished, self._entries / key)
        finally:
            discard(work)
        return artifact

    def _sweep(self, key: str = "") -> None:
        """Delete what builders left that died; called with the lock of a key held, or with none.

        Whoever works on a key holds its lock: what lies there of this key belongs to nobody, and so does what lies
        there of another one whose lock is free. What cannot be deleted now is left to whoever comes next.
        """
        for left in self._staging.glob("*-*"):
            owner = left.name.partition("-")[0]
            if owner == key:
                discard(left)
            elif _KEY.fullmatch(owner):
                with suppress(filelock.Timeout, ArtifactError, OSError), self._lock(owner, timeout=0):
                    discard(left)

    def _read(self, key: str) -> Artifact | None:
        """Return a verified artifact without a lock; None if there is none.

        Raises
        ------
        CorruptArtifactError
            If it is not whole, or not of this key.
        UntrustedArtifactError
            If others could have written it.
        """
        place = self._entries / key
        try:
            artifact = read_artifact(place, self._owner)
        except FileNotFoundError as error:
            if place.is_symlink():  # nothing can be published over it
                raise CorruptArtifactError(str(place), "is a link to nothing") from error
            return None
        except NotADirectoryError as error:
            raise CorruptArtifactError(str(place), "is not a directory") from error
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise CorruptArtifactError(str(place), "is a link that leads to itself") from error
        if artifact.manifest.key != key:
            raise CorruptArtifactError(str(place), f"is of key {shorten(artifact.manifest.key)}")
        return artifact

    def _read_or_set_aside(self, key: str) -> Artifact | None:
        """Return what is stored, or clear its place; called with the key's lock held."""
        try:
            return self._read(key)
        except CorruptArtifactError:
            for older in self._corrupt.glob(f"{key}-*"):
                discard(older)
            aside = Path(tempfile.mkdtemp(prefix=f"{key}-", dir=self._corrupt))
            (self._entries / key).rename(aside / "entry")
            return None

    def _recover(self, key: str) -> Artifact | None:
        """Set a corrupt entry aside, unless somebody builds it at this moment and will do so himself."""
        try:
            with self._lock(key, timeout=0):
                return self._read_or_set_aside(key)
        except filelock.Timeout:
            return None

    @contextmanager
    def _lock(self, key: str, timeout: float = -1) -> Iterator[None]:
        """Hold the key's lock.

        Raises
        ------
        ArtifactError
            If its place is taken by something that cannot be locked.
        filelock.Timeout
            If somebody else holds it for that long.
        """
        place = self._locks / f"{key}.lock"
        lock = filelock.FileLock(place, mode=0o600)
        try:
            if place.is_dir():  # some versions of filelock wait for it to become a file
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place))
            lock.acquire(timeout=timeout, poll_interval=_POLL_SECONDS)
        except filelock.Timeout:
            raise
        except (OSError, RuntimeError) as error:
            raise ArtifactError(f"the lock {place} cannot be taken ({error}); remove it") from error
        try:
            yield
        finally:
            lock.release()


def _check_key(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise ArtifactError(f"got key {shorten(key)}, expected the 64 hex digits of artifact_key()")
