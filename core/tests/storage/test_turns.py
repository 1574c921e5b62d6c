"""One at a time, with a message for who waits, and an end to waiting."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from trunnion.storage.turns import turn

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_the_second_waits_for_the_first(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "place"
    if kind == "folder":
        place.mkdir()
    with turn(place, "it"):
        with pytest.raises(TimeoutError) as caught, turn(place, "it", 0):
            raise AssertionError("entered")
        assert caught.value.strerror is not None
        assert f"process {os.getpid()} has held the lock" in caught.value.strerror
    with turn(place, "it", 0):
        pass
    assert caplog.text == ""


def test_threads_take_turns(tmp_path: Path) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with turn(tmp_path / "lock", "it"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most) == (0, 1)
