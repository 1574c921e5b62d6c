"""10^5 mutated documents: none crashes, none is refused by an untyped error, none takes above 2 s."""

from __future__ import annotations

import pytest
from stress_trials.shard import run_shard

SHARDS, TRIALS = 21, 5000


@pytest.mark.parametrize("seed", range(SHARDS))
def test_mutated_documents(seed, tmp_path):
    outcome = run_shard("documents", seed, TRIALS, tmp_path)
    assert not outcome.problems, "\n".join(outcome.problems)
    assert outcome.trials == TRIALS
    assert outcome.counts["refused"] > 0.6 * TRIALS
    assert min(outcome.counts[kind] for kind in ("program", "manifest", "call", "read")) > 0
