"""What stands behind a store: places that are only read, and asked for what the store lacks before that is built."""

from __future__ import annotations

import functools
import re
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from trunnion.arguments import file_path
from trunnion.artifacts.artifact import Artifact, check_links, check_owner, read_artifact, trusted_owners
from trunnion.artifacts.manifest import MANIFEST_NAME, MAX_MANIFEST_BYTES, Manifest
from trunnion.errors import (
    ArtifactError,
    CorruptArtifactError,
    UntrustedArtifactError,
    shorten,
)
from trunnion.messages import first_line, type_name
from trunnion.plain import ForeignError, asked, is_a, sequence, text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["ANSWER_SECONDS", "REST_SECONDS", "FolderTier", "Tier", "Tiers", "UrlTier", "expect_no_url"]

REST_SECONDS: Final = 60.0
"""For so long a tier is not asked again that could not be read."""

ANSWER_SECONDS: Final = 30.0
"""For so long a server is waited for, for each file: then it counts as one that cannot be read."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::|://)")
"""How a text begins that names no folder; ``::`` stands between the protocols that fsspec chains."""

_LOCAL = re.compile(r"(file|local)://|(?!.*://)", re.DOTALL)
"""How the last of a chain of protocols begins where it is on this machine."""

_ENTRIES = "entries"


class Tiers:
    """The tiers behind a store, asked one after another.

    Parameters
    ----------
    given
        A folder, a URL, or several of them in a list or a tuple; None: none.

    Raises
    ------
    ArtifactError
        If one is no path, or a URL that cannot be read here.
    """

    def __init__(self, given: Any) -> None:
        several = () if given is None else (given,)
        each = sequence(given, 0) if is_a(given, (list, tuple)) else several
        self._tiers = tuple(map(_tier, each or ()))
        self._resting = dict.fromkeys(self._tiers, 0.0)

    def read(self, key: str, tell: Callable[[str], None]) -> Artifact | None:
        """Return what the first tier has that has the artifact of a key; None if none has it, or can be read.

        Parameters
        ----------
        key
            The key.
        tell
            Told of each tier that has something else there, or cannot be read.
        """
        for tier in self._tiers:
            if time.monotonic() < self._resting[tier]:
                continue
            try:
                found: Artifact | None = asked(functools.partial(tier.read, key))
            except ForeignError as error:
                cause = error.__cause__
                said = tier.shown(f"{type_name(cause)}: {first_line(cause)}" if cause is not None else "")
                tell(f"artifact {key[:12]} cannot be had from {tier.name}, and is built: {said}")
                if not is_a(cause, (CorruptArtifactError, UntrustedArtifactError)):
                    self._resting[tier] = time.monotonic() + REST_SECONDS
                continue
            if found is not None and found.manifest.key == key:
                return found
            if found is not None:
                tell(f"what {tier.name} has for artifact {key[:12]} is of another key, and is not used")
        return None


class Tier(Protocol):
    """A place that is only read."""

    name: str
    """What messages call it."""

    def shown(self, said: str) -> str:
        """Return what an error says, without what nobody is to see."""

    def read(self, key: str) -> Artifact | None:
        """Return the artifact of a key, each byte of it verified; None if there is none.

        Raises
        ------
        CorruptArtifactError
            If it is not whole.
        UntrustedArtifactError
            If somebody else than this user and root could have written it.
        Exception
            Whatever a library raises that cannot read it at this moment.
        """


class FolderTier:
    """The folder of another store, of this user's or root's; nothing is written there, no lock is taken.

    Parameters
    ----------
    root
        The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.name = shorten(str(self.root))

    def shown(self, said: str) -> str:
        """See `Tier`."""
        return said

    def read(self, key: str) -> Artifact | None:
        """See `Tier`."""
        place = self.root / _ENTRIES / key
        try:
            # Who can write to a folder above can put another in place of the one below; so can who writes to a link's.
            check_links(self.root)
            for folder in (self.root, place.parent, place):
                check_owner(folder.stat(), trusted_owners(), str(folder))
            return read_artifact(place, trusted_owners())
        except FileNotFoundError:
            if not place.parent.is_dir():
                raise _no_store() from None
            return None


class UrlTier:
    """A store's folder that was copied to where fsspec reads: an object store, a server, the memory of this process.

    Its bytes are verified against their manifest, which says that they are whole, and not who wrote them: name no place
    to which others write whose code you would not run.

    Parameters
    ----------
    url
        What it is called. User, password and query are shown nowhere.
    files
        An `fsspec.AbstractFileSystem`.
    root
        The folder, as that file system calls it.
    """

    def __init__(self, url: str, files: Any, root: str) -> None:
        self._secrets = _secrets(url)
        self.name = shorten(self.shown(url))
        self._files, self._root, self._is_store = files, root, False

    def shown(self, said: str) -> str:
        """See `Tier`."""
        for secret in self._secrets:
            said = said.replace(secret, "")
        return said

    def read(self, key: str) -> Artifact | None:
        """See `Tier`."""
        place = f"{self._root.rstrip('/')}/{_ENTRIES}/{key}"
        try:
            said = self._bytes(f"{place}/{MANIFEST_NAME}", MAX_MANIFEST_BYTES)
        except FileNotFoundError:
            self._is_store = self._is_store or self._ask("exists", place.rpartition("/")[0])
            if not self._is_store:
                raise _no_store() from None
            return None
        manifest, files = Manifest.from_json(said), {}
        for name, record in manifest.files.items():
            try:
                files[name] = self._bytes(f"{place}/{name}", record.size)
            except FileNotFoundError as error:
                raise CorruptArtifactError(name, "is missing") from error
        return Artifact(manifest, files)

    def _bytes(self, path: str, most: int) -> bytes:
        """Return a file's bytes; of a longer one the first of them, one too many."""
        data: bytes = self._ask("cat_file", path, start=0, end=most + 1)
        return data

    def _ask(self, name: str, path: str, **more: int) -> Any:
        """Call a method of the file system.

        What fsspec asks a server for, it can be told to wait for; by itself it may for minutes.
        """
        if not getattr(self._files, "async_impl", False):
            return getattr(self._files, name)(path, **more)
        from fsspec.asyn import sync  # noqa: PLC0415 - an extra: only who names a URL needs it

        ask = getattr(self._files, f"_{name}")  # fsspec documents that every such file system has it
        return sync(self._files.loop, ask, path, timeout=ANSWER_SECONDS, **more)


def _no_store() -> ArtifactError:
    return ArtifactError(
        f"no store is there, whose folder has one that is called {_ENTRIES}; is it misspelled?"
    )


def expect_no_url(given: Any) -> None:
    """Refuse a URL where a folder is meant: it would be the name of a folder here.

    Raises
    ------
    ArtifactError
        If it is one.
    """
    url = _url(given)
    if url is not None:
        name = UrlTier(url, None, "").name
        raise ArtifactError(
            f"got {name}, expected a folder: what is at a URL is only read; name it behind one, "
            "ArtifactStore(folder, behind=…)"
        )


def _url(given: Any) -> str | None:
    """Return the URL that somebody means; None if it is a folder's name, or nothing of the kind."""
    said = text(given) if is_a(given, str) else None
    return None if said is None or not _URL.match(said) else said


def _tier(given: Any) -> Tier:
    """Return the tier that a folder or a URL names.

    Nobody would see who owns what a chain leads to that ends on this machine.

    Raises
    ------
    ArtifactError
        If it is neither, fsspec is not installed or lacks what that protocol takes, there is no such protocol, or a
        chain of them ends on this machine.
    """
    url = _url(given)
    if url is None:
        return FolderTier(file_path(given))
    before, _, last = url.rpartition("::")
    if before and _LOCAL.match(last):
        name = UrlTier(url, None, "").name
        raise ArtifactError(
            f"got {name}, which leads to files of this machine; name the folder without a chain"
        )
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra: only who names a URL needs it
        from fsspec.implementations.local import LocalFileSystem  # noqa: PLC0415 - likewise

        files, root = asked(lambda: url_to_fs(url))
    except ImportError as error:
        advice = "pip install 'trunnion[remote]'"
        raise ArtifactError(f"a URL is read by fsspec, which is not installed; {advice}") from error
    except ForeignError as error:
        cause = error.__cause__ or error
        unread = UrlTier(url, None, "")
        said = unread.shown(f"{type_name(cause)}: {first_line(cause)}")
        raise ArtifactError(f"fsspec cannot read {unread.name}: {said}") from cause
    if is_a(files, LocalFileSystem):  # of which it is known who owns it
        return FolderTier(file_path(root))
    return UrlTier(url, files, root)


def _secrets(url: str) -> list[str]:
    """Return what of a URL nobody is to see: user and password, and its query, which may be a signature."""
    return [*re.findall(r"(?<=//)[^/@]*@", url), *re.findall(r"\?.*", url)]
