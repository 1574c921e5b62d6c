"""What stands behind a store: places that are only read, and asked for what the store lacks before that is built."""

from __future__ import annotations

import functools
import re
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from trunnion.arguments import file_path
from trunnion.artifacts.artifact import Artifact, read_artifact
from trunnion.artifacts.fitting import misfit
from trunnion.artifacts.manifest import MANIFEST_NAME, MAX_MANIFEST_BYTES, Manifest
from trunnion.errors import (
    ArtifactError,
    CorruptArtifactError,
    UntrustedArtifactError,
    shorten,
)
from trunnion.messages import first_line, type_name
from trunnion.plain import ForeignError, asked, is_a, sequence, text
from trunnion.storage.ownership import check_links, check_owner, trusted_owners

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["ANSWER_SECONDS", "REST_SECONDS", "FolderTier", "Tier", "Tiers", "UrlTier", "expect_no_url"]

REST_SECONDS: Final = 60.0
"""For so long a tier is not asked again that could not be read."""

ANSWER_SECONDS: Final = 30.0
"""For so long a server is waited for, to connect and for a whole artifact: then it counts as one that is not there."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::|://)")
"""How a text begins that names no folder; ``::`` stands between the protocols that fsspec chains."""

_LOCAL = re.compile(r"(file|local)://|(?!.*://)", re.DOTALL)
"""How the last of a chain of protocols begins where it is on this machine."""

_SHORT_ADDRESS = re.compile(r"(?<=[/@])\[[0-9A-Fa-f:.]*::[0-9A-Fa-f:.]*\]")
"""An address of IPv6 in which zeros are left out, with what stands in a chain between protocols."""

_SECRET = re.compile(r"(?<=//)[^?]*\?.*@.*|(?<=//)[^?]*@|\?.*", re.DOTALL)
"""What of a URL nobody is to see: user and password, and its query, which may be a signature.

They may hold an ``@`` or a ``/``, and where a ``?`` comes before an ``@``, nobody knows which of them ends there.
"""

_WORD = re.compile(r"[^\W_]+")

_ENTRIES = "entries"

_T = TypeVar("_T")


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
            found = self._from(tier, key)
            if isinstance(found, str):  # told here: of a warning that is an error, it must not be the context
                tell(f"artifact {key[:12]} cannot be had from {tier.name}, and is built: {found}")
            elif found is not None:
                return found
        return None

    def _from(self, tier: Tier, key: str) -> Artifact | str | None:
        """Return what a tier has, None if that is nothing; or why it cannot be had, in words that may be shown."""
        try:
            found = tier.read(key)
            problem = "" if found is None else misfit(found, key)
            if problem:
                raise CorruptArtifactError("what is there", problem)
        except (ForeignError, ArtifactError) as error:  # what else comes, a signal's handler raised
            cause = error.__cause__ if is_a(error, ForeignError) else error
            if not is_a(cause, (CorruptArtifactError, UntrustedArtifactError)):
                self._resting[tier] = time.monotonic() + REST_SECONDS
            return tier.shown(f"{type_name(cause)}: {first_line(cause)}" if cause is not None else "")
        return found


class Tier(Protocol):
    """A place that is only read."""

    name: str
    """What messages call it."""

    def shown(self, said: str) -> str:
        """Return the type of an error and what it says, without what nobody is to see."""

    def read(self, key: str) -> Artifact | None:
        """Return the artifact of a key, each byte of it verified; None if there is none.

        Raises
        ------
        CorruptArtifactError
            If it is not whole.
        UntrustedArtifactError
            If somebody else than this user and root could have written it.
        ArtifactError
            If no store is there.
        ForeignError
            From whatever the system or a library says that cannot read it at this moment.
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
        try:
            return self._read(self.root / _ENTRIES / key)
        except OSError as error:
            raise ForeignError from error

    def _read(self, place: Path) -> Artifact | None:
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
        What fsspec reads, which connects when it is asked for the first time, and anew after it could not. User,
        password and query are shown nowhere.
    """

    def __init__(self, url: str) -> None:
        self._url, self._secrets = url, _SECRET.findall(url)
        self.name = shorten(_SECRET.sub("", url))
        self._connected: tuple[Any, str] | None = None
        self._is_store = False

    def shown(self, said: str) -> str:
        """See `Tier`."""
        for secret in self._secrets:
            said = said.replace(secret, "")
        kind, _, words = said.partition(": ")
        if not self._secrets or _words(words).isdisjoint(_words(" ".join(self._secrets))):
            return said
        return (
            f"{kind}, in words that are not shown: they may hold a part of the URL's user, password or query"
        )

    def read(self, key: str) -> Artifact | None:
        """See `Tier`."""
        place, ask = f"{_ENTRIES}/{key}", functools.partial(self._ask, time.monotonic() + ANSWER_SECONDS)
        said = ask(_bytes, f"{place}/{MANIFEST_NAME}", MAX_MANIFEST_BYTES)
        if said is None:
            self._is_store = self._is_store or ask(_is_there, _ENTRIES, 0)
            if not self._is_store:
                raise _no_store()
            return None
        manifest, files = Manifest.from_json(said), {}
        if manifest.key != key:  # the rest may be large, and is of no use
            raise CorruptArtifactError(MANIFEST_NAME, f"is of key {shorten(manifest.key)}")
        for name, record in manifest.files.items():
            data = ask(_bytes, f"{place}/{name}", record.size)
            if data is None:
                raise CorruptArtifactError(name, "is missing")
            files[name] = data
        return Artifact(manifest, files)

    def _ask(self, end: float, question: Callable[[Any, str, int], _T], path: str, most: int) -> _T:
        """Return what the file system says of a path below the folder, until that time.

        Raises
        ------
        ForeignError
            From what it raises, or if it does not answer.
        """
        # Nobody else uses it meanwhile, nor after this: a thread that was given up may, and a connection may be lost.
        connected, self._connected = self._connected, None

        def call() -> tuple[tuple[Any, str], _T]:
            files, root = known = connected or _connect(self._url)
            return known, question(files, f"{root.rstrip('/')}/{path}", most)

        self._connected, found = _answer(call, end)
        return found


def _connect(url: str) -> tuple[Any, str]:
    """Return a file system that nobody else uses, and what it calls a place."""
    from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra: only who names a URL needs it

    files, root = url_to_fs(url, skip_instance_cache=True)
    return files, root


def _bytes(files: Any, path: str, most: int) -> bytes | None:
    """Return a file's bytes, of a longer one the first of them, one too many; None if there is none."""
    try:
        if _is_http(files):
            return _streamed(files, path, most + 1)
        return bytes(memoryview(files.cat_file(path, start=0, end=most + 1)))
    except FileNotFoundError:
        return None


def _streamed(files: Any, path: str, most: int) -> bytes:
    """Return the first bytes of what an HTTP server sends: a range is but a wish there, and ``cat_file`` reads all.

    Without blocks it comes as it is sent; that a size is given saves one question.
    """
    data = bytearray()
    with files.open(path, "rb", block_size=0, size=most) as file:
        while len(data) < most and (more := file.read(most - len(data))):
            data += more
    return bytes(data)


def _is_there(files: Any, path: str, _: int) -> bool:
    """Whether a folder is there, as far as it can be known: many an HTTP server shows files alone."""
    return _is_http(files) or bool(files.exists(path))


def _is_http(files: Any) -> bool:
    protocol = files.protocol
    return "http" in ((protocol,) if is_a(protocol, str) else protocol)


def _answer(call: Callable[[], _T], end: float) -> _T:
    """Return what a call to a library returns until a time of the monotonic clock; its thread is then given up.

    So what a signal's handler raises meanwhile, in the main thread, is not taken for the library's.

    Raises
    ------
    ForeignError
        From what it raises, or if there is no answer, or no thread.
    """
    answers: list[_T] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            answers.append(asked(call))
        except (ForeignError, KeyboardInterrupt) as error:  # an interrupt too is raised where somebody waits
            errors.append(error)
        done.set()

    try:
        threading.Thread(target=run, name="trunnion-tier", daemon=True).start()
    except RuntimeError as error:  # too many of them, or Python is at its end
        raise ForeignError from error
    if not done.wait(end - time.monotonic()):
        raise ForeignError from TimeoutError(f"no answer within {ANSWER_SECONDS:g} seconds")
    if errors:
        raise errors.pop()  # no variable of this frame, which it would keep, holds it
    return answers[0]


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
        name = UrlTier(url).name
        raise ArtifactError(
            f"got {name}, expected a folder: what is at a URL is only read; name it behind one, "
            "ArtifactStore(folder, behind=…)"
        )


def _url(given: Any) -> str | None:
    """Return the URL that somebody means; None if it is a folder's name, or nothing of the kind."""
    said = text(given) if is_a(given, str) else None
    return None if said is None or not _URL.match(said) else said


def _check_chain(url: str) -> None:
    """Refuse a chain of protocols that ends on this machine, and an address that fsspec takes for a chain.

    Raises
    ------
    ArtifactError
        If it is one of these.
    """
    if _SHORT_ADDRESS.search(url):
        raise ArtifactError(
            f"got {UrlTier(url).name}, in whose address fsspec takes '::' for a chain of protocols; name the host, or "
            "spell its address with every zero"
        )
    before, _, last = url.rpartition("::")
    if before and _LOCAL.match(last):
        name = UrlTier(url).name
        raise ArtifactError(
            f"got {name}, which leads to files of this machine; name the folder without a chain"
        )


def _tier(given: Any) -> Tier:
    """Return the tier that a folder or a URL names.

    Nobody would see who owns what a chain leads to that ends on this machine.

    Raises
    ------
    ArtifactError
        If it is neither, fsspec is not installed or lacks what that protocol takes, there is no such protocol, a chain
        of them ends on this machine, or what fsspec takes for a chain is an address.
    """
    url = _url(given)
    if url is None:
        return FolderTier(file_path(given))
    _check_chain(url)
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra: only who names a URL needs it
        from fsspec.implementations.local import LocalFileSystem  # noqa: PLC0415 - likewise
        from fsspec.registry import get_filesystem_class  # noqa: PLC0415 - likewise

        protocols = [one.partition("://")[0] for one in url.split("::")]
        kinds = asked(lambda: [get_filesystem_class(one) for one in protocols])
        if issubclass(kinds[0], LocalFileSystem):  # of which it is known who owns it
            return FolderTier(file_path(asked(lambda: url_to_fs(url)[1])))
    except ImportError as error:
        advice = "pip install 'trunnion[remote]'"
        raise ArtifactError(f"a URL is read by fsspec, which is not installed; {advice}") from error
    except ForeignError as error:
        cause = error.__cause__ or error
        unread = UrlTier(url)
        said = unread.shown(f"{type_name(cause)}: {first_line(cause)}")
        raise ArtifactError(f"fsspec cannot read {unread.name}: {said}") from None  # it may hold a password
    return UrlTier(url)


def _words(said: str) -> set[str]:
    """Return the words of a text, as they are and as a URL quotes them, in small letters."""
    from urllib.parse import unquote  # noqa: PLC0415 - for a message: a hit must not pay for it

    return set(_WORD.findall(f"{said} {unquote(said)}".lower()))
