"""The local store: each artifact built once, by one builder, and verified whenever it is read."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING

from trunnion.arguments import file_path
from trunnion.artifacts.artifact import Artifact, read_artifact, read_manifest
from trunnion.artifacts.entries import KEY, MARK_SECONDS, entries_in, set_aside_in
from trunnion.artifacts.eviction import MOST_AGE_SECONDS, MOST_BYTES, Eviction, Limits
from trunnion.artifacts.fitting import misfit
from trunnion.artifacts.location import VARIABLE, default_root
from trunnion.artifacts.publish import publish
from trunnion.artifacts.statistics import StoreStatistics, tally
from trunnion.artifacts.tiers import Tiers, expect_no_url
from trunnion.callers import warn
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArtifactError,
    CorruptArtifactError,
    UntrustedArtifactError,
    shorten,
)
from trunnion.messages import describe, type_name
from trunnion.plain import is_a, is_exactly, text
from trunnion.storage.ownership import check_links, check_owner
from trunnion.storage.refusals import NotKeptWarning, not_kept, said
from trunnion.storage.scratch import discard, scratch_folder
from trunnion.storage.turns import WAIT_SECONDS, DeadlockError, Rank
from trunnion.storage.use import mark_used
from trunnion.storage.workshop import Workshop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from os import PathLike

    from trunnion.artifacts.entries import Entry
    from trunnion.artifacts.eviction import Removed
    from trunnion.artifacts.manifest import Manifest
    from trunnion.storage.turns import FileTurn

__all__ = ["ArtifactStore", "CorruptArtifactWarning"]

_TIME = "seconds, 0 or more, that a float can hold"


class CorruptArtifactWarning(UserWarning):
    """A stored artifact was not what it should be; it was set aside and will be built again."""


class ArtifactStore:
    """Artifacts in a folder of this user's, by key.

    Reading takes no lock. Building takes one lock for each key, which belongs to the operating system: it is
    free the moment its holder dies. What a builder leaves in the folder that dies is deleted by whoever opens the store
    next, or builds. Several processes and threads may share a folder. Who asks for an artifact in the middle of
    building one, a signal's handler or a finalizer say, waits for nobody: it is built beside.

    Whatever the folder refuses, a full disk or a lock that nobody gives back, what is asked for is built and returned
    all the same, with a `NotKeptWarning`.

    When something was stored, what nobody used for longest goes, as far as there is too much or it is too old.

    Parameters
    ----------
    root
        The folder, made with mode 0700 if it is not there; None: `default_root`.
    behind
        Where to look for what is not there before it is built: the folder of another store, a URL as `fsspec
        <https://filesystem-spec.readthedocs.io>`_ takes it, or several in a list. They are only read, what is found is
        verified and kept here too, and what cannot be read is done without, with a `NotKeptWarning`.
    wait_seconds
        How long to wait for somebody else who builds the same; after that everybody builds for himself.
    max_bytes
        How many bytes it may hold; None: any number. What was just stored stays, whatever its size. It is exact where
        one process stores at a time; several may go beyond it for up to an hour.
    max_age_seconds
        For how long an artifact stays that nobody uses, from a minute on; None: for ever.

    Raises
    ------
    ArtifactError
        If there can be none at that place, or it is no path, or a URL; if what is behind it is no path and no URL that
        can be read here.
    ArgumentValueError
        If ``wait_seconds`` or ``max_age_seconds`` is no time, or ``max_bytes`` no number of bytes.
    UntrustedArtifactError
        If the folder belongs to somebody else, or others may write to it, or to the folder of a link on the way to it:
        what is in it runs as native code.
    """

    def __init__(
        self,
        root: str | PathLike[str] | None = None,
        *,
        behind: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
        wait_seconds: float = WAIT_SECONDS,
        max_bytes: int | None = MOST_BYTES,
        max_age_seconds: float | None = MOST_AGE_SECONDS,
    ) -> None:
        expect_no_url(root)
        self.root = default_root() if root is None else file_path(root)
        if not _is_time(wait_seconds):
            raise ArgumentValueError("wait_seconds", describe(wait_seconds), _TIME)
        self.limits = _limits(max_bytes, max_age_seconds)
        self._owner = os.geteuid()
        self._wait_seconds = wait_seconds
        self._tiers = Tiers(behind)
        self._useless: set[str] = set()
        try:
            self.root = self.root.absolute()
            if os.path.realpath(self.root) != str(self.root):  # which is known sooner than whose they are
                check_links(self.root)
            self._workshop = Workshop(self.root, Rank.ARTIFACT, "artifact")
            self._prepare((self.root, self._entries, *self._workshop.folders, self._corrupt))
            self._tally = tally(str(self.root))
        except OSError as error:
            other = f"set {VARIABLE} to a folder of yours" if root is None else "name a folder of yours"
            raise ArtifactError(
                f"artifacts cannot be kept at {self._name}: {error.strerror}; {other}"
            ) from error

    def _prepare(self, folders: Iterable[Path]) -> None:
        """Make the folders that are not there, refuse those of others, and delete what builders left that died."""
        for folder in folders:
            check_owner(_made(folder), self._owner, str(folder))
        self._workshop.sweep()

    @property
    def _name(self) -> str:
        """What messages call it."""
        return shorten(str(self.root))

    @property
    def _entries(self) -> Path:
        return self.root / "entries"

    @property
    def _corrupt(self) -> Path:
        return self.root / "corrupt"

    @property
    def _eviction(self) -> Eviction:
        return Eviction(self._entries, self._corrupt, self.root / "usage", self._workshop)

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
        ArtifactError
            If it is no such key.
        UntrustedArtifactError
            If others could have written it.
        """
        key = _known_key(key)
        found = self._found(key)
        self._tally.count(hit=found is not None)
        return found

    def _found(self, key: str) -> Artifact | None:
        """Return what is stored, verified, and note that it was used; None, after saying why, if it cannot be used."""
        try:
            found = self._read(key)
        except CorruptArtifactError as error:
            found = self._recover(key)
            text = f"artifact {key[:12]} in {self._name} was corrupt and is not used: {error}"
            self.tell(text, CorruptArtifactWarning)
            return found
        except _RefusedError as error:
            text = not_kept(f"cannot read artifact {key[:12]} in {self._name}", error.reason)
            self.tell(text, NotKeptWarning)
            return None
        if found is not None:
            mark_used(self._entries / key, MARK_SECONDS)
        return found

    def set_aside(self, key: str) -> None:
        """Set an artifact aside that is whole, and cannot be loaded here all the same: the next build replaces it.

        It stays where the folder does not let it be moved, and is found there unless one builds anew. This object does
        not take it from a tier behind it any more.

        Parameters
        ----------
        key
            What `artifact_key` returned.

        Raises
        ------
        ArtifactError
            If it is no such key.
        """
        key = _known_key(key)
        self._useless.add(key)
        with suppress(_RefusedError), self._turn(key), _refusals():
            if (self._entries / key).exists():
                self._move_aside(key)

    def get_or_build(self, key: str, build: Callable[[Path], Artifact], *, anew: bool = False) -> Artifact:
        """Return the artifact of a key, building it if there is none; however many ask, one builds.

        Parameters
        ----------
        key
            What `artifact_key` returned.
        build
            Called with an empty folder that belongs to this build alone and is deleted after it. Returns the
            artifact, with the key (`Artifact.keyed`). What it raises is passed on; who asks next builds.
        anew
            Whether to build in any case, and to replace what is stored once that is built.

        Raises
        ------
        ArtifactError
            If it is no such key, or ``build`` returned an artifact of another one.
        ArgumentTypeError
            If ``build`` cannot be called.
        DeviceRequirementError
            If there can be no folder for ``build``.
        UntrustedArtifactError
            If others could have written what is stored.
        """
        key = _known_key(key)
        if not callable(build):
            raise ArgumentTypeError("build", type_name(build), "what is called with a folder")
        found, built = None if anew else self._found(key), None
        if found is not None:
            self._tally.count(hit=True)
            return found
        try:
            with self._turn(key) as mine:
                found = None if anew else self._read_or_set_aside(key)
                if found is not None:
                    self._tally.count(hit=True)
                    return found
                built = self._made(key, build, anew=anew)
                self._keep(built, mine)
        except _RefusedError as error:
            built = self._made(key, build, anew=anew) if built is None else built
            if not isinstance(error.reason, DeadlockError):  # who has the lock keeps it
                text = not_kept(f"cannot keep artifact {key[:12]} in {self._name}", error.reason)
                self.tell(text, NotKeptWarning)
        return built

    def _made(self, key: str, build: Callable[[Path], Artifact], *, anew: bool) -> Artifact:
        """Return what a tier behind the store has, or what is built."""
        if not anew and key not in self._useless:
            found = self._tiers.read(key, lambda text: self.tell(text, NotKeptWarning))
            if found is not None:
                self._tally.fetched += 1
                return found
        built = _built(key, build)
        self._tally.count(hit=False)
        return built

    def prune(self) -> Removed:
        """Remove what nobody used for longest, as far as there is too much or it is too old, and say how much."""
        return self._eviction.prune(self.limits)

    def clear(self) -> Removed:
        """Remove every artifact, and what was set aside; what is built at this moment is stored all the same."""
        return self._eviction.clear()

    def entries(self) -> list[Entry]:
        """Return what is stored, what was used longest ago first. Nothing of it is read."""
        return entries_in(self._entries)

    def manifest(self, key: str) -> Manifest | None:
        """Return the manifest of what is stored under a key, verified as it is; None if there is none that can be used.

        Nothing is set aside, and it does not count as a use.

        Raises
        ------
        ArtifactError
            If it is no such key.
        """
        place = self._entries / _known_key(key)
        try:
            found = read_manifest(place, self._owner)
        except (ArtifactError, OSError):
            return None
        return found if found.key == key else None

    def problem(self, key: str) -> str | None:
        """Return why what is stored under a key cannot be used, after reading all of it; empty if it can be used.

        None if nothing is stored. Nothing is set aside, and it does not count as a use.

        Raises
        ------
        ArtifactError
            If it is no such key.
        """
        try:
            return None if self._read(_known_key(key)) is None else ""
        except (CorruptArtifactError, UntrustedArtifactError) as error:
            return str(error)
        except _RefusedError as error:
            return said(error.reason)

    def statistics(self) -> StoreStatistics:
        """Count what is stored, and how often this process found what it asked for in this folder."""
        found = self.entries()
        used = [one.used for one in found]
        return StoreStatistics(
            entries=len(found),
            nbytes=sum(one.nbytes for one in found),
            corrupt=len(set_aside_in(self._corrupt)),
            oldest_use=min(used, default=None),
            newest_use=max(used, default=None),
            hits=self._tally.hits,
            fetched=self._tally.fetched,
            misses=self._tally.misses,
        )

    def tell(self, text: str, category: type[Warning]) -> None:
        """Say what was not kept, or not used, by a warning."""
        warn(text, category)

    def _keep(self, artifact: Artifact, mine: FileTurn) -> None:
        """Publish an artifact in the place of whatever is there; called with the key's lock held."""
        key = artifact.manifest.key
        place = self._entries / key
        try:
            nbytes = len(artifact.manifest.to_json()) + sum(map(len, artifact.files.values()))
        except ArtifactError as error:  # nobody could read it again
            self.tell(f"cannot keep artifact {key[:12]} in {self._name}: {error}", NotKeptWarning)
            return
        with _refusals():
            mine.confirm()
        self._workshop.sweep(key)
        with _refusals(), self._workshop.folder(key) as work:
            finished = work / "finished"
            finished.mkdir()
            artifact.write(finished)
            publish(finished, place, replaced=work / "replaced")
        self._eviction.after_storing(key, nbytes, self.limits)

    def _read(self, key: str) -> Artifact | None:
        """Return a verified artifact without a lock; None if there is none.

        One that is replaced or removed while it is read looks corrupt: what is read once more is there, or gone.
        Errors are those of `_read_once`.
        """
        try:
            return self._read_once(key)
        except CorruptArtifactError:
            return self._read_once(key)

    def _read_once(self, key: str) -> Artifact | None:
        """Return a verified artifact without a lock; None if there is none.

        Raises
        ------
        CorruptArtifactError
            If it is not whole, or not what the key says.
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
        problem = misfit(artifact, key)
        if problem:
            raise CorruptArtifactError(str(place), problem)
        return artifact

    def _read_or_set_aside(self, key: str) -> Artifact | None:
        """Return what is stored, or clear its place; called with the key's lock held."""
        try:
            return self._read(key)
        except CorruptArtifactError:
            self._move_aside(key)
            return None

    def _move_aside(self, key: str) -> None:
        """Move what is stored out of the way; called with the key's lock held."""
        with _refusals():
            for older in self._corrupt.glob(f"{key}-*"):
                discard(older)
            aside = Path(tempfile.mkdtemp(prefix=f"{key}-", dir=self._corrupt))
            (self._entries / key).rename(aside / "entry")

    def _recover(self, key: str) -> Artifact | None:
        """Set a corrupt entry aside, unless that cannot be, or somebody builds it at this moment and will do so."""
        try:
            with self._turn(key, 0):
                return self._read_or_set_aside(key)
        except _RefusedError:
            return None

    @contextmanager
    def _turn(self, key: str, seconds: float | None = None) -> Iterator[FileTurn]:
        """Hold the key's lock.

        Raises
        ------
        _RefusedError
            If it cannot be taken, or somebody else holds it for that long, or cannot be waited for.
        """
        limit = self._wait_seconds if seconds is None else seconds
        with ExitStack() as held:
            with _refusals():
                mine = held.enter_context(self._workshop.turn(key, limit))
            yield mine


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


def _made(folder: Path) -> os.stat_result:
    """Return the status of a folder, which is made if it is not there."""
    with suppress(FileNotFoundError):
        status = folder.stat()
        if S_ISDIR(status.st_mode):
            return status
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder.stat()


def _limits(max_bytes: int | None, max_age_seconds: float | None) -> Limits:
    """Return what a store may hold.

    Raises
    ------
    ArgumentValueError
        If that is no number of bytes, or no time.
    """
    if max_bytes is not None and not (is_exactly(max_bytes, int) and max_bytes >= 0):
        raise ArgumentValueError("max_bytes", describe(max_bytes), "bytes, 0 or more, or None")
    if max_age_seconds is not None and not _is_time(max_age_seconds):
        raise ArgumentValueError("max_age_seconds", describe(max_age_seconds), f"{_TIME}, or None")
    return Limits(max_bytes, max_age_seconds)


def _is_time(seconds: float) -> bool:
    """Whether a clock's time can be reckoned with it, which is a float."""
    try:
        return is_exactly(seconds, int, float) and float(seconds) >= 0
    except OverflowError:
        return False


def _built(key: str, build: Callable[[Path], Artifact]) -> Artifact:
    """Build an artifact in a folder outside of the store, so that no store that is full keeps it from being built."""
    with scratch_folder() as scratch:
        artifact = build(scratch)
    if not is_a(artifact, Artifact):
        raise ArtifactError(f"got {type_name(artifact)} from build, expected an Artifact")
    problem = misfit(artifact, key)
    if problem:
        raise ArtifactError(
            f"got an artifact from build that {problem}, for key {shorten(key)}; "
            "return artifact.keyed(inputs) with the inputs that the key was computed from"
        )
    return artifact


def _known_key(key: str) -> str:
    plain = text(key) or ""
    if not KEY.fullmatch(plain):
        raise ArtifactError(f"got key {shorten(key)}, expected the 64 hex digits of artifact_key()")
    return plain
