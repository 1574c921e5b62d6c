"""Files that are kept for this user: whole, their own, whatever the user's umask is."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trunnion.errors import CorruptArtifactError, UntrustedArtifactError
from trunnion.storage import workshop
from trunnion.storage.kernel_mark import kernel_mark
from trunnion.storage.turns import DeadlockError
from trunnion.storage.workshop import Workshop
from trunnion.testing.forked import told_by_a_child
from trunnion.toolchain.build_cache import kept_file

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=[0o002, 0o000, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set what the process takes from new files; Debian's users have 0o002 where each has a group."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def write(folder: Path) -> None:
    (folder / "made.o").write_bytes(b"object")


@pytest.mark.usefixtures("umask")
def test_what_a_tool_made_is_the_user_s_own(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for _ in range(2):  # made, found
        path = kept_file(cache, "key", "made.o", write)
        assert path.read_bytes() == b"object"
        assert [one.stat().st_mode & 0o022 for one in (path, path.parent, cache)] == [0, 0, 0]


def test_what_others_could_have_written_is_not_read(tmp_path: Path) -> None:
    path = kept_file(tmp_path / "cache", "key", "made.o", write)
    path.chmod(0o620)
    with pytest.raises(UntrustedArtifactError, match=r"made\.o can be written by others"):
        kept_file(tmp_path / "cache", "key", "made.o", write)


def test_what_is_somebody_else_s_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_file(tmp_path / "cache", "key", "made.o", write)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(
        UntrustedArtifactError, match=rf"made\.o belongs to user {os.getuid()}, expected 4242"
    ):
        kept_file(tmp_path / "cache", "key", "made.o", write)


def test_what_a_killed_process_left_is_cleared_by_who_builds_next(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for dead in ("a", "b"):
        left = cache / "staging" / f"{dead}-{kernel_mark()}-dead"
        left.mkdir(parents=True)
        (left / "made.o").write_bytes(b"half")
    kept_file(cache, "a", "made.o", write)
    assert names(cache) == ["a"]


def names(cache: Path) -> list[str]:
    """Return the keys, where nothing else is left of whoever made them."""
    assert [*(cache / "staging").iterdir(), *(cache / "locks").iterdir()] == []
    return sorted(one.name for one in cache.iterdir() if one.name not in Workshop.names)


def age(cache: Path, *keys: str) -> None:
    """Let keys have been used long ago, the first one longest."""
    for index, key in enumerate(keys):
        os.utime(cache / key, (index + 1, index + 1))


def test_of_too_many_those_that_were_used_longest_ago_go_when_another_is_made(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for key in "abc":
        kept_file(cache, key, "made.o", write, most=3)
    age(cache, "b", "a", "c")
    kept_file(cache, "b", "made.o", write, most=3)  # it is used, and nothing is made
    assert names(cache) == ["a", "b", "c"]
    path = kept_file(cache, "d", "made.o", write, most=3)
    assert path.read_bytes() == b"object"
    assert names(cache) == ["b", "c", "d"]
    kept_file(cache, "e", "made.o", write)
    assert names(cache) == ["b", "c", "d", "e"], "nobody said how many there may be"


def test_what_is_made_stays_whatever_the_clock_says(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for key in "ab":
        kept_file(cache, key, "made.o", write)
        os.utime(cache / key, (1 << 33, 1 << 33))
    assert kept_file(cache, "c", "made.o", write, most=1).exists()
    assert names(cache) == ["c"]


@contextlib.contextmanager
def left(parent: Path, prefix: str) -> Iterator[Path]:
    """Make a temporary folder as a process does that dies before it removes it."""
    yield Path(tempfile.mkdtemp(dir=parent, prefix=prefix))


def test_what_goes_is_gone_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is renamed before it is removed: nobody finds a half of it, though the process dies."""
    cache = tmp_path / "cache"
    kept_file(cache, "a", "made.o", write)
    age(cache, "a")
    with monkeypatch.context() as patched:
        patched.setattr(workshop, "temporary_folder", left)
        kept_file(cache, "b", "made.o", write, most=1)
    assert not (cache / "a").exists()
    kept_file(cache, "c", "made.o", write)
    assert names(cache) == ["b", "c"]


def test_keys_are_made_at_once(tmp_path: Path) -> None:
    """Each has a lock of its own, and one that is being made is left alone by whoever makes another."""
    cache, both = tmp_path / "cache", threading.Barrier(2)

    def make(folder: Path) -> None:
        write(folder)
        both.wait(60)  # which a lock over both would never let the second reach

    with ThreadPoolExecutor(2) as pool:
        made = [pool.submit(kept_file, cache, key, "made.o", make, most=2) for key in "ab"]
        assert {one.result(60).read_bytes() for one in made} == {b"object"}
    assert names(cache) == ["a", "b"]


def test_one_that_is_being_made_is_not_cleared_by_whoever_makes_another(tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    def make(folder: Path) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(kept_file, cache, "b", "made.o", write).result(60)
        write(folder)

    assert kept_file(cache, "a", "made.o", make).read_bytes() == b"object"
    assert names(cache) == ["a", "b"]


def test_of_threads_that_ask_for_one_key_one_makes_it(tmp_path: Path) -> None:
    cache, made = tmp_path / "cache", []

    def make(folder: Path) -> None:
        made.append(1)
        write(folder)

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(kept_file, cache, "a", "made.o", make) for _ in range(8)]
        assert len({one.result(60) for one in asked}) == 1
    assert made == [1]


def test_who_asks_in_the_middle_of_making_it_is_told_at_once(tmp_path: Path) -> None:
    """As a signal's handler does, or a finalizer: it would wait for itself."""
    cache, said = tmp_path / "cache", []

    def make(folder: Path) -> None:
        with pytest.raises(DeadlockError):
            kept_file(cache, "a", "made.o", write)
        said.append(told_by_a_child(lambda: ask(cache)))
        write(folder)

    assert kept_file(cache, "a", "made.o", make).read_bytes() == b"object"
    assert said == ["refused"]


def ask(cache: Path) -> str:
    try:
        kept_file(cache, "a", "made.o", write)
    except DeadlockError:
        return "refused"
    return "made"


def test_a_child_that_was_forked_while_it_was_made_leaves_it_to_its_parent(tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    def make(folder: Path) -> None:
        write(folder)
        child = os.fork()
        if child == 0:
            raise InChild
        assert os.waitpid(child, 0)[1] == 0

    try:
        path = kept_file(cache, "a", "made.o", make)
    except InChild:
        os._exit(0)
    assert path.read_bytes() == b"object"
    assert names(cache) == ["a"]


class InChild(BaseException):
    """What leaves the block in a forked child, as `SystemExit` does."""


def test_a_link_among_them_is_not_followed(tmp_path: Path) -> None:
    cache, precious = tmp_path / "cache", tmp_path / "precious"
    precious.mkdir()
    (precious / "made.o").write_bytes(b"mine")
    cache.mkdir(mode=0o700)
    (cache / "link").symlink_to(precious)
    kept_file(cache, "a", "made.o", write)
    age(cache, "a")
    kept_file(cache, "b", "made.o", write, most=1)
    assert (precious / "made.o").read_bytes() == b"mine"
    assert names(cache) == ["b", "link"]


def refuse_short(data: bytes) -> None:
    if data != b"object":
        raise CorruptArtifactError("made.o", "is not whole")


def test_nothing_is_made_or_loaded_behind_a_link_that_others_could_have_made(tmp_path: Path) -> None:
    ours, everybodys = tmp_path / "ours", tmp_path / "everybodys"
    (ours / "kept").mkdir(parents=True)
    everybodys.mkdir()
    (everybodys / "link").symlink_to(ours)
    cache = everybodys / "link" / "kept" / "cache"
    kept_file(cache, "key", "made.o", write)  # the link's folder is this user's alone so far
    everybodys.chmod(0o777)
    for key in ("key", "other"):
        with pytest.raises(UntrustedArtifactError, match="of a link on the way to it, can be written by"):
            kept_file(cache, key, "made.o", write)
    assert names(ours / "kept" / "cache") == ["key"]


def test_what_is_of_no_use_is_not_kept(tmp_path: Path) -> None:
    """A compiler may report success and have written nothing, or half of it."""
    cache = tmp_path / "cache"
    for broken in (b"", b"obj"):
        with pytest.raises(CorruptArtifactError, match="is not whole"):
            kept_file(
                cache,
                "key",
                "made.o",
                lambda folder, broken=broken: (folder / "made.o").write_bytes(broken),
                check=refuse_short,
            )
        assert names(cache) == []
    assert kept_file(cache, "key", "made.o", write, check=refuse_short).read_bytes() == b"object"


def test_what_was_kept_and_is_of_no_use_is_made_again(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    kept_file(cache, "key", "made.o", lambda folder: (folder / "made.o").write_bytes(b"obj"))
    assert kept_file(cache, "key", "made.o", write, check=refuse_short).read_bytes() == b"object"
    assert names(cache) == ["key"]
