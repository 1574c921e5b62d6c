"""The machinery of laws, on a backend that does nothing but can be told to err."""

from __future__ import annotations

import itertools
import weakref
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from trunnion.model.capability import Capability
from trunnion.testing import search
from trunnion.testing.laws import EXAMPLES, Law, LawViolation, catalogue, law, passing_over_what_is_there


@dataclass(frozen=True)
class Idle:
    """A backend that does nothing; a law's body is given the law's id in its place."""

    capabilities: frozenset = frozenset()
    made: Counter = field(default_factory=Counter)
    seen: list = field(default_factory=list)
    asked: set = field(default_factory=set)
    thorough: bool = False
    enough: object = None
    step: object = None
    opened: list = field(default_factory=list)
    taken: list = field(default_factory=list)
    name: str = "idle"
    machine: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(tier="sim"))

    def under(self, law_id, way):
        self.made[way] += 1
        return law_id


class Ring:
    """What refers to itself."""


def harness():
    return Idle()


def numbers_law(limit, seen):
    @law("X1", given=lambda _: st.integers(0, 1000), cost="pure", tier="any")
    def small(law_id, value):
        """Numbers are small."""
        seen.append(value)
        if value > limit:
            raise LawViolation(law_id, f"{value} is not small")

    return small


def test_what_an_example_leaves_is_collected_though_the_test_passes_over_what_was_there():
    left = []

    @law("X1", given=lambda _: st.integers(0, 1000), cost="pure", tier="any")
    def littering(law_id, value):
        """Nothing is left."""
        del law_id
        ring = Ring()
        ring.itself = ring
        left.append(weakref.ref(ring))

    with passing_over_what_is_there():
        littering.check(harness(), seed=1, examples=10)
        # The last few are still to be looked at.
        assert len(left) == 10
        assert sum(ring() is not None for ring in left) < 5


def test_a_law_counts_its_examples_and_follows_its_seed():
    first, again, other = [], [], []
    assert numbers_law(1000, first).check(harness(), seed=1).examples == EXAMPLES["pure"] == len(first)
    numbers_law(1000, again).check(harness(), seed=1)
    numbers_law(1000, other).check(harness(), seed=2)
    assert first == again != other


def test_a_law_has_a_seed_of_its_own_and_others_that_follow_from_what_is_given():
    one, another = catalogue()["L1"], catalogue()["L2"]
    assert one.seed() == one.seed(None) != another.seed()
    assert one.seed(7) == one.seed("7")
    assert len({one.seed(), one.seed(7), one.seed(8), another.seed(7)}) == 4


def test_what_says_nothing_about_a_law_does_not_count():
    seen = []

    @law("X5", given=lambda _: st.integers(0, 5), cost="pure", tier="any")
    def even(law_id, value):
        """Even numbers are seen."""
        assume(value % 2 == 0)
        seen.append(value)

    assert even.check(harness(), seed=1).examples == len(seen) == 3


def test_a_violation_names_its_law_and_is_shrunk():
    with pytest.raises(LawViolation, match="X1: 501 is not small") as caught:
        numbers_law(500, []).check(harness(), seed=1)
    assert caught.value.law_id == "X1"


def test_a_law_that_takes_long_is_red_all_the_same(monkeypatch):
    """Each look at the clock takes a second, so that little is left for making the example smaller."""
    monkeypatch.setattr(search, "monotonic", itertools.count().__next__)
    seen = []

    @law("X6", given=lambda _: st.lists(st.integers(0, 10**9), min_size=40), tier="any", cost="pure")
    def short(law_id, value):
        """Lists are short."""
        seen.append(value)
        raise LawViolation(law_id, f"got {len(value)}")

    with pytest.raises(LawViolation, match="got 40") as caught:
        short.check(harness(), seed=1)
    assert 2 <= len(seen) < 20
    assert "X6 on idle, by way of call: got 40\n" in caught.value.report
    assert caught.value.verdict.examples == 0


def test_whatever_else_is_raised_breaks_the_law_too_and_says_what_was_checked_until_then():
    @law("X7", given=lambda _: st.integers(0, 1000), cost="pure", tier="any")
    def divisible(law_id, value):
        """Numbers divide."""
        assume(value != 1)
        return 1 // (value < 500)

    with pytest.raises(LawViolation, match="X7: raised ZeroDivisionError") as caught:
        divisible.check(harness(), seed=1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "return 1 // (value < 500)" in caught.value.report
    assert "example = 500\n" in caught.value.report
    assert caught.value.verdict.made["call"] == caught.value.verdict.examples + 1


def test_one_example_is_checked_again():
    law_of_numbers = numbers_law(500, [])
    law_of_numbers.replay(harness(), 500)
    with pytest.raises(LawViolation, match="501 is not small"):
        law_of_numbers.replay(harness(), 501)


def test_an_example_is_told_with_what_breaks_the_law_alone():
    @law("X8", given=lambda _: st.just((3, 1, 7, 8)), tier="any", parts=lambda all_: ((one,) for one in all_))
    def few(law_id, values):
        """Numbers are below seven."""
        if max(values) > 6:
            raise LawViolation(law_id, f"{max(values)} of {len(values)}")

    with pytest.raises(LawViolation, match="X8: 7 of 1") as caught:
        few.check(harness(), seed=1)
    assert "example = (7,)\nreplay('idle', 'X8', example, way='call')" in caught.value.report


def test_what_holds_alone_is_drawn_again_with_what_came_before():
    left = [1, 1]  # hypothesis checks what it reports once more

    @law("X9", given=lambda _: st.integers(0, 1000), tier="any", cost="pure")
    def once_only(law_id, value):
        """It fails twice."""
        if left:
            left.pop()
            raise LawViolation(law_id, "red")

    with pytest.raises(LawViolation, match="X9: red") as caught:
        once_only.check(harness(), seed=1, shrink=False)
    assert "Checked alone, the example held" in caught.value.report
    assert "catalogue()['X9'].check(harness_of('idle'), seed=1, examples=100" in caught.value.report


def test_the_digest_says_what_was_drawn():
    digests = [numbers_law(1000, []).check(harness(), seed=seed).digest for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


def test_a_law_of_the_backend_itself_says_what_holds_without_it():
    def refuses(law_id, value):
        raise LawViolation(law_id, f"{value} is not refused")

    @law(
        "X4",
        given=lambda _: st.integers(0, 9),
        requires=frozenset({Capability.GRAPH_CAPTURE}),
        undeclared=refuses,
    )
    def captured(law_id, value):
        """Numbers are captured."""

    with pytest.raises(LawViolation, match="X4: 0 is not refused"):
        captured.check(harness(), seed=1)
    able = Idle(capabilities=frozenset({Capability.GRAPH_CAPTURE}))
    assert captured.check(able, seed=1, examples=5).examples >= 5


def test_a_law_needs_a_sentence_a_tier_and_a_cost():
    with pytest.raises(ValueError, match="no sentence"):
        law("X2", given=lambda _: st.none())(lambda _harness, _value: None)
    for wrong in ({"tier": "moon"}, {"cost": "free"}):
        with pytest.raises(ValueError, match="X3"):
            law("X3", given=lambda _: st.none(), **wrong)


def test_the_catalogue_holds_laws_with_sentences():
    laws = catalogue().laws
    assert len(laws) > 30
    for law_id, found in laws.items():
        assert isinstance(found, Law)
        assert found.id == law_id
        assert found.sentence[0].isupper()
        assert found.body.__module__.startswith("trunnion.testing.suite.test_")


def test_a_name_that_python_reads_as_another_goes_by_position():
    from trunnion.testing.suite.test_arguments import _first_named

    assert _first_named(["a", "b"]) == 0
    for name in ("ﬁ", "class", "__debug__", "out", "a=1, b", "\ud800", "\0", "x y"):
        assert _first_named(["a", name, "b"]) == 2
