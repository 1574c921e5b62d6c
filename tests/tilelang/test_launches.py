"""What each launch receives: the same from every backend, and what the interpreter of the host function says."""

from __future__ import annotations

import pytest
from tilelang_corpus.corpus import CORPUS, TARGET
from tilelang_host.bench import synthetic

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
