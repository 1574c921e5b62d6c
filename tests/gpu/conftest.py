"""Tests that need a real GPU: marked as such, and never collected where the marker is deselected."""

from __future__ import annotations

import os
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
    """Return `trunnion.compile` for one backend after the other: each must pass every test.

    ``TRUNNION_PREBUILT`` names a folder of artifacts, each called ``<program>-<backend>``, that were built on a machine
    with the compilers that this one lacks; such a program is loaded.
    """

    def make(program, **options):
        prebuilt = Path(os.environ.get("TRUNNION_PREBUILT", "")) / f"{program.name}-{request.param}"
        if prebuilt.is_dir():
            return trunnion.load(prebuilt)
        # CuTeDSL's examples are Python that runs when it is compiled; it is ours.
        return trunnion.compile(program, request.param, trust=True, **options)

    return make
