from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import pytest

from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.location import VARIABLE, default_root
from trunnion.artifacts.manifest import artifact_key
from trunnion.artifacts.store import ArtifactStore, CorruptArtifactWarning
from trunnion.errors import ArgumentTypeError, ArtifactError, UntrustedArtifactError
from trunnion.storage.kernel_mark import kernel_mark
from trunnion.storage.refusals import NotKeptWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeArtifact = Callable[..., Artifact]

INPUTS = {"plan": "1"}
KEY = artifact_key(INPUTS)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


def no_build(_: Path) -> Artifact:
    raise AssertionError("built again")


def test_a_miss_then_a_build_then_a_hit(store: ArtifactStore, make_artifact: MakeArtifact) -> None:
    assert store.get(KEY) is None
    made = make_artifact().keyed(INPUTS)
    assert store.get_or_build(KEY, lambda _: made) is made
    assert store.get(KEY) == made
    assert store.get_or_build(KEY, no_build) == made
    assert ArtifactStore(store.root).get(KEY) == made


def test_what_a_build_returns_is_refused_if_it_is_no_artifact(store: ArtifactStore) -> None:
    class Unknown:
        def __getattr__(self, name: str) -> object:
            raise SystemExit(0)

    for made in (None, {"manifest": 1}, Unknown()):
        with pytest.raises(ArtifactError, match="from build, expected an Artifact"):
            store.get_or_build(KEY, lambda _, made=made: made)  # type: ignore[misc]  # that is the mistake
    assert store.get(KEY) is None


def test_the_build_gets_an_empty_folder_of_its_own(store: ArtifactStore, make_artifact: MakeArtifact) -> None:
    seen: list[Path] = []

    def build(folder: Path) -> Artifact:
        assert list(folder.iterdir()) == []
        assert not folder.is_relative_to(store.root), "a store that is full would keep it from being built"
        (folder / "rubbish").write_bytes(b"")
        seen.append(folder)
        return make_artifact().keyed(INPUTS)

    store.get_or_build(KEY, build)
    assert not seen[0].exists()
    assert list((store.root / "staging").iterdir()) == []


def test_a_build_that_fails_leaves_nothing_and_the_next_builds(
    store: ArtifactStore, make_artifact: MakeArtifact
) -> None:
    def fail(folder: Path) -> Artifact:
        (folder / "rubbish").write_bytes(b"")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.get_or_build(KEY, fail)
    assert list((store.root / "staging").iterdir()) == []
    assert store.get(KEY) is None
    made = make_artifact().keyed(INPUTS)
    assert store.get_or_build(KEY, lambda _: made) == made


def test_an_artifact_of_another_key_is_refused(store: ArtifactStore, make_artifact: MakeArtifact) -> None:
    for made in (make_artifact(), make_artifact().keyed({"plan": "2"})):
        with pytest.raises(ArtifactError, match="keyed"):
            store.get_or_build(KEY, lambda _, made=made: made)
    assert store.get(KEY) is None


@pytest.mark.parametrize("key", ["", "x", "../" + KEY, KEY.upper(), KEY + "\n", KEY[:-1]])
def test_what_is_no_key_is_refused(store: ArtifactStore, key: str) -> None:
    with pytest.raises(ArtifactError, match="key"):
        store.get(key)
    with pytest.raises(ArtifactError, match="key"):
        store.get_or_build(key, no_build)


def flip(entry: Path) -> None:
    path = entry / "image.cubin"
    path.write_bytes(path.read_bytes()[::-1])


def replace_by_file(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.write_bytes(b"")


def replace_by_link(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.symlink_to(entry.with_name("nothing"))


def replace_by_loop(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.symlink_to(entry)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped": flip,
    "no manifest": lambda entry: (entry / "manifest.json").unlink(),
    "a file": replace_by_file,
    "a dangling link": replace_by_link,
    "a link to itself": replace_by_loop,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("read_first", [True, False])
def test_a_corrupt_entry_is_a_miss_and_is_built_again(
    store: ArtifactStore, make_artifact: MakeArtifact, damage: str, read_first: bool
) -> None:
    made = make_artifact().keyed(INPUTS)
    entry = store.root / "entries" / KEY
    for _ in range(2):
        store.get_or_build(KEY, lambda _: made)
        DAMAGES[damage](entry)
        if read_first:
            with pytest.warns(CorruptArtifactWarning, match=KEY[:12]):
                assert store.get(KEY) is None
            assert store.get_or_build(KEY, lambda _: made) is made
        else:
            with pytest.warns(CorruptArtifactWarning, match=KEY[:12]):
                assert store.get_or_build(KEY, lambda _: made) is made
        assert store.get(KEY) == made
    assert len(list((store.root / "corrupt").iterdir())) == 1


def test_the_entry_heals_even_where_warnings_are_errors(
    store: ArtifactStore, make_artifact: MakeArtifact
) -> None:
    made = make_artifact().keyed(INPUTS)
    store.get_or_build(KEY, lambda _: made)
    flip(store.root / "entries" / KEY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CorruptArtifactWarning):
            store.get(KEY)
        assert store.get_or_build(KEY, lambda _: made) is made


def test_an_entry_under_anothers_key_is_corrupt(store: ArtifactStore, make_artifact: MakeArtifact) -> None:
    store.get_or_build(KEY, lambda _: make_artifact().keyed(INPUTS))
    other = artifact_key({"plan": "2"})
    (store.root / "entries" / KEY).rename(store.root / "entries" / other)
    with pytest.warns(CorruptArtifactWarning):
        assert store.get(other) is None


def test_what_is_built_anew_replaces_what_is_stored(
    store: ArtifactStore, make_artifact: MakeArtifact
) -> None:
    first, second = (make_artifact({"one": data}).keyed(INPUTS) for data in (b"1", b"2"))
    assert store.get_or_build(KEY, lambda _: first, anew=True) is first
    assert store.get_or_build(KEY, lambda _: second, anew=True) is second
    assert store.get(KEY) == second
    with pytest.raises(AssertionError, match="built again"):
        store.get_or_build(KEY, no_build, anew=True)
    assert store.get(KEY) == second, "a build that fails takes nothing away"
    (store.root / "entries" / KEY / "one").write_bytes(b"3")
    assert store.get_or_build(KEY, lambda _: first, anew=True) is first
    assert store.get(KEY) == first
    assert [list((store.root / name).iterdir()) for name in ("staging", "locks", "corrupt")] == [[], [], []]


@pytest.mark.parametrize("failing", ["a sync", "the last renaming"])
def test_what_cannot_be_replaced_stays(
    store: ArtifactStore, make_artifact: MakeArtifact, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    first, second = (make_artifact({"one": data}).keyed(INPUTS) for data in (b"1", b"2"))
    store.get_or_build(KEY, lambda _: first)
    rename = os.rename

    def refused(*said: Any) -> None:
        if failing == "a sync" or Path(str(said[0])).name == "finished":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(*said)

    monkeypatch.setattr(os, "fsync" if failing == "a sync" else "rename", refused)
    with pytest.warns(NotKeptWarning):
        assert store.get_or_build(KEY, lambda _: second, anew=True) is second
    assert store.get(KEY) == first


def test_who_is_killed_while_the_disk_writes_takes_nothing_away(
    store: ArtifactStore, make_artifact: MakeArtifact
) -> None:
    first, second = (make_artifact({"one": data}).keyed(INPUTS) for data in (b"1", b"2"))
    store.get_or_build(KEY, lambda _: first)
    child = os.fork()
    if child == 0:
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        store.get_or_build(KEY, lambda _: second, anew=True)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert store.get(KEY) == first


def test_what_is_replaced_or_removed_while_it_is_read_is_not_corrupt(
    store: ArtifactStore, make_artifact: MakeArtifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (make_artifact({"one": data}).keyed(INPUTS) for data in (b"1", b"2"))
    store.get_or_build(KEY, lambda _: first)
    listdir, meanwhile = os.listdir, []

    def interrupted(folder: int) -> list[str]:
        if meanwhile:
            meanwhile.pop()()
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", interrupted)
    meanwhile.append(lambda: ArtifactStore(store.root).get_or_build(KEY, lambda _: second, anew=True))
    assert store.get(KEY) == second
    meanwhile.append(lambda: shutil.rmtree(store.root / "entries" / KEY))
    assert store.get(KEY) is None
    assert list((store.root / "corrupt").iterdir()) == []


def test_what_is_set_aside_is_built_again(store: ArtifactStore, make_artifact: MakeArtifact) -> None:
    store.set_aside(KEY)
    assert not list((store.root / "corrupt").iterdir()), "there was nothing"
    made = make_artifact().keyed(INPUTS)
    for _ in range(2):
        assert store.get_or_build(KEY, lambda _: made) is made
        store.set_aside(KEY)
        assert store.get(KEY) is None
    assert len(list((store.root / "corrupt").glob("*/entry/manifest.json"))) == 1


def test_reading_a_corrupt_entry_does_not_wait_for_its_builder(
    store: ArtifactStore, make_artifact: MakeArtifact
) -> None:
    made = make_artifact().keyed(INPUTS)
    building, go_on = threading.Event(), threading.Event()

    def build(_: Path) -> Artifact:
        building.set()
        assert go_on.wait(30)
        return made

    builder = threading.Thread(target=store.get_or_build, args=(KEY, build))
    builder.start()
    assert building.wait(30)
    made.save(store.root / "entries" / KEY)
    flip(store.root / "entries" / KEY)
    with pytest.warns(CorruptArtifactWarning):
        assert store.get(KEY) is None
    go_on.set()
    builder.join()


def test_the_folders_are_private_whatever_the_umask(tmp_path: Path, make_artifact: MakeArtifact) -> None:
    old = os.umask(0)
    try:
        store = ArtifactStore(tmp_path / "store")
        store.get_or_build(KEY, lambda _: make_artifact().keyed(INPUTS))
        assert store.get(KEY) is not None
    finally:
        os.umask(old)
    assert stat.S_IMODE(store.root.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
@pytest.mark.parametrize("folder", ["", "entries"])
def test_a_store_that_others_can_write_is_refused(tmp_path: Path, mode: int, folder: str) -> None:
    ArtifactStore(tmp_path / "store")
    (tmp_path / "store" / folder).chmod(mode)
    with pytest.raises(UntrustedArtifactError, match="written by others"):
        ArtifactStore(tmp_path / "store")


@pytest.mark.parametrize("name", ["", "manifest.json", "image.cubin"])
def test_an_entry_that_others_can_write_is_refused(
    store: ArtifactStore, make_artifact: MakeArtifact, name: str
) -> None:
    store.get_or_build(KEY, lambda _: make_artifact().keyed(INPUTS))
    (store.root / "entries" / KEY / name).chmod(0o777)
    with pytest.raises(UntrustedArtifactError):
        store.get(KEY)
    with pytest.raises(UntrustedArtifactError):
        store.get_or_build(KEY, no_build)


def test_a_store_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ArtifactStore(tmp_path / "store")
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(UntrustedArtifactError, match="belongs to"):
        ArtifactStore(tmp_path / "store")


def test_the_default_is_this_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root().is_relative_to(platformdirs.user_cache_path())
    store = ArtifactStore()
    assert store.root == default_root()
    assert store.root.is_relative_to(tmp_path)


def test_a_place_where_nothing_can_be_kept_is_a_typed_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    for base in (Path("/proc/nowhere"), tmp_path / "file"):
        monkeypatch.setattr(platformdirs, "user_cache_path", lambda name, base=base: base / name)
        with pytest.raises(ArtifactError, match=VARIABLE):
            ArtifactStore()
        with pytest.raises(ArtifactError, match="name a folder of yours"):
            ArtifactStore(base / "below")


CHILD = """
    import importlib.util, os, signal, sys, time
    from pathlib import Path
    from trunnion.artifacts.artifact import Artifact
    from trunnion.artifacts.manifest import artifact_key
    from trunnion.artifacts.store import ArtifactStore

    spec = importlib.util.spec_from_file_location("made", sys.argv[1])
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    inputs = {"plan": "1"}

    def die(artifact, staging):
        (staging / "half").write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)

    if sys.argv[4] == "die":
        Artifact.write = die

    def build(folder):
        with open(sys.argv[3], "a") as log:
            log.write("built\\n")
        (folder / "rubbish").write_bytes(b"")
        time.sleep(0.3)
        return made.build_artifact().keyed(inputs)

    print(ArtifactStore(Path(sys.argv[2])).get_or_build(artifact_key(inputs), build).digest)
"""


def start(store: ArtifactStore, log: Path, what: str) -> subprocess.Popen[str]:
    helper = Path(__file__).with_name("conftest.py")
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(helper), str(store.root), str(log), what],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_of_eight_processes_one_builds(
    store: ArtifactStore, make_artifact: MakeArtifact, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    children = [start(store, log, "live") for _ in range(8)]
    digests = [child.communicate(timeout=60)[0].strip() for child in children]
    assert digests == [make_artifact().keyed(INPUTS).digest] * 8
    assert log.read_text() == "built\n"
    assert list((store.root / "staging").iterdir()) == []


def test_of_eight_threads_one_builds(store: ArtifactStore, make_artifact: MakeArtifact) -> None:
    built: list[int] = []
    found: list[Artifact] = []

    def build(_: Path) -> Artifact:
        built.append(1)
        return make_artifact().keyed(INPUTS)

    threads = [
        threading.Thread(target=lambda: found.append(store.get_or_build(KEY, build))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [1]
    assert len(found) == 8


def test_a_builder_that_is_killed_frees_the_key(
    store: ArtifactStore, make_artifact: MakeArtifact, tmp_path: Path
) -> None:
    child = start(store, tmp_path / "log", "die")
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    assert len(list((store.root / "staging").iterdir())) == 1
    made = make_artifact().keyed(INPUTS)
    assert store.get_or_build(KEY, lambda _: made) == made
    assert list((store.root / "staging").iterdir()) == []


def test_whoever_builds_next_clears_what_a_killed_builder_of_another_key_left(
    store: ArtifactStore, make_artifact: MakeArtifact, tmp_path: Path
) -> None:
    start(store, tmp_path / "log", "die").communicate(timeout=60)
    assert len(list((store.root / "staging").iterdir())) == 1
    other = {"plan": "2"}
    store.get_or_build(artifact_key(other), lambda _: make_artifact().keyed(other))
    assert list((store.root / "staging").iterdir()) == []


def test_whoever_opens_the_store_clears_what_a_killed_builder_left(
    store: ArtifactStore, make_artifact: MakeArtifact, tmp_path: Path
) -> None:
    made = make_artifact().keyed(INPUTS)
    store.get_or_build(KEY, lambda _: made)
    other = ArtifactStore(store.root)
    (store.root / "entries" / KEY).rename(tmp_path / "entry")
    start(store, tmp_path / "log", "die").communicate(timeout=60)
    assert len(list((store.root / "staging").iterdir())) == 1
    (tmp_path / "entry").rename(store.root / "entries" / KEY)
    assert other.get(KEY) == made, "a hit, which clears nothing"
    assert ArtifactStore(store.root).get(KEY) == made
    assert list((store.root / "staging").iterdir()) == []


def test_what_cannot_be_cleared_keeps_nobody_from_opening_the_store(
    store: ArtifactStore, make_artifact: MakeArtifact
) -> None:
    left = store.root / "staging" / f"{artifact_key({'plan': '3'})}-{kernel_mark()}-abc"
    left.mkdir()
    (store.root / "locks" / f"{artifact_key({'plan': '3'})}.lock").symlink_to("/nonexistent/lock")
    (store.root / "staging" / "not-ours").mkdir()
    made = make_artifact().keyed(INPUTS)
    assert ArtifactStore(store.root).get_or_build(KEY, lambda _: made) == made
    assert left.exists()
    assert (store.root / "staging" / "not-ours").exists()


def test_what_a_living_builder_of_another_key_has_is_left_alone(
    store: ArtifactStore, make_artifact: MakeArtifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"plan": "2"}
    write = Artifact.write

    def meanwhile(artifact: Artifact, staging: Path) -> None:
        write(artifact, staging)
        monkeypatch.setattr(Artifact, "write", write)
        ArtifactStore(store.root)
        store.get_or_build(artifact_key(other), lambda _: make_artifact().keyed(other))
        assert (staging / "manifest.json").exists()

    monkeypatch.setattr(Artifact, "write", meanwhile)
    made = make_artifact().keyed(INPUTS)
    assert store.get_or_build(KEY, lambda _: made) == store.get(KEY) == made
    assert list((store.root / "staging").iterdir()) == []


def test_a_flipped_byte_is_a_miss_and_is_built_again(
    store: ArtifactStore, make_artifact: MakeArtifact
) -> None:
    made = make_artifact().keyed(INPUTS)
    store.get_or_build(KEY, lambda _: made)
    for name in sorted([*made.files, "manifest.json"]):
        path = store.root / "entries" / KEY / name
        for index in range(0, path.stat().st_size, 37):
            data = bytearray(path.read_bytes())
            data[index] ^= 1 << index % 8
            path.write_bytes(data)
            with pytest.warns(CorruptArtifactWarning, match=KEY[:12]):
                assert store.get_or_build(KEY, lambda _: made) is made
            assert store.get_or_build(KEY, no_build) == made


def test_who_builds_must_be_there(store) -> None:
    with pytest.raises(ArgumentTypeError, match="build"):
        store.get_or_build("0" * 64, None)
