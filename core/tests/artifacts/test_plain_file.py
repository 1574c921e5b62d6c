"""What is written is whole, on the disk, and can be read again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.artifacts.plain_file import read_plain_file, write_plain_file
from trunnion.errors import ArtifactError

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_longer_than_what_is_read_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_plain_file(file, b"1234", 4)
    with pytest.raises(ArtifactError, match=r"cannot write .*file'.*: got 5 bytes, expected at most 4"):
        write_plain_file(file, b"12345", 4)
    assert read_plain_file(file, 4, trusting=False) == b"1234"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("name", ["𝄞" * 63, "e" * 255, "\udcff" * 64])
def test_a_name_may_have_as_many_bytes_as_the_system_lets_it(tmp_path: Path, name: str) -> None:
    write_plain_file(tmp_path / name, b"data", 4)
    assert read_plain_file(tmp_path / name, 4, trusting=False) == b"data"


def test_bytes_reach_the_disk_before_the_name_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        sync(descriptor)
        done.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))  # noqa: PTH115, PTH119 - of a text

    def replaced(*places: Any) -> None:
        replace(*places)
        done.append("replace")

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_plain_file(tmp_path / "link" / "file", b"data", 4)
    assert done == ["finished", "replace", "folder"]
