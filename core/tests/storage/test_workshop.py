"""Where kept things are made: what the dead left goes, and nothing else does."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from trunnion.storage.kernel_mark import kernel_mark
from trunnion.storage.turns import Rank
from trunnion.storage.workshop import Workshop

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    made = Workshop(tmp_path, Rank.PART, "part")
    for folder in made.folders:
        folder.mkdir()
    return made


def test_what_the_dead_left_is_removed_and_what_the_living_have_is_not(
    workshop: Workshop, tmp_path: Path
) -> None:
    staging = tmp_path / "staging"
    for name in (f"a-{kernel_mark()}-dead", f"b-{kernel_mark()}-dead", "not-ours"):
        (staging / name).mkdir()
    with ThreadPoolExecutor(1) as pool, workshop.turn("c"), workshop.folder("c") as mine:
        pool.submit(workshop.sweep).result(60)
        assert {one.name for one in staging.iterdir()} == {"not-ours", mine.name}
        (staging / f"c-{kernel_mark()}-dead").mkdir()
        with workshop.turn("d", 0):
            pass
    assert mine.exists() is False
    with workshop.turn("c"):
        workshop.sweep("c")
    assert [one.name for one in staging.iterdir()] == ["not-ours"]
    assert list((tmp_path / "locks").iterdir()) == []


def test_each_key_has_a_lock(workshop: Workshop) -> None:
    with ThreadPoolExecutor(1) as pool, workshop.turn("a"):
        pool.submit(lambda: workshop.turn("b", 0).__enter__().release()).result(60)
        with pytest.raises(TimeoutError):
            pool.submit(lambda: workshop.turn("a", 0).__enter__()).result(60)


@pytest.mark.parametrize("key", ["", "a"])
def test_what_another_machine_makes_is_left_alone_for_a_day(
    workshop: Workshop, tmp_path: Path, key: str
) -> None:
    """Where each machine has locks of its own, those of another one look free."""
    theirs = tmp_path / "staging" / "a-0f0f0f0f-random"
    theirs.mkdir()
    workshop.sweep(key)
    assert theirs.exists()
    os.utime(theirs, (time.time() - 90_000,) * 2)
    workshop.sweep(key)
    assert not theirs.exists()
