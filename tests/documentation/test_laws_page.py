"""The manual's page of laws says what the suite checks: the same ids, the same sentences, in the same order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trunnion.testing.laws import catalogue
from trunnion.testing.ways import WAYS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "laws.md"
_WAY = re.compile(r"^\| `([a-z-]+)` \| (.*?) \|$", re.MULTILINE)
_ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)


def test_the_page_lists_every_law_in_its_own_words() -> None:
    rows = _ROW.findall(PAGE.read_text("utf-8"))
    laws = catalogue().laws.values()
    assert rows == [(law.id, law.sentence, ", ".join(sorted(law.requires)) or "—") for law in laws]


def test_the_page_lists_every_way_in() -> None:
    rows = _WAY.findall(PAGE.read_text("utf-8"))
    assert rows == [(way.id, way.sentence) for way in WAYS.values()]


@pytest.mark.parametrize(
    ("tier", "said"), [("gpu", "of the laws are checked so"), ("cpu", "of the laws ask for no more")]
)
def test_so_many_laws_are_of_a_tier(tier: str, said: str) -> None:
    count = sum(law.is_of(tier) for law in catalogue().laws.values())
    assert f"\n{count} {said}" in PAGE.read_text("utf-8")
