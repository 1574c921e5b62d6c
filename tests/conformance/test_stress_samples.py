"""A little of what make stress does a hundred thousand times: the trials themselves work, and find nothing."""

from __future__ import annotations

import pytest
from stress_trials.shard import run_shard


def test_some_documents(tmp_path):
    outcome = run_shard("documents", 1000, 500, tmp_path)
    assert not outcome.problems, "\n".join(outcome.problems)
    assert outcome.counts["refused"] > 300


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi"])
def test_some_wrong_calls(backend, tmp_path):
    outcome = run_shard("wrong_calls", 1000, 300, tmp_path, backend)
    assert not outcome.problems, "\n".join(outcome.problems)
    assert outcome.counts["refused"] == 300


def test_a_trial_that_dies_is_named(tmp_path):
    (problem,) = run_shard("planted", 7, 1, tmp_path, "dies").problems
    assert "seed 7, trial 3: the process ended with" in problem
    (problem,) = run_shard("planted", 7, 1, tmp_path, "slow").problems
    assert "seed 7, trial 3: " in problem
    assert "took" in problem
    assert "the fourth" in problem
