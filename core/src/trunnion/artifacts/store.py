"""The local store: each artifact built once, by one builder, and verified whenever it is read."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import warnings
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from trunnion.artifacts.artifact import Artifact, check_owner, read_artifact
from trunnion.artifacts.publish import publish
from trunnion.errors import ArtifactError, CorruptArtifactError, shorten
from trunnion.storage.refusals import warn_not_kept
from trunnion.storage.scratch import discard, scratch_folder, temporary_folder
from trunnion.storage.turns import WAIT_SECONDS, turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ArtifactStore", "CorruptArtifactWarning", "default_root"]

_KEY = re.compile(r"[0-9a-f]{64}")


class CorruptArtifactWarning(UserWarning):
    """A stored artifact was not what it should be; it was set aside and will be built again."""


def default_root() -> Path:
    """Return where artifacts are kept by default: below the platform's folder for this user's caches."""
    return platformdirs.user_cache_path("trunnion") / "artifacts"


class ArtifactStore:
    """Artifacts in a folder of this user's, by key.

    Reading takes no lock. Building takes one lock for each key, which belongs to the operating system: it is
    free the moment its holder dies. What a builder leaves in the folder that dies is deleted by whoever opens the store
    next, or builds. Several processes and threads may share a folder.

    Whatever the folder refuses, a full disk or a lock that nobody gives back, what is asked for is built and returned
    all the same, with a `NotKeptWarning`.

    Parameters
    ----------
    root
        The folder, made with mode 0700 if it is not there; None: `default_root`.
    wait_seconds
        How long to wait for somebody else who builds the same; after that everybody builds for himself.

    Raises
    ------
    ArtifactError
        If there can be none at that place.
    UntrustedArtifactError
        If the folder belongs to somebody else, or others may write to it: what is in it runs as native code.
    """

    def __init__(self, root: Path | None = None, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self.root = default_root() if root is None else Path(root)
        self._owner = os.geteuid()
        self._wait_seconds = wait_seconds
        try:
            self.root = self.root.absolute()
            for folder in (self.root, self._entries, self._locks, self._staging, self._corrupt):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                check_owner(folder.stat(), self._owner, str(folder))
            self._sweep()
        except OSError as error:
            other = "set XDG_CACHE_HOME to a folder of yours" if root is None else "name a folder of yours"
            raise ArtifactError(
                f"artifacts cannot be kept at {shorten(str(self.root))}: {error.strerror}; {other}"
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
        folder ``corrupt``. So is one that cannot be read at this moment: a `NotKeptWarning` says why.

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
            text = f"artifact {key[:12]} in {self.root} was corrupt and is not used: {error}"
            warnings.warn(text, CorruptArtifactWarning, stacklevel=2)
            return found
        except _RefusedError as error:
            warn_not_kept(f"cannot read artifact {key[:12]} in {self.root}", error.reason)
            return None

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
            If ``build`` returned an artifact of another key.
        DeviceRequirementError
            If there can be no folder for ``build``.
        UntrustedArtifactError
            If others could have written what is stored.
        """
        found, built = self.get(key), None
        if found is not None:
            return found
        try:
            with self._turn(key):
                found = self._read_or_set_aside(key)
                if found is not None:
                    return found
                built = _built(key, build)
                self._keep(built)
        except _RefusedError as error:
            built = _built(key, build) if built is None else built
            warn_not_kept(f"cannot keep artifact {key[:12]} in {self.root}", error.reason)
        return built

    def _keep(self, artifact: Artifact) -> None:
        """Publish an artifact; called with the key's lock held."""
        key = artifact.manifest.key
        self._sweep(key)
        with _refusals(), temporary_folder(self._staging, f"{key}-") as work:
            finished = work / "finished"
            finished.mkdir()
            artifact.write(finished)
            publish(finished, self._entries / key)

    def _sweep(self, key: str = "") -> None:
        """Delete what builders left that died; called with the lock of a key held, or with none.

        Whoever works on a key holds its lock: what lies there of this key belongs to nobody, and so does what lies
        there of another one whose lock is free. What cannot be deleted now is left to whoever comes next.
        """
        with suppress(OSError):
            for left in self._staging.glob("*-*"):
                owner = left.name.partition("-")[0]
                if owner == key:
                    discard(left)
                elif _KEY.fullmatch(owner):
                    with suppress(_RefusedError), self._turn(owner, 0):
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
            with _refusals():
                dangling = place.is_symlink()
            if dangling:  # nothing can be published over it
                raise CorruptArtifactError(str(place), "is a link to nothing") from error
            return None
        except NotADirectoryError as error:
            raise CorruptArtifactError(str(place), "is not a directory") from error
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise _RefusedError(error) from error
            raise CorruptArtifactError(str(place), "is a link that leads to itself") from error
        if artifact.manifest.key != key:
            raise CorruptArtifactError(str(place), f"is of key {shorten(artifact.manifest.key)}")
        return artifact

    def _read_or_set_aside(self, key: str) -> Artifact | None:
        """Return what is stored, or clear its place; called with the key's lock held."""
        try:
            return self._read(key)
        except CorruptArtifactError:
            with _refusals():
                for older in self._corrupt.glob(f"{key}-*"):
                    discard(older)
                aside = Path(tempfile.mkdtemp(prefix=f"{key}-", dir=self._corrupt))
                (self._entries / key).rename(aside / "entry")
            return None

    def _recover(self, key: str) -> Artifact | None:
        """Set a corrupt entry aside, unless that cannot be, or somebody builds it at this moment and will do so."""
        try:
            with self._turn(key, 0):
                return self._read_or_set_aside(key)
        except _RefusedError:
            return None

    @contextmanager
    def _turn(self, key: str, seconds: float | None = None) -> Iterator[None]:
        """Hold the key's lock.

        Raises
        ------
        _RefusedError
            If it cannot be taken, or somebody else holds it for that long.
        """
        limit = self._wait_seconds if seconds is None else seconds
        with ExitStack() as held:
            with _refusals():
                held.enter_context(turn(self._locks / f"{key}.lock", f"artifact {key[:12]}", limit))
            yield


class _RefusedError(Exception):
    """The folder refused something: nobody but the store sees this."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(reason)
        self.reason = reason


@contextmanager
def _refusals() -> Iterator[None]:
    """Tell what the folder refuses from what a build raises."""
    try:
        yield
    except OSError as error:
        raise _RefusedError(error) from error


def _built(key: str, build: Callable[[Path], Artifact]) -> Artifact:
    """Build an artifact in a folder outside of the store, so that no store that is full keeps it from being built."""
    with scratch_folder() as scratch:
        artifact = build(scratch)
    if artifact.manifest.key != key:
        raise ArtifactError(
            f"got an artifact of key {shorten(artifact.manifest.key)} for key {shorten(key)}; "
            "return artifact.keyed(inputs) with the inputs that the key was computed from"
        )
    return artifact


def _check_key(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise ArtifactError(f"got key {shorten(key)}, expected the 64 hex digits of artifact_key()")
