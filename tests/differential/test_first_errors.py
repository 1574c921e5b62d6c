"""Calls in which two rules are broken at once: whoever launches tells the same one, that which the plan has first."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import pytest
from twins.mistakes import NAMES
from twins.stage import CUDA, HOST, KINDS, WAYS, refusal_of, staged

LEAST = 3
"""How often each kind of launcher meets each pair of refusals, with the parameters in one order: six times in both."""

REFUSALS = 50
"""How many there are."""


def alone(stage):
    """Return the refusal of each mistake by itself; it is the same by whatever way in, and whoever launches."""
    found = {}
    for mistake in stage.mistakes:
        told = {way: stage.told((mistake,), way) for way in stage.ways((mistake,))}
        if mistake.slot == "count":  # which is told otherwise of arguments that go by name
            told = {way: one for way, one in told.items() if way in ("call", "entry", "bind")}
        first = next(iter(told.values()))
        assert all(one == first for one in told.values()), (mistake, told)
        found[mistake] = refusal_of(first)
    return found


def pairs_by_refusal(found):
    """Return the pairs of mistakes that one call can make, by their refusals."""
    grouped = defaultdict(list)
    for one, other in itertools.combinations(found, 2):
        if one.slot != other.slot:
            grouped[frozenset((found[one], found[other]))].append((one, other))
    return grouped


def occurrences(grouped, variants):
    """Yield which call is made where: the refusals, the mistakes, the variant, and a number that chooses the way in."""
    number = 0
    for refusals, pairs in grouped.items():
        for index in range(max(LEAST, len(pairs))):
            pair = pairs[index % len(pairs)]
            fit = [variant for variant in variants if all(map(variant.allows, pair))]
            yield refusals, pair, fit[number % len(fit)], number
            number += 1


@pytest.mark.parametrize("order", [NAMES, NAMES[::-1]], ids=["forwards", "backwards"])
def test_of_two_broken_rules_every_backend_tells_the_same(with_sample, on_cpu, order):
    met, first = defaultdict(Counter), set()
    with staged((*with_sample.harnesses, on_cpu), order) as stages:
        found = {variant: alone(stage) for variant, stage in stages.items()}
        for variants in (CUDA, (HOST,)):
            grouped = pairs_by_refusal(found[variants[0]])
            for refusals, pair, variant, number in occurrences(grouped, variants):
                ways = stages[variant].ways(pair)
                first.add(refusal_of(stages[variant].told(pair, ways[number % len(ways)])))
                for backend in variant.backends:
                    met[KINDS[backend]][refusals] += 1
    assert met.keys() == set(KINDS.values())
    rare = [(kind, pair) for kind, counted in met.items() for pair, times in counted.items() if times < LEAST]
    assert not rare, f"met less often than {LEAST} times: {rare}"
    assert len(first) > len(set(found[CUDA[0]].values())) / 2, "the same few refusals hide the others"


def test_each_mistake_is_refused_for_what_it_is_called(with_sample, on_cpu):
    """Else the same refusal would be met under many names."""
    with staged((*with_sample.harnesses, on_cpu), NAMES) as stages:
        found = alone(stages[CUDA[0]])
    assert len(set(found.values())) >= REFUSALS


def test_what_was_right_is_launched_all_the_same(with_sample, on_cpu):
    with staged((*with_sample.harnesses, on_cpu), NAMES) as stages:
        for stage in stages.values():
            for way in WAYS:
                stage.launched(way)
