"""What is dealt round: each example needs what those before it did not, and the last one all that is left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from trunnion.testing.dealing import Deal, due
from trunnion.testing.laws import EXAMPLES, LawViolation, law

LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")


def test_as_much_is_due_as_lets_the_rest_of_the_examples_meet_everything():
    assert due("abcdef", set(), 6) == ("a",)
    assert due("abcdef", set(), 4) == ("a", "b")
    assert due("abcdef", {"a", "c"}, 4) == ("b",)
    assert due("abcdef", set("abcdef"), 4) == ()


def test_no_example_needs_very_much():
    assert due("abcdefgh", set(), 1) == ("a", "b", "c")


@dataclass(frozen=True)
class Idle:
    """A backend that declares the letters; a law's body is given the law's id and the way in its place."""

    capabilities: frozenset = LETTERS
    made: Counter = field(default_factory=Counter)
    seen: list = field(default_factory=list)
    opened: list = field(default_factory=list)
    taken: list = field(default_factory=list)
    asked: set = field(default_factory=set)
    thorough: bool = False
    enough: object = None
    step: object = None
    name: str = "idle"
    machine: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(tier="sim"))

    def under(self, law_id, way):
        self.made[way] += 1
        return law_id, way


DEAL = Deal(
    lambda harness: harness.capabilities,
    lambda _, required: st.tuples(st.just(frozenset(required)), st.integers(0, 1000)),
    lambda example: example[0],
)
"""What an example needs is what is dealt to it, and nothing more."""


def dealing(checked):
    @law("X1", given=DEAL.given, deal=DEAL)
    def dealt(place, example):
        """Something holds."""
        checked(*place, *example)

    return dealt


@pytest.mark.parametrize("seed", [None, 1, 2, 2**32 - 1])
def test_the_default_examples_of_a_law_meet_all_that_is_dealt(seed):
    met, ways = set(), Counter()

    def check(law_id, way, needed, number):
        del law_id, number
        met.update(needed)
        ways[way] += 1

    verdict = dealing(check).check(Idle(), seed=seed)
    assert EXAMPLES["launcher"] <= verdict.examples == sum(ways.values())
    assert verdict.met.keys() == met == LETTERS
    assert min(ways.values()) >= 2


def test_an_example_that_says_nothing_is_drawn_anew_with_what_was_due():
    met = set()

    def check(law_id, way, needed, number):
        del law_id, way
        assume(number % 3)
        met.update(needed)

    verdict = dealing(check).check(Idle())
    assert verdict.examples >= EXAMPLES["launcher"]
    assert verdict.met.keys() == met == LETTERS


def test_equal_seeds_deal_equal_examples_and_others_deal_others():
    def drawn(seed):
        examples = []
        dealing(lambda *example: examples.append(example)).check(Idle(), seed=seed)
        return examples

    assert drawn(1) == drawn(1) != drawn(2)


def test_when_thorough_each_way_meets_all_of_it():
    met = {}
    dealing(lambda _, way, needed, __: met.setdefault(way, set()).update(needed)).check(Idle(), thorough=True)
    assert len(met) > 2
    assert all(needed == LETTERS for needed in met.values())


def test_a_dealt_example_that_breaks_the_law_is_found_and_made_smaller():
    def check(law_id, way, needed, number):
        del way
        if "q" in needed and number > 3:
            raise LawViolation(law_id, f"{number} is not small")

    with pytest.raises(LawViolation, match="4 is not small"):
        dealing(check).check(Idle())
