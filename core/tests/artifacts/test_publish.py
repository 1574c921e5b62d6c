from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from trunnion.artifacts.publish import publish

FILES = ("a", "b", "folder/c")


def stage(place: Path, text: str = "text") -> Path:
    for name in FILES:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def contents(place: Path) -> dict[str, str]:
    return {name: (place / name).read_text() for name in FILES}


def test_it_moves(tmp_path: Path) -> None:
    staging, final = stage(tmp_path / "staging"), tmp_path / "final"
    assert publish(staging, final) is True
    assert contents(final) == dict.fromkeys(FILES, "text")
    assert not staging.exists()


def test_the_first_wins_and_the_second_is_deleted(tmp_path: Path) -> None:
    final = tmp_path / "final"
    publish(stage(tmp_path / "one", "first"), final)
    assert publish(stage(tmp_path / "two", "second"), final) is False
    assert contents(final) == dict.fromkeys(FILES, "first")
    assert not (tmp_path / "two").exists()


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "final").write_text("file")
    with pytest.raises(NotADirectoryError):
        publish(stage(tmp_path / "staging"), tmp_path / "final")
    assert (tmp_path / "final").read_text() == "file"


def test_everything_is_synced_before_it_is_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staging, final = stage(tmp_path / "staging"), tmp_path / "final"
    events: list[str] = []
    fsync, rename = os.fsync, os.rename

    def watched_fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        events.append(os.path.relpath(path, tmp_path))
        fsync(descriptor)

    def watched_rename(source: Path, target: Path) -> None:
        events.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "rename", watched_rename)
    publish(staging, final)
    before, after = events[: events.index("rename")], events[events.index("rename") + 1 :]
    assert set(before) == {"staging", "staging/folder", *(f"staging/{name}" for name in FILES)}
    assert after == ["."]


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from trunnion.artifacts.publish import publish

    left = int(sys.argv[2])

    def counted(call):
        def wrapped(*args, **named):
            global left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return call(*args, **named)
        return wrapped

    for name in ("open", "fsync", "close", "rename", "scandir"):
        setattr(os, name, counted(getattr(os, name)))
    root = Path(sys.argv[1])
    publish(root / "staging", root / "final")
"""


def test_killed_at_any_call_it_is_absent_or_whole(tmp_path: Path) -> None:
    """Kill the publisher before its first system call, its second, and so on, until it lives."""
    absent = whole = 0
    for calls in range(100):
        root = tmp_path / str(calls)
        stage(root / "staging")
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(KILLED), str(root), str(calls)],
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
        if (root / "final").exists():
            assert contents(root / "final") == dict.fromkeys(FILES, "text")
            whole += 1
        else:
            absent += 1
            assert contents(root / "staging") == dict.fromkeys(FILES, "text")
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert done.returncode == 0
    assert absent > 10
    assert whole > 1
