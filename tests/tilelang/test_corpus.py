"""Every kernel of the corpus says of itself what the others rely on."""

from __future__ import annotations

import pytest
import torch
from tilelang_corpus.corpus import CORPUS

SEEDS = range(4)


@pytest.fixture(params=CORPUS)
def entry(request):
    return CORPUS[request.param]


def test_its_calls(entry):
    """Arguments and outputs together are the parameters, and the reference says what comes out of each call."""
    parameters = len(entry.make().params)
    assert all(-parameters <= index < parameters for index in entry.out_idx)
    for seed in SEEDS:
        given = entry.arguments(seed)
        assert len(given) == parameters - len(entry.out_idx)
        expected = entry.reference(*given)
        assert len(entry.results(given, expected[: len(entry.out_idx)])) == len(expected)
        for index, result in zip(entry.written, expected[len(entry.out_idx) :], strict=True):
            assert (result.shape, result.dtype) == (given[index].shape, given[index].dtype)


def test_a_seed_is_a_call(entry):
    def drawn(seed):
        return [
            x.tolist() if isinstance(x, torch.Tensor) and x.dtype.itemsize > 1 else x
            for x in entry.arguments(seed)
        ]

    def told(seed):
        return repr([None if isinstance(x, torch.Tensor) else x for x in drawn(seed)])

    assert told(1) == told(1)
    assert len({repr(drawn(seed)) for seed in SEEDS}) > 1


def test_the_names():
    assert len(CORPUS) >= 34
    assert all(name.isidentifier() and name == entry.name for name, entry in CORPUS.items())


def test_dynamic_sizes_are_not_always_the_same():
    several = 0
    for entry in CORPUS.values():
        shapes = {
            tuple(tuple(x.shape) for x in entry.arguments(seed) if isinstance(x, torch.Tensor))
            for seed in SEEDS
        }
        several += len(shapes) > 1
    assert several > 25


def test_none_is_passed_for_a_nullable_buffer():
    kinds = {type(CORPUS["unused_bias"].arguments(seed)[0]) for seed in SEEDS}
    assert kinds == {type(None), torch.Tensor}


def test_addresses_are_numbers():
    entry = CORPUS["addresses"]
    given = entry.arguments(0)
    assert entry.passed(given) == (given[0].data_ptr(), given[1].data_ptr(), given[2])
