"""What is refused: statements that a program cannot say, and calls that break an author's conditions."""

from __future__ import annotations

import pytest
import torch
from tilelang_corpus.corpus import CORPUS, TARGET
from tilelang_host.bench import synthetic
from tilelang_host.values import HostAssertion

from trunnion.errors import ArgumentError
from trunnion_tilelang import UnsupportedStatementError, from_artifact

STATEMENTS = {
    "repeated_as_told": ("for step in range(steps)", "repeated_as_told_kernel"),
    "two_windows": ("__tvm_cuda_stream_set_access_policy_window", "0.25"),
    "if_more_than_half": ("if T.float32(0.5) < share", "if_more_than_half_kernel"),
}


@pytest.mark.parametrize("name", [name for name, entry in CORPUS.items() if entry.refused])
def test_a_refused_statement_is_named(name, lowered):
    words = STATEMENTS[name]
    with pytest.raises(UnsupportedStatementError) as caught:
        from_artifact(lowered(name), out_idx=CORPUS[name].out_idx)
    assert caught.value.function == name
    assert all(word in caught.value.statement and word in str(caught.value) for word in words)


@pytest.mark.parametrize(("length", "message"), [(300, "n % 128 == 0"), (128, "at least two blocks")])
def test_the_authors_conditions_are_checks(length, message, bench, harnesses):
    subject = bench("checked")
    for harness in harnesses:
        given = (harness.simulator.tensor(torch.zeros(length), 0),)
        with subject.loaded(harness, synthetic(subject.artifact, TARGET)) as loaded:
            observed = subject.call(harness, loaded, given, 0)
        assert isinstance(observed.error, ArgumentError)
        assert message in str(observed.error)
        with pytest.raises(HostAssertion, match=message):
            subject.expected(given, [harness.simulator.tensor(torch.zeros(length), 0)])
