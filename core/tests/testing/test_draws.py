"""Examples follow from their seed, whatever else the process has imported or drawn."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis import strategies as st

from trunnion.testing.draws import Drawn, for_examples
from trunnion.testing.laws import law

if TYPE_CHECKING:
    from pathlib import Path

_EXAMPLES = 200
_CONSTANTS = tuple(7_000_001 + 13 * index for index in range(50))
_INTEGERS = st.integers(0, 10**9)


def drawn() -> list[int]:
    """Return what a law of integers is checked on."""
    seen: list[int] = []

    @law("X1", given=lambda _: _INTEGERS)
    def remembered(_harness: Any, value: int) -> None:
        """Numbers are remembered."""
        seen.append(value)

    harness: Any = SimpleNamespace(capabilities=frozenset(), under=lambda law_id: law_id)
    assert remembered.check(harness, seed=1, examples=_EXAMPLES) == _EXAMPLES
    return seen


@pytest.fixture
def with_constants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import a module with constants, and have Hypothesis read it."""
    (tmp_path / "with_constants.py").write_text(f"NUMBERS = {_CONSTANTS}\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("with_constants")
    found: set[int] = set()

    @hypothesis.seed(1)
    @hypothesis.settings(database=None, max_examples=100, deadline=None)
    @hypothesis.given(st.lists(st.integers(0, 10**9), min_size=50, max_size=50))
    def read(values: list[int]) -> None:
        found.update(values)

    read()
    assert found & {*_CONSTANTS}  # else Hypothesis reads modules no more, and need not be kept from it


def test_a_seed_draws_the_same_whatever_is_imported_and_drawn(request: pytest.FixtureRequest) -> None:
    before = drawn()
    request.getfixturevalue("with_constants")
    assert drawn() == before


def test_constants_of_its_own_are_drawn_all_the_same() -> None:
    assert {65_535, 65_536, 65_537, 2**24, 10**6, 10**9} & {*drawn()}


def test_examples_without_a_law_follow_from_their_seed_too(request: pytest.FixtureRequest) -> None:
    def drawn_by(seed: int) -> list[int]:
        seen: list[int] = []
        for_examples(_INTEGERS, _EXAMPLES, seen.append, seed=seed)
        return seen

    before = drawn_by(1)
    request.getfixturevalue("with_constants")
    assert drawn_by(1) == before
    assert len(before) == _EXAMPLES
    assert drawn_by(2) != before


def test_an_example_that_fails_is_not_made_smaller_and_told_in_few_words() -> None:
    tried: list[str] = []

    def body(value: str) -> None:
        tried.append(value)
        assert len(value) < 20_000

    with pytest.raises(AssertionError):
        for_examples(st.just("ab" * 10_000), 5, body)
    assert len(tried) <= 2  # once, and once more to tell whether it always fails
    assert len(repr(Drawn("ab" * 10_000))) < 13_000
    assert len(repr(Drawn("a" * 10_000))) < 100
