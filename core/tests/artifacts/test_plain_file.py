"""What is written is whole, and can be read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trunnion.artifacts.plain_file import read_plain_file, write_plain_file
from trunnion.errors import ArtifactError

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_longer_than_what_is_read_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_plain_file(file, b"1234", 4)
    with pytest.raises(ArtifactError, match="cannot write .*file'.*: got 5 bytes, expected at most 4"):
        write_plain_file(file, b"12345", 4)
    assert read_plain_file(file, 4, trusting=False) == b"1234"
    assert list(tmp_path.iterdir()) == [file]
