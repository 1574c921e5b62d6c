"""What each launch receives: the same from every backend, and what the interpreter of the host function says.

All that lowers the whole corpus is in this file, since a process lowers each kernel once.
"""

from __future__ import annotations

import pytest
from tilelang_corpus.corpus import CORPUS, TARGET
from tilelang_host.bench import on_device, synthetic
from tilelang_host.mistakes import mistakes

from trunnion.errors import ArgumentError, DeviceRequirementError

SEEDS = range(5)
IMPORTED = [name for name, entry in CORPUS.items() if not entry.refused]


@pytest.mark.parametrize("name", IMPORTED)
def test_every_backend_delivers_what_the_host_function_says(name, bench, harnesses):
    subject, image = bench(name), synthetic(bench(name).artifact, TARGET)
    calls = [(seed, seed % 2, subject.given(harnesses[0], seed, seed % 2)) for seed in SEEDS]
    found = {seed: set() for seed in SEEDS}
    for harness in harnesses:
        with subject.loaded(harness, image) as loaded:
            for seed, device, given in calls:
                observed = subject.call(harness, loaded, given, device)
                found[seed].add(subject.compared(observed, given))
                assert {launch.device for launch in observed.launches} <= {device}
                assert {launch.stream for launch in observed.launches} <= {harness.current_stream(device)}
    assert [len(same) for same in found.values()] == [1] * len(SEEDS)


@pytest.mark.parametrize("name", IMPORTED)
def test_what_the_host_function_refuses_is_refused(name, bench, harnesses):
    """And what goes through does what the host function would do."""
    subject, harness = bench(name), harnesses[0]
    refused = 0
    with subject.loaded(harness, synthetic(subject.artifact, TARGET)) as loaded:
        for place in range(len(subject.entry.arguments(1))):
            for wrong in mistakes(subject.entry.arguments(1)[place]):
                given = list(subject.entry.arguments(1))
                given[place] = wrong
                refused += _refused(subject, harness, loaded, given)
    assert refused


def _refused(subject, harness, loaded, given):
    placed = [on_device(harness, value, 0) for value in given]
    try:
        observed = subject.call(harness, loaded, placed, 0)
    except AttributeError:  # what is passed by its address is no tensor
        return 0
    if observed.error is None:
        subject.compared(observed, placed)
        return 0
    assert isinstance(observed.error, ArgumentError | DeviceRequirementError)
    assert not observed.launches
    return 1
