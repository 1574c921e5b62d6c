"""Folders that are gone when their block is left, whatever happens at whatever line."""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import DeviceRequirementError
from trunnion.storage.scratch import discard, scratch_folder, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def tmpdir_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_it_is_private_and_empty_and_then_gone(tmpdir_here: Path) -> None:
    with scratch_folder() as folder:
        assert folder.parent == tmpdir_here
        assert (folder.stat().st_mode & 0o777, list(folder.iterdir())) == (0o700, [])
        (folder / "below").mkdir()
        (folder / "below" / "file").write_bytes(b"")
    assert not list(tmpdir_here.iterdir())
    with pytest.raises(ZeroDivisionError), scratch_folder():
        raise ZeroDivisionError
    assert not list(tmpdir_here.iterdir())


def test_without_a_place_it_says_what_to_do(tmpdir_here: Path) -> None:
    tmpdir_here.rmdir()
    with (
        pytest.raises(
            DeviceRequirementError, match=r"needs a folder for temporary files, got No such file.*TMPDIR"
        ),
        scratch_folder(),
    ):
        raise AssertionError("entered")


def test_what_the_block_raises_is_its_own(tmpdir_here: Path) -> None:
    with pytest.raises(FileNotFoundError), scratch_folder() as folder:
        (folder / "nothing").read_bytes()
    assert not list(tmpdir_here.iterdir())


def test_discard_twice(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for _ in range(2):
        discard(tmp_path / "folder")
    assert not list(tmp_path.iterdir())


def descriptors_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def interrupted(act: Callable[[], None], at: int) -> bool:
    """Press Ctrl-C at a line that is run, counted from 0; return whether there was such a line."""
    left = at
    mine = ("storage", "tempfile.py", "shutil.py", "contextlib.py")

    def line(frame: Any, event: str, _: object) -> Any:
        nonlocal left
        if event == "line":
            if left == 0:
                signal.raise_signal(signal.SIGINT)
            left -= 1
        return line

    def call(frame: Any, _event: str, _argument: object) -> Any:
        return line if any(part in frame.f_code.co_filename for part in mine) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return left < 0


@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
def test_an_interrupt_at_any_line_leaves_nothing(tmp_path: Path) -> None:
    before = descriptors_open()

    def act() -> None:
        with temporary_folder(tmp_path) as folder:
            (folder / "file").write_bytes(b"")

    at = 0
    while interrupted(act, at):
        assert not list(tmp_path.iterdir()), f"line {at}"
        assert descriptors_open() == before
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        at += 1
    assert at > 50
