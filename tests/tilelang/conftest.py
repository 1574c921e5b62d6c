"""What the tests of TileLang's kernels share: the lowered corpus, and the backends on a simulated driver."""

from __future__ import annotations

import functools

import pytest
from tilelang_corpus.corpus import CORPUS
from tilelang_host.bench import Bench

from trunnion.registry import default_registry
from trunnion.testing.harness import Harness
from trunnion.testing.machine import SimulatedMachine

BACKENDS = ("nvrtc", "tvm_ffi", "cutedsl")


@pytest.fixture(scope="session")
def lowered():
    """Return what lowers an entry of the corpus, by name, once in a process."""
    return functools.cache(lambda name: CORPUS[name].lower())


@pytest.fixture(scope="session")
def bench(lowered):
    """Return what lowers and imports an entry of the corpus, by name, once in a process."""
    from trunnion_tilelang import from_artifact

    @functools.cache
    def made(name):
        entry = CORPUS[name]
        return Bench(entry, lowered(name), from_artifact(lowered(name), out_idx=entry.out_idx))

    return made


@pytest.fixture
def harnesses(simulator):
    """Return the backends."""
    specs = {spec.name: spec for spec in default_registry().backends()}
    return tuple(Harness(spec=specs[name], machine=SimulatedMachine(simulator)) for name in BACKENDS)
