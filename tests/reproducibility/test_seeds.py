"""The seeds that a law is checked with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from seeds import SeedsToTry

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "seeds" / "L1-acme"


def tried(seeds: SeedsToTry, bad: str) -> list[str | None]:
    """Return the seeds up to the first that breaks a law."""
    found = []
    for seed in seeds:
        found.append(seed)
        if seed == bad:
            break
    return found


@pytest.mark.parametrize("chosen", [None, "7"])
def test_a_run_that_does_not_explore_has_one_and_keeps_none(tmp_path: Path, chosen: str | None) -> None:
    assert list(SeedsToTry(chosen, None)) == [chosen]
    assert not any(tmp_path.iterdir())


def test_a_seed_that_breaks_a_law_is_tried_first_until_it_does_not(kept: Path) -> None:
    assert tried(SeedsToTry("7", kept), bad="7") == ["7"]
    assert tried(SeedsToTry("8", kept), bad="7") == ["7"]
    assert tried(SeedsToTry("9", kept), bad="") == ["7", "8", "9"]
    assert not kept.exists()
    assert tried(SeedsToTry("10", kept), bad="") == ["10"]


def test_a_seed_at_which_the_process_ends_is_kept(kept: Path) -> None:
    for seed in SeedsToTry("7", kept):
        assert kept.read_text("utf-8").split() == [seed]


def test_without_a_new_seed_those_that_are_kept_are_tried(kept: Path) -> None:
    tried(SeedsToTry("7", kept), bad="7")
    assert tried(SeedsToTry(None, kept), bad="") == ["7"]
    assert list(SeedsToTry(None, kept)) == []
