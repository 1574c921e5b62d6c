"""The large kernels, which are only launched on a GPU: here they are lowered, and their sizes compared."""

from __future__ import annotations

import pytest
import torch
from tilelang_corpus.corpus import CORPUS
from tilelang_corpus.large import LARGE

from trunnion_tilelang import from_artifact


@pytest.fixture(params=LARGE)
def entry(request):
    return LARGE[request.param]


def test_a_program_takes_what_is_drawn(entry, monkeypatch):
    monkeypatch.setattr(
        torch,
        "randint",
        lambda high, low, shape=None, **_: torch.empty(low if shape is None else shape, device="meta"),
    )
    program = from_artifact(entry.lower(), out_idx=entry.out_idx)
    drawn = [tuple(value.shape) for value in entry.arguments(0, "meta")]
    declared = [tuple(int(extent.value) for extent in param.shape) for param in program.signature.params]
    assert drawn == declared


def test_they_are_no_part_of_the_corpus(entry):
    assert entry.name not in CORPUS
    assert entry.large
    assert entry.operations > 1e11
