"""Files that are kept for this user: whole, their own, whatever the user's umask is."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trunnion.errors import CorruptArtifactError, UntrustedArtifactError
from trunnion.toolchain import kept
from trunnion.toolchain.kept import kept_file

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
    with pytest.raises(UntrustedArtifactError, match=r"made\.o is owned or writable by others"):
        kept_file(tmp_path / "cache", "key", "made.o", write)


def test_what_a_killed_process_left_is_cleared_by_who_builds_next(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    left = cache / "building-dead"
    left.mkdir(parents=True)
    (left / "made.o").write_bytes(b"half")
    kept_file(cache, "key", "made.o", write)
    assert [one.name for one in cache.iterdir()] == ["key"]


def names(cache: Path) -> list[str]:
    return sorted(one.name for one in cache.iterdir())


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
        patched.setattr(kept, "temporary_folder", left)
        kept_file(cache, "b", "made.o", write, most=1)
    assert not (cache / "a").exists()
    kept_file(cache, "c", "made.o", write)
    assert names(cache) == ["b", "c"]


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
