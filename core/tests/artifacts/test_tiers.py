"""What stands behind a store: it is read, verified and kept, and whatever it has or refuses, the program is built."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import fsspec
import pytest
from fsspec.asyn import AsyncFileSystem
from fsspec.registry import _registry

from trunnion import ArtifactStore
from trunnion.artifacts import tiers
from trunnion.artifacts.manifest import MAX_MANIFEST_BYTES, artifact_key
from trunnion.errors import ArtifactError
from trunnion.storage.refusals import NotKeptWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trunnion.artifacts.artifact import Artifact

INPUTS = {"name": "p"}
KEY = artifact_key(INPUTS)


@pytest.fixture
def artifact(make_artifact: Callable[..., Artifact]) -> Artifact:
    return make_artifact().keyed(INPUTS)


@pytest.fixture
def behind(artifact: Artifact, tmp_path: Path) -> Path:
    """Return the folder of a store that has the artifact."""
    store = ArtifactStore(tmp_path / "behind")
    store.get_or_build(KEY, lambda _: artifact)
    return store.root


@pytest.fixture
def memory(behind: Path) -> Iterator[str]:
    """Return the URL of a copy of that folder in fsspec's memory."""
    files = fsspec.filesystem("memory")
    files.put(str(behind), "memory://kernels", recursive=True)
    yield "memory://kernels"
    files.rm("memory://kernels", recursive=True)


@pytest.mark.parametrize("protocol", ["", "file://", "memory://", "async"])
def test_where_no_store_is_that_is_told(
    protocol: str, artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place: Any = str(tmp_path / "misspelled") if protocol != "async" else "served://misspelled"
    if protocol == "async":
        fsspec.register_implementation("served", Served, clobber=True)
    store = ArtifactStore(tmp_path / "mine", behind=place if protocol == "async" else protocol + place)
    with pytest.warns(NotKeptWarning, match="no store is there, whose folder has one that is called entries"):
        assert store.get_or_build(KEY, lambda _: artifact) == artifact


class Served(AsyncFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A server that has nothing."""

    protocol = "served"

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        raise FileNotFoundError(path)

    async def _exists(self, path: str, **_: Any) -> bool:
        return False


class Builds:
    """Builds the artifact, and counts."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact, self.count = artifact, 0

    def __call__(self, _: Path) -> Artifact:
        self.count += 1
        return self.artifact


@pytest.fixture
def build(artifact: Artifact) -> Builds:
    return Builds(artifact)


def snapshot(root: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(root)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in root.rglob("*")
    }


@pytest.mark.parametrize("kind", ["a path", "a text", "file://", "several"])
def test_a_folder_is_read_and_nothing_is_written_there(
    kind: str, behind: Path, artifact: Artifact, build: Builds, tmp_path: Path
) -> None:
    given: Any = {
        "a path": behind,
        "a text": str(behind),
        "file://": f"file://{behind}",
        "several": [ArtifactStore(tmp_path / "nothing").root, behind],
    }[kind]
    before = snapshot(behind)
    store = ArtifactStore(tmp_path / "store", behind=given)
    assert store.get_or_build(KEY, build) == artifact
    assert build.count == 0
    assert snapshot(behind) == before
    assert ArtifactStore(store.root).get(KEY) == artifact  # it is kept
    found = store.statistics()
    assert (found.hits, found.fetched, found.misses) == (1, 1, 0)


def test_a_url_is_read_by_fsspec(memory: str, artifact: Artifact, build: Builds, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "store", behind=memory)
    assert store.get_or_build(KEY, build) == artifact
    assert build.count == 0
    other = {"name": "q"}
    built = store.get_or_build(artifact_key(other), lambda _: build.artifact.keyed(other))
    assert built.manifest.key_inputs == other


def test_of_another_key_no_more_than_the_manifest_is_read(
    memory: str, artifact: Artifact, build: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files may be large, and are of no use."""
    asked_for: list[str] = []
    read = tiers._bytes
    monkeypatch.setattr(
        tiers, "_bytes", lambda files, path, most: asked_for.append(path) or read(files, path, most)
    )
    other = artifact.keyed({"name": "other"})
    files = fsspec.filesystem("memory")
    files.pipe(f"{memory}/entries/{KEY}/manifest.json", other.manifest.to_json())
    with pytest.warns(NotKeptWarning, match=f"manifest.json: is of key '{other.manifest.key[:12]}"):
        assert ArtifactStore(tmp_path / "store", behind=memory).get_or_build(KEY, build) == artifact
    assert [path.rpartition("/")[2] for path in asked_for] == ["manifest.json"]


def test_protocols_are_chained(memory: str, build: Builds, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "store", behind=f"simplecache::{memory}")
    assert store.get_or_build(KEY, build) == build.artifact
    assert build.count == 0


def test_what_is_wanted_anew_is_built(behind: Path, build: Builds, tmp_path: Path) -> None:
    ArtifactStore(tmp_path / "store", behind=behind).get_or_build(KEY, build, anew=True)
    assert build.count == 1


def test_what_could_not_be_loaded_is_not_taken_again(behind: Path, build: Builds, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "store", behind=behind)
    store.get_or_build(KEY, build)
    store.set_aside(KEY)
    store.get_or_build(KEY, build)
    assert build.count == 1


def _flip(place: Path) -> None:
    file = next(path for path in sorted(place.iterdir()) if path.name != "manifest.json")
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)


def _append(place: Path) -> None:
    with next(path for path in place.iterdir() if path.name != "manifest.json").open("ab") as file:
        file.write(b"more")


def _replace(place: Path) -> None:
    other = place.parent / artifact_key({"name": "other"})
    shutil.rmtree(place)
    shutil.copytree(other, place)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a flipped byte": _flip,
    "a longer file": _append,
    "a missing file": lambda place: next(p for p in place.iterdir() if p.name != "manifest.json").unlink(),
    "half a manifest": lambda place: (place / "manifest.json").write_bytes(b"{"),
    "another artifact": _replace,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_what_is_damaged_is_built_and_told(
    kind: str, damage: str, behind: Path, build: Builds, tmp_path: Path
) -> None:
    other = {"name": "other"}
    ArtifactStore(behind).get_or_build(artifact_key(other), lambda _: build.artifact.keyed(other))
    DAMAGES[damage](behind / "entries" / KEY)
    url = f"memory://{tmp_path}"
    if kind == "memory":
        fsspec.filesystem("memory").put(str(behind), url, recursive=True)
    store = ArtifactStore(tmp_path / "store", behind=behind if kind == "folder" else url)
    with pytest.warns(NotKeptWarning, match="behind" if kind == "folder" else "memory://") as told:
        assert store.get_or_build(KEY, build) == build.artifact
    assert len(told) == 1
    assert told[0].filename == __file__
    assert build.count == 1
    assert store.get(KEY) == build.artifact


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_others_could_have_written_is_not_used(behind: Path, build: Builds, tmp_path: Path) -> None:
    os.chown(behind / "entries" / KEY, 1234, 1234)
    with pytest.warns(NotKeptWarning, match="UntrustedArtifactError: .*belongs to user 1234"):
        ArtifactStore(tmp_path / "one", behind=behind).get_or_build(KEY, build)
    os.chown(behind / "entries" / KEY, 0, 0)
    behind.chmod(0o777)
    with pytest.warns(NotKeptWarning, match="can be written by others"):
        ArtifactStore(tmp_path / "two", behind=f"file://{behind}").get_or_build(KEY, build)
    assert build.count == 2


class Broken(fsspec.AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A server that is not there."""

    protocol = "trunnionbroken"
    asked = 0
    error: type[BaseException] = TimeoutError

    def cat_file(self, path: str, **_: Any) -> bytes:
        type(self).asked += 1
        raise self.error(f"no route to {path}\nand more")


@pytest.mark.parametrize("error", [TimeoutError, OSError, RuntimeError, SystemExit])
def test_a_server_that_is_not_there_is_done_without_for_a_while(
    error: type[BaseException], build: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec.register_implementation(Broken.protocol, Broken, clobber=True)
    monkeypatch.setattr(Broken, "error", error)
    monkeypatch.setattr(Broken, "asked", 0)
    now = [1000.0]
    monkeypatch.setattr(tiers.time, "monotonic", lambda: now[0])
    store = ArtifactStore(tmp_path / "store", behind="trunnionbroken://user:secret@host/place?token=abc")
    with pytest.warns(NotKeptWarning, match=f"{error.__name__}: no route") as told:
        store.get_or_build(KEY, build)
    assert not {"user", "secret", "abc"} & set(re.split(r"\W+", str(told[0].message)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.get_or_build(KEY, build, anew=True)
        other = {"name": "other"}
        store.get_or_build(artifact_key(other), lambda _: build.artifact.keyed(other))
        assert Broken.asked == 1
    now[0] += tiers.REST_SECONDS
    third = {"name": "third"}
    with pytest.warns(NotKeptWarning):
        store.get_or_build(artifact_key(third), lambda _: build.artifact.keyed(third))
    assert Broken.asked == 2


class Talkative(fsspec.AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A server that says what it made of a URL: in pieces, in small letters, quoted."""

    protocol = "trunniontalkative"
    cachable = False
    said = ""

    def cat_file(self, path: str, **_: Any) -> bytes:
        raise ValueError(self.said)


SECRETS = [
    ("joe:s3cr/et@", "Port could not be cast to integer value as 's3cr'"),
    ("joe:s3cr@et@", "no host is called et@127.0.0.1"),
    ("joe:S3CR?et@", "no host is called s3cr"),
    ("joe:s3cr#et@", "'#et@127.0.0.1' is no fragment"),
    ("joe:s3cr%2Fet@", "who is joe:s3cr/et?"),
    ("joe:/et//s3cr@", "nobody knows %2fet"),
    ("joe:s3cr\net@", "joe:s3cr\net@ is not let in"),
    ("", "?token=s3cr: 's3cr' has ended"),
    ("joe?s3cr=@et?joe@", "et?"),
]


@pytest.mark.parametrize(
    ("protocol", "secret", "said"),
    [("ftp", "joe:s3cr/et@", ""), *(("trunniontalkative", *one) for one in SECRETS)],
)
def test_of_user_password_and_query_no_part_is_shown(
    protocol: str, secret: str, said: str, build: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec.register_implementation(Talkative.protocol, Talkative, clobber=True)
    monkeypatch.setattr(Talkative, "said", said)
    url = f"{protocol}://{secret}127.0.0.1:1/x?token=s3cr"
    with pytest.warns(
        NotKeptWarning, match=rf"'{protocol}://.*', .*: ValueError, in words that are not"
    ) as told:
        ArtifactStore(tmp_path / "store", behind=url).get_or_build(KEY, build)
    shown = str(told[0].message)
    assert not {"joe", "s3cr", "et", "token"} & set(re.split(r"[\W_]+", shown.lower())), shown
    assert "?" in secret or "://127.0.0.1:1/x'" in shown


@pytest.mark.filterwarnings("error")
def test_nor_where_the_warning_is_an_error(build: Builds, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "store", behind="ftp://joe:s3cr/et@127.0.0.1:1/x")
    with pytest.raises(NotKeptWarning) as raised:
        store.get_or_build(KEY, build)
    assert "s3cr" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("secret", ["joe:s3cr/et@", "joe:nosuch::s3cr@"])
def test_nor_where_such_a_url_is_refused(secret: str, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="'nosuch://host/x'") as refused:
        ArtifactStore(tmp_path / "store", behind=f"nosuch://{secret}host/x")
    assert "s3cr" not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(ArtifactError, match="got 'ftp://host/x'"):
        ArtifactStore(f"ftp://{secret}host/x")


def test_what_holds_no_part_of_them_is_shown(
    build: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec.register_implementation(Talkative.protocol, Talkative, clobber=True)
    monkeypatch.setattr(Talkative, "said", "trunniontalkative://joe:s3cr@host/x is not there")
    with pytest.warns(NotKeptWarning, match="built: ValueError: trunniontalkative://host/x is not there"):
        ArtifactStore(tmp_path / "store", behind="trunniontalkative://joe:s3cr@host/x").get_or_build(
            KEY, build
        )


class Slow(AsyncFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A server that takes its time."""

    protocol = "trunnionslow"
    cachable = False

    async def _cat_file(self, path: str, **_: Any) -> bytes:
        await asyncio.sleep(60)
        raise AssertionError


class Stuck(fsspec.AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A server that does not answer, and a file system that waits for it."""

    protocol = "trunnionstuck"

    def cat_file(self, path: str, **_: Any) -> bytes:
        time.sleep(60)
        raise AssertionError


@pytest.mark.parametrize("kind", [Slow, Stuck])
def test_a_server_that_does_not_answer_is_not_waited_for(
    kind: Any, build: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec.register_implementation(kind.protocol, kind, clobber=True)
    monkeypatch.setattr(tiers, "ANSWER_SECONDS", 0.2)
    store = ArtifactStore(tmp_path / "store", behind=f"{kind.protocol}://host/place")
    began = time.monotonic()
    with pytest.warns(NotKeptWarning, match=r"TimeoutError: no answer within 0\.2 seconds"):
        assert store.get_or_build(KEY, build) == build.artifact
    assert time.monotonic() - began < 30
    assert build.count == 1


class Dripping(fsspec.AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A server that answers each question before anybody gives up."""

    protocol = "trunniondripping"

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        time.sleep(0.6)
        return Path(path).read_bytes()[start:end]


def test_a_server_that_drips_is_waited_for_no_longer_than_one_that_is_silent(
    behind: Path, build: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec.register_implementation(Dripping.protocol, Dripping, clobber=True)
    monkeypatch.setattr(tiers, "ANSWER_SECONDS", 1)
    store = ArtifactStore(tmp_path / "store", behind=f"{Dripping.protocol}://{behind}")
    with pytest.warns(NotKeptWarning, match="TimeoutError: no answer within 1 seconds"):
        assert store.get_or_build(KEY, build) == build.artifact
    assert build.count == 1
    monkeypatch.setattr(tiers, "ANSWER_SECONDS", 60)
    other = ArtifactStore(tmp_path / "other", behind=f"{Dripping.protocol}://{behind}")
    assert other.get_or_build(KEY, build) == build.artifact
    assert build.count == 1


class Down(Broken):
    """A server to which its file system connects at once, as that of ``ftp://`` does."""

    protocol = "trunniondown"

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        Broken.asked += 1
        raise ConnectionRefusedError(111, "Connection refused")


def test_who_connects_at_once_is_asked_when_something_is_sought(
    build: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec.register_implementation(Down.protocol, Down, clobber=True)
    monkeypatch.setattr(Broken, "asked", 0)
    store = ArtifactStore(tmp_path / "store", behind="trunniondown://host/place")
    assert Broken.asked == 0
    with pytest.warns(NotKeptWarning, match="ConnectionRefusedError"):
        assert store.get_or_build(KEY, build) == build.artifact
    other = {"name": "other"}
    store.get_or_build(artifact_key(other), lambda _: build.artifact.keyed(other))
    assert Broken.asked == 1


class Endless(AsyncFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A server that sends what it likes, whatever is asked for, as fsspec's own file system for HTTP has it."""

    protocol = ("http", "https")
    sent = 0

    async def _cat_file(self, path: str, **_: Any) -> bytes:
        raise AssertionError

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **_: Any) -> Any:
        assert (mode, block_size) == ("rb", 0)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, nbytes: int) -> bytes:
        assert nbytes > 0
        data = b" " * min(nbytes, 1 << 16)
        type(self).sent += len(data)
        return data


def test_of_an_http_server_no_more_is_read_than_there_may_be(
    build: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_registry, "http", Endless)
    monkeypatch.setattr(Endless, "sent", 0)
    store = ArtifactStore(tmp_path / "store", behind="http://host/place")
    with pytest.warns(NotKeptWarning, match="manifest"):
        assert store.get_or_build(KEY, build) == build.artifact
    assert Endless.sent == MAX_MANIFEST_BYTES + 1


def test_an_http_server_is_read(memory: str, build: Builds, tmp_path: Path, monkeypatch: Any) -> None:
    kept = fsspec.filesystem("memory")

    def opened(self: Endless, path: str, **_: Any) -> Any:
        return kept.open(path.replace("host", memory, 1))

    monkeypatch.setattr(Endless, "_open", opened)
    monkeypatch.setitem(_registry, "http", Endless)
    store = ArtifactStore(tmp_path / "store", behind="http://host")
    assert store.get_or_build(KEY, build) == build.artifact
    assert build.count == 0


def test_what_a_signal_s_handler_raises_passes(build: Builds, tmp_path: Path) -> None:
    fsspec.register_implementation(Stuck.protocol, Stuck, clobber=True)

    def handler(*_: object) -> None:
        raise TimeoutError("the handler's")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(TimeoutError, match="the handler's"):
            ArtifactStore(tmp_path / "store", behind="trunnionstuck://host").get_or_build(KEY, build)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_interrupt_passes(build: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.register_implementation(Broken.protocol, Broken, clobber=True)
    monkeypatch.setattr(Broken, "error", KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        ArtifactStore(tmp_path / "store", behind="trunnionbroken://x").get_or_build(KEY, build)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ("nosuch://bucket", ArtifactError, "fsspec cannot read 'nosuch://bucket'"),
        (3, ArtifactError, "expected the path"),
        ("", ArtifactError, "expected the path"),
        ([""], ArtifactError, "expected the path"),
        ("simplecache::file:///srv/kernels", ArtifactError, "of this machine.*name the folder"),
        ("simplecache::/srv/kernels", ArtifactError, "of this machine.*name the folder"),
        ("nosuch://user:secret@bucket?token=abc", ArtifactError, "fsspec cannot read 'nosuch://bucket'"),
        ("http://[2001:db8::1]:8000/store", ArtifactError, "'::' for a chain.*its address with every zero"),
        ("simplecache::http://joe:secret@[::1]/store", ArtifactError, "'::' for a chain"),
    ],
)
def test_what_is_no_place_is_refused(given: Any, error: type[Exception], said: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=said):
        ArtifactStore(tmp_path / "store", behind=given)


@pytest.mark.parametrize(
    "given", ["s3://bucket/x?signature=one@secret", "s3://user:one?secret@bucket/x", "s3://u?x@/secret"]
)
def test_where_nobody_knows_what_is_secret_of_a_url_all_of_it_is(given: str) -> None:
    assert tiers.UrlTier(given).name == "'s3://'"


@pytest.mark.parametrize("url", ["s3://user:secret@bucket/kernels", "memory://x", "simplecache::s3://bucket"])
def test_a_store_itself_lies_in_a_folder(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArtifactError, match=r"behind=") as refused:
        ArtifactStore(url)
    assert "secret" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_without_fsspec_a_url_is_refused_and_a_folder_is_read(
    behind: Path, build: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ArtifactError, match=r"trunnion\[remote\]"):
        ArtifactStore(tmp_path / "store", behind="memory://x")
    ArtifactStore(tmp_path / "store", behind=behind).get_or_build(KEY, build)
    assert build.count == 0
