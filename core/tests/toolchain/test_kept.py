"""Files that are kept for this user: whole, their own, whatever the user's umask is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from trunnion.errors import UntrustedArtifactError
from trunnion.toolchain.kept import kept_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
