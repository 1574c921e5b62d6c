from __future__ import annotations

from collections import Counter

import pytest

from launching.timing import (
    MOST_UNSYNCHRONISED,
    Rounds,
    Summary,
    interleave,
    quiet_rounds,
    summarise,
    summarise_difference,
)


class Clock:
    """A trial that takes what it is told, and writes down when it was timed."""

    def __init__(self, name: str, seconds_per_call: float, log: list[str]) -> None:
        self.name, self.seconds_per_call, self.log = name, seconds_per_call, log

    def once(self, word: int) -> None:
        raise AssertionError("a measurement does not check")

    def seconds(self, launches: int) -> float:
        assert launches <= MOST_UNSYNCHRONISED
        self.log.append(f"{self.name} {launches}")
        return launches * self.seconds_per_call


def test_quartiles_and_median() -> None:
    assert summarise([5.0, 1.0, 2.0, 4.0, 3.0]) == Summary(median=3.0, low=2.0, high=4.0, least=1.0)
    assert summarise([2.5]) == Summary(2.5, 2.5, 2.5, 2.5)


def test_a_difference_is_taken_round_by_round() -> None:
    raw = [1.0, 10.0, 100.0]  # the machine slows down, for both
    assert summarise_difference([value + 2 for value in raw], raw) == Summary(2.0, 2.0, 2.0, 2.0)


def test_samples_are_microseconds_of_one_call() -> None:
    samples = interleave({1: {"a": Clock("a", 3e-6, [])}}, lambda: None, Rounds(4, 50))
    assert samples[1]["a"] == pytest.approx([3.0] * 4)


def test_every_round_times_everything_once_between_synchronisations() -> None:
    log: list[str] = []
    trials = {name: Clock(name, 1e-6, log) for name in "abcd"}
    interleave({1: trials}, lambda: log.append("wait"), Rounds(30, 100))
    timed = [entry[0] for entry in log if entry.endswith(" 100")]
    rounds = [tuple(timed[i : i + 4]) for i in range(0, len(timed), 4)]
    assert len(rounds) == 30
    assert all(sorted(order) == list("abcd") for order in rounds)
    assert len(set(rounds)) > 10  # of 24 orders
    around = [(log[i - 1], log[i + 1]) for i, entry in enumerate(log) if entry.endswith(" 100")]
    assert Counter(around) == {("wait", "wait"): 120}


def test_groups_take_turns_so_that_a_slow_phase_hits_all() -> None:
    log: list[str] = []
    groups = {name: {name: Clock(name, 1e-6, log)} for name in "ab"}
    samples = interleave(groups, lambda: None, Rounds(50, 100))
    timed = "".join(entry[0] for entry in log if entry.endswith(" 100"))
    assert timed == "aaabbb" * 16 + "aabb"
    assert {key: len(samples[key][key]) for key in groups} == {"a": 50, "b": 50}


def test_rounds_in_a_slow_phase_do_not_count() -> None:
    assert quiet_rounds([1.0, 1.05, 2.0, 1.9, 0.98, 1.1]) == (0, 1, 4, 5)
    assert quiet_rounds([3.0]) == (0,)
    # One lucky sample in many is not the machine's full speed.
    assert quiet_rounds([0.1, *[1.0] * 19]) == tuple(range(20))


@pytest.mark.parametrize(("rounds", "launches"), [(0, 1), (1, 0), (1, MOST_UNSYNCHRONISED + 1)])
def test_refuses_what_cannot_be_measured(rounds: int, launches: int) -> None:
    with pytest.raises(ValueError, match=f"{rounds} rounds of {launches} launches"):
        Rounds(rounds, launches)
