"""Folders that are gone when their block is left, whatever happens at whatever line."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import DeviceRequirementError
from trunnion.storage.kernel_mark import kernel_mark
from trunnion.storage.scratch import discard, replacing, scratch_folder, temporary_folder
from trunnion.testing.interruption import interrupting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


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


def of_folders(frame: FrameType) -> bool:
    mine = ("storage", "tempfile.py", "shutil.py", "contextlib.py")
    return any(part in frame.f_code.co_filename for part in mine)


def interrupted(act: Callable[[], None], place: int) -> bool:
    """Press Ctrl-C at a place, counted from 1; return whether there was such a place."""
    strike = functools.partial(signal.raise_signal, signal.SIGINT)
    with contextlib.suppress(KeyboardInterrupt), interrupting(of_folders, place, strike) as interruption:
        act()
    return interruption.struck


@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
@pytest.mark.parametrize("make", [temporary_folder, scratch_folder])
def test_an_interrupt_at_any_place_leaves_nothing(tmpdir_here: Path, make: Any) -> None:
    before = descriptors_open()

    def act() -> None:
        with make() as folder:
            (folder / "file").write_bytes(b"")

    at = 1
    while interrupted(act, at):
        assert not list(tmpdir_here.iterdir()), f"place {at}"
        assert descriptors_open() == before
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        at += 1
    assert at > 50


BUILDER = """
import os, signal, sys, tempfile
tempfile.tempdir = sys.argv[1]
from trunnion.storage.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "below").mkdir()
    (folder / "below" / "file").write_bytes(b"half")
    print(folder, flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def builder(tmpdir_here: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that has a folder, and is killed once its input ends."""
    words = [sys.executable, "-c", BUILDER, str(tmpdir_here)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().rstrip("\n"))


def test_what_a_killed_process_left_is_removed_by_whoever_makes_the_next(
    builder: tuple[subprocess.Popen[str], Path], tmpdir_here: Path
) -> None:
    process, theirs = builder
    with scratch_folder() as mine:
        assert {theirs, mine} == set(tmpdir_here.iterdir()), "nobody has died"
        with scratch_folder() as within:
            assert {theirs, mine, within} == set(tmpdir_here.iterdir())
    assert (theirs / "below" / "file").exists()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert list(tmpdir_here.iterdir()) == [theirs]
    with scratch_folder() as mine:
        assert list(tmpdir_here.iterdir()) == [mine]
    assert not list(tmpdir_here.iterdir())


def test_nothing_else_is_removed(tmpdir_here: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_bytes(b"mine")
    (tmpdir_here / f"trunnion-scratch-{kernel_mark()}-link").symlink_to(precious)
    (tmpdir_here / f"trunnion-scratch-{kernel_mark()}-file").write_bytes(b"")
    for name in ("trunnion-cutedsl-0-x", "trunnion-other", "scratch"):
        (tmpdir_here / name).mkdir()
    before = set(tmpdir_here.iterdir())
    with scratch_folder():
        pass
    assert set(tmpdir_here.iterdir()) == before
    assert (precious / "file").read_bytes() == b"mine"


def test_another_user_s_are_not_removed(tmpdir_here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = f"trunnion-scratch-{kernel_mark()}-theirs"
    (tmpdir_here / theirs).mkdir()
    another = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: another)
    with scratch_folder():
        pass
    assert [one.name for one in tmpdir_here.iterdir()] == [theirs]


def test_what_another_machine_uses_is_left_alone_for_a_day(tmpdir_here: Path) -> None:
    """Where each machine has locks of its own, those of another one look free."""
    theirs = tmpdir_here / "trunnion-scratch-0f0f0f0f-random"
    theirs.mkdir()
    with scratch_folder():
        assert theirs.exists()
    os.utime(theirs, (time.time() - 90_000,) * 2)
    with scratch_folder():
        assert not theirs.exists()


@pytest.mark.parametrize("how", ["taken", "removed"])
def test_one_that_is_taken_for_a_dead_one_s_is_given_up(
    tmpdir_here: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Between the making of a folder and its lock, somebody else may take the lock, and remove it."""
    locked: list[int] = []

    def flock(descriptor: int, operation: int, *, lock: Any = fcntl.flock) -> None:
        locked.append(descriptor)
        if len(locked) == 1:
            (made,) = tmpdir_here.iterdir()
            if how == "taken":
                raise BlockingIOError
            made.rmdir()
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    before = descriptors_open()
    with scratch_folder() as folder:
        assert list(tmpdir_here.iterdir()) == [folder]
        assert descriptors_open() == before + 1
    assert len(locked) == 2
    assert not list(tmpdir_here.iterdir())
    assert descriptors_open() == before


def test_where_there_are_no_locks_nobody_removes_it(
    tmpdir_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", flock)
        making = scratch_folder()
        folder = making.__enter__()
    with scratch_folder():
        assert folder.exists()
    making.__exit__(None, None, None)
    assert not list(tmpdir_here.iterdir())


def test_what_replaces_a_file_keeps_the_links_to_it_and_its_permissions(tmp_path: Path) -> None:
    file, link, leads_nowhere = (tmp_path / name for name in ("file", "link", "leads nowhere"))
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    leads_nowhere.symlink_to(tmp_path / "made")
    for place, found in ((link, file), (leads_nowhere, tmp_path / "made")):
        with replacing(place) as made:
            made.write_text("after")
        assert (place.is_symlink(), found.is_symlink(), found.read_text()) == (True, False, "after")
    assert file.stat().st_mode & 0o777 == 0o640
    assert len([*tmp_path.iterdir()]) == 4


def test_what_is_no_regular_file_or_printed_to_is_written_itself(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "printed").write_text("")
    written = (
        "import sys, pathlib\nfrom trunnion.storage.scratch import replacing\n"
        "with replacing(pathlib.Path(sys.argv[1])) as made: print(made)"
    )
    with (tmp_path / "printed").open("wb") as printed:
        for place in ("/dev/stdout", str(tmp_path / "printed")):
            subprocess.run([sys.executable, "-c", written, place], check=True, stdout=printed)
    assert (tmp_path / "printed").read_text().splitlines() == ["/dev/stdout", str(tmp_path / "printed")]
    piped = subprocess.run(
        [sys.executable, "-c", written, "/dev/stdout"], check=True, capture_output=True, text=True
    )
    assert piped.stdout == "/dev/stdout\n"
    for place in (tmp_path / "pipe", Path(os.devnull)):
        with replacing(place) as made:
            assert made == place
