"""What cannot be right is refused: statements that a program cannot say, and calls that the host function refuses."""

from __future__ import annotations

import pytest
import torch
from tilelang_corpus.corpus import CORPUS, TARGET
from tilelang_host.bench import on_device, synthetic
from tilelang_host.values import HostAssertion

from trunnion.errors import ArgumentError, DeviceRequirementError
from trunnion_tilelang import UnsupportedStatementError, from_artifact

IMPORTED = [name for name, entry in CORPUS.items() if not entry.refused]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("repeated_as_told", ("for step in range(steps)", "repeated_as_told_kernel")),
        ("two_windows", ("__tvm_cuda_stream_set_access_policy_window", "0.25")),
    ],
)
def test_a_refused_statement_is_named(name, words, lowered):
    assert CORPUS[name].refused
    with pytest.raises(UnsupportedStatementError) as caught:
        from_artifact(lowered(name), out_idx=CORPUS[name].out_idx)
    assert caught.value.function == name
    assert all(word in caught.value.statement and word in str(caught.value) for word in words)


def test_each_entry_that_is_refused_is_tried_here():
    assert {name for name, entry in CORPUS.items() if entry.refused} == {"repeated_as_told", "two_windows"}


def mistakes(value):
    """Yield what else might be passed for an argument."""
    if isinstance(value, torch.Tensor):
        strides = tuple(2 * stride for stride in value.stride())
        last = sum((extent - 1) * stride for extent, stride in zip(value.shape, strides, strict=True))
        yield from (
            None,
            3,
            torch.zeros(value.shape, dtype=torch.float32 if value.dtype is torch.int64 else torch.int64),
            value.unsqueeze(0),
            value.new_zeros((value.shape[0] + 1, *value.shape[1:])),
            value.new_zeros((*value.shape[:-1], value.shape[-1] + 1)),
            value.new_zeros(last + 1).as_strided(value.shape, strides),
        )
    else:
        yield from (None, "text", torch.zeros(3))
        if not isinstance(value, float):
            yield from (1.5, 2**70, -(2**70))


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
