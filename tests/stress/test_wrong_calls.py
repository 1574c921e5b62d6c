"""10^5 wrong calls on each backend: none crashes, none is refused by an untyped error, none takes above 2 s."""

from __future__ import annotations

import pytest
from stress_trials.shard import run_shard

BACKENDS = {"nvrtc": 3, "tvm_ffi": 3, "tvm_ffi-cpu": 1, "cutedsl": 3, "acme": 2}
"""How many of the programs each can launch; the CPU's has a program of its own."""

SHARDS, CALLS = 4, 25_000


@pytest.mark.parametrize("seed", range(SHARDS))
@pytest.mark.parametrize("backend", BACKENDS)
def test_wrong_calls(backend, seed, tmp_path):
    outcome = run_shard("wrong_calls", seed, CALLS, tmp_path, backend)
    assert not outcome.problems, "\n".join(outcome.problems)
    assert outcome.counts["refused"] == CALLS
    assert outcome.counts["programs"] >= BACKENDS[backend]
    assert min(outcome.counts[way] for way in ("call", "entry", "bind", "preload")) > 0.03 * CALLS
