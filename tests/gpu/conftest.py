"""Tests that need a real GPU: marked as such, and never collected where the marker is deselected."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

import trunnion

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="module", params=["nvrtc", "tvm_ffi", "cutedsl"])
def build(request):
    """Return `trunnion.compile` for one backend after the other: each must pass every test."""
    # CuTeDSL's examples are Python that runs when it is compiled; it is ours.
    return functools.partial(trunnion.compile, backend=request.param, trust=True)
