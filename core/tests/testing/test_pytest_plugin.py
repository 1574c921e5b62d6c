"""One item for a law and a backend."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trunnion.testing.laws import EXAMPLES, catalogue
from trunnion.testing.pytest_plugin import LawItem


def run(options: dict[str, str], count: int) -> list[int]:
    """Run an item with some of pytest's options, and return the seed that its law was checked with."""
    law, seeds = catalogue()["L1"], []

    def check(_harness: Any, *, seed: int) -> int:
        seeds.append(seed)
        return count

    item: Any = SimpleNamespace(
        law=SimpleNamespace(id=law.id, cost=law.cost, seed=law.seed, check=check),
        config=SimpleNamespace(getoption=options.get),
        user_properties=[],
        _harness=lambda: None,
    )
    LawItem.runtest(item)
    assert item.user_properties == [("examples", count)]
    return seeds


def test_a_law_has_its_own_seed_unless_hypothesis_is_given_one() -> None:
    law = catalogue()["L1"]
    assert run({}, EXAMPLES[law.cost]) == [law.seed()]
    assert run({"--hypothesis-seed": "7"}, EXAMPLES[law.cost]) == [law.seed(7)]


def test_too_few_examples_are_a_failure() -> None:
    with pytest.raises(pytest.fail.Exception, match="on 2 examples of 15"):
        run({}, 2)
