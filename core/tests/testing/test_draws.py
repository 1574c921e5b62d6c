"""Examples follow from their seed, whatever else the process has imported or drawn."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from trunnion.testing.draws import Drawn, for_examples
from trunnion.testing.laws import law

_EXAMPLES = 200
_CONSTANTS = tuple(7_000_001 + 13 * index for index in range(50))
_INTEGERS = st.integers(0, 10**9)


@dataclass(frozen=True)
class Idle:
    """A backend that does nothing."""

    capabilities: frozenset[Any] = frozenset()
    made: Counter[str] = field(default_factory=Counter)
    seen: list[Any] = field(default_factory=list)
    asked: set[Any] = field(default_factory=set)
    thorough: bool = False
    enough: Any = None
    step: Any = None
    opened: list[Any] = field(default_factory=list)
    taken: list[Any] = field(default_factory=list)
    name: str = "idle"
    machine: Any = field(default_factory=lambda: SimpleNamespace(tier="sim"))

    def under(self, law_id: str, way: str) -> str:
        """Return the law's id in the place of a harness."""
        self.made[way] += 1
        return law_id


def drawn() -> list[int]:
    """Return what a law of integers is checked on."""
    seen: list[int] = []

    @law("X1", given=lambda _: _INTEGERS)
    def remembered(_harness: Any, value: int) -> None:
        """Numbers are remembered."""
        seen.append(value)

    harness: Any = Idle()
    assert remembered.check(harness, seed=1, examples=_EXAMPLES).examples == _EXAMPLES
    return seen


def drawn_by(seed: int) -> list[int]:
    """Return examples without a law."""
    seen: list[int] = []
    for_examples(_INTEGERS, _EXAMPLES, seen.append, seed=seed)
    return seen


def read_constants(folder: str) -> set[int]:
    """Import a module with constants, and return those that Hypothesis draws of it."""
    (Path(folder) / "with_constants.py").write_text(f"NUMBERS = {_CONSTANTS}\n", "utf-8")
    sys.path.insert(0, folder)
    importlib.import_module("with_constants")
    found: set[int] = set()

    @hypothesis.seed(1)
    @hypothesis.settings(max_examples=100, deadline=None)
    @hypothesis.given(st.lists(st.integers(0, 10**9), min_size=50, max_size=50))
    def read(values: list[int]) -> None:
        found.update(values)

    read()
    return found & {*_CONSTANTS}


CHILD = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("subject", sys.argv[1])
subject = sys.modules["subject"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(subject)
before = subject.drawn(), subject.drawn_by(1)
read = subject.read_constants(sys.argv[2])
print(json.dumps([*before, sorted(read), subject.drawn(), subject.drawn_by(1)]))
"""


def test_a_seed_draws_the_same_whatever_is_imported_and_drawn(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, __file__, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    *before, read, law_after, examples_after = json.loads(done.stdout)
    assert read  # else Hypothesis reads modules no more, and need not be kept from it
    assert before == [law_after, examples_after] == [drawn(), drawn_by(1)]


def test_constants_of_its_own_are_drawn_all_the_same() -> None:
    assert {65_535, 65_536, 65_537, 2**24, 10**6, 10**9} & {*drawn()}


def test_another_seed_draws_other_examples() -> None:
    assert len(drawn_by(1)) == _EXAMPLES
    assert drawn_by(2) != drawn_by(1)


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
