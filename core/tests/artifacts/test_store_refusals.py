"""What a store's folder refuses, or a builder that never ends: the program is built and returned all the same."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.artifacts.manifest import MAX_MANIFEST_BYTES, artifact_key
from trunnion.artifacts.store import ArtifactStore, CorruptArtifactWarning
from trunnion.storage.refusals import NotKeptWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from trunnion.artifacts.artifact import Artifact

    MakeArtifact = Callable[..., Artifact]

INPUTS = {"plan": "1"}
KEY = artifact_key(INPUTS)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


REFUSED = {
    "a full disk": (errno.ENOSPC, "make room on that disk"),
    "a quota": (errno.EDQUOT, "quota is used up"),
    "too many open files": (errno.EMFILE, "ulimit -n"),
    "a limit on files": (errno.EFBIG, "ulimit -f"),
    "a read-only disk": (errno.EROFS, "name a folder that can be written to"),
    "a broken disk": (errno.EIO, "look after the disk"),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("call", ["open", "mkdir", "fsync", "rename"])
def test_what_cannot_be_kept_is_built_all_the_same(
    store: ArtifactStore, make_artifact: MakeArtifact, monkeypatch: pytest.MonkeyPatch, what: str, call: str
) -> None:
    number, said = REFUSED[what]
    made = make_artifact().keyed(INPUTS)
    original = getattr(os, call)

    def refuse(place: object, *args: object, **named: object) -> object:
        if isinstance(place, int) or str(store.root) in str(place):
            raise OSError(number, os.strerror(number), str(place))
        return original(place, *args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.warns(NotKeptWarning, match=said):
            assert store.get_or_build(KEY, lambda _: made) is made
    assert list((store.root / "staging").iterdir()) == []
    assert store.get_or_build(KEY, lambda _: made) == store.get(KEY) == made


def test_what_could_not_be_read_again_is_built_and_not_kept(
    store: ArtifactStore, make_artifact: MakeArtifact
) -> None:
    made = make_artifact(kernel="k" * MAX_MANIFEST_BYTES).keyed(INPUTS)
    for _ in range(2):
        with pytest.warns(NotKeptWarning, match=f"manifest.json of .* expected at most {MAX_MANIFEST_BYTES}"):
            assert store.get_or_build(KEY, lambda _: made) is made
    assert store.entries() == []


@contextmanager
def no_image_opens(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the process have too many open files whenever it opens an image, until the block ends."""
    original = os.open

    def refuse(place: object, *args: Any, **named: Any) -> int:
        if place == "image.cubin":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return original(place, *args, **named)  # type: ignore[arg-type]  # what os.open takes

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        yield


def test_what_cannot_be_read_at_this_moment_stays_where_it_is(
    store: ArtifactStore, make_artifact: MakeArtifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be whole: a process with too many open files must not set it aside."""
    made = make_artifact().keyed(INPUTS)
    store.get_or_build(KEY, lambda _: made)
    with no_image_opens(monkeypatch), pytest.warns(NotKeptWarning, match="cannot read artifact"):
        assert store.get(KEY) is None
    assert store.get(KEY) == made
    assert list((store.root / "corrupt").iterdir()) == []


def test_no_warning_shows_what_moves_a_cursor(
    tmp_path: Path, make_artifact: MakeArtifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ArtifactStore(tmp_path / "e\x1b[31m\u202ex" / "store")
    made = make_artifact().keyed(INPUTS)
    store.get_or_build(KEY, lambda _: made)
    with no_image_opens(monkeypatch), pytest.warns(NotKeptWarning) as told:
        assert store.get_or_build(KEY, lambda _: made) is made
    (store.root / "entries" / KEY / "manifest.json").write_bytes(b"")
    with pytest.warns(CorruptArtifactWarning) as corrupt:
        assert store.get(KEY) is None
    texts = [str(one.message) for one in (*told, *corrupt)]
    assert [text.partition(KEY[:12])[0] for text in texts] == [
        "cannot read artifact ",
        "cannot keep artifact ",
        "artifact ",
    ]
    assert all(text.isprintable() and "e\\x1b[31m\\u202ex" in text for text in texts), texts


STOPPED = """
    import sys, time
    from pathlib import Path
    from trunnion.artifacts.store import ArtifactStore

    def build(folder):
        print("building", flush=True)
        time.sleep(600)

    ArtifactStore(Path(sys.argv[1])).get_or_build(sys.argv[2], build)
"""


def test_a_stopped_builder_is_waited_for_and_not_for_ever(
    store: ArtifactStore, make_artifact: MakeArtifact, caplog: pytest.LogCaptureFixture
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(STOPPED), str(store.root), KEY],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child:
        try:
            assert child.stdout.readline() == "building\n"
            child.send_signal(signal.SIGSTOP)
            made = make_artifact().keyed(INPUTS)
            impatient = ArtifactStore(store.root, wait_seconds=1.2)
            with pytest.warns(
                NotKeptWarning, match=f"process {child.pid} .*end that process if it is stopped"
            ):
                assert impatient.get_or_build(KEY, lambda _: made) is made
        finally:
            child.kill()
    assert f"waiting for artifact {KEY[:12]}, which process {child.pid} (stopped) builds" in caplog.text
    assert store.get_or_build(KEY, lambda _: made) == store.get(KEY) == made


def test_a_folder_in_the_place_of_a_lock_can_be_locked_too(
    store: ArtifactStore, make_artifact: MakeArtifact
) -> None:
    (store.root / "locks" / f"{KEY}.lock").mkdir()
    made = make_artifact().keyed(INPUTS)
    assert store.get_or_build(KEY, lambda _: made) == store.get(KEY) == made


@pytest.mark.parametrize("target", ["itself.lock", "/nonexistent/lock"])
def test_where_no_lock_can_be_taken_it_is_built_and_not_kept(
    store: ArtifactStore, make_artifact: MakeArtifact, target: str
) -> None:
    (store.root / "locks" / f"{KEY}.lock").symlink_to(target.replace("itself", KEY))
    made = make_artifact().keyed(INPUTS)
    with pytest.warns(NotKeptWarning, match=f"cannot keep artifact {KEY[:12]}"):
        assert store.get_or_build(KEY, lambda _: made) == made
    assert store.get(KEY) is None
