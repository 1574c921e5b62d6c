"""Descriptors are closed however the block is left."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from trunnion.storage.descriptors import opened, write_through

if TYPE_CHECKING:
    from pathlib import Path


def test_it_is_closed_and_not_inherited(tmp_path: Path) -> None:
    with opened(tmp_path, os.O_RDONLY | os.O_DIRECTORY) as folder:
        assert not os.get_inheritable(folder)
        with opened("file", os.O_WRONLY | os.O_CREAT, within=folder) as file:
            os.write(file, b"text")
    for descriptor in (folder, file):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
    assert (tmp_path / "file").read_bytes() == b"text"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_opened_is_the_system_s_word(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), opened(tmp_path / "nothing", os.O_RDONLY):
        raise AssertionError("entered")
    with pytest.raises(FileNotFoundError):
        write_through(tmp_path / "nothing")


def test_a_descriptor_that_is_gone_already_is_no_error(tmp_path: Path) -> None:
    with opened(tmp_path, os.O_RDONLY) as folder:
        os.close(folder)
