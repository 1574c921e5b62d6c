"""The installed backends and core's interpreter, on the simulated driver, for every test of this folder."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

import pytest
from seeds import SeedsToTry
from twins.interpreted import interpreted_backend

from trunnion.registry import default_registry
from trunnion.testing.harness import Harness
from trunnion.testing.kept_launchers import launcher_folder
from trunnion.testing.machine import SimulatedMachine

MUCH = 1 << 30
"""Bytes that tests may leave until the garbage collector is asked to look at all there is, which takes it seconds."""


def resident():
    """Return the bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.fixture(scope="session")
def least_resident():
    """Return a list of one number: the bytes that this process had when its garbage was taken up last."""
    return [resident()]


@pytest.fixture(autouse=True)
def _collected(least_resident):
    """Take up what red laws leave, once it is much: tracebacks and the contents of memory refer to one another."""
    yield
    if resident() > least_resident[0] + MUCH:
        gc.collect()
        least_resident[0] = resident()


@pytest.fixture(scope="session")
def harnesses(running_simulator, explored):
    specs = [spec for spec in default_registry().backends() if spec.probe().usable]
    specs.append(interpreted_backend())
    # What is drawn once only must not push out of the cache what every run needs.
    kept = explored / "launchers" if explored else launcher_folder()
    return {
        spec.name: Harness(spec=spec, machine=SimulatedMachine(running_simulator), kept=kept)
        for spec in specs
    }


@pytest.fixture
def seeds_to_try(request, explored):
    """Return a function that returns the `SeedsToTry` of a law on a backend."""
    chosen = request.config.getoption("--hypothesis-seed")
    return lambda name: SeedsToTry(chosen, explored / "seeds" / name if explored else None)


@pytest.fixture(scope="session")
def harness(harnesses):
    """One backend is enough where the laws themselves are under test: the one that programs are given to by default."""
    return max(harnesses.values(), key=lambda one: one.spec.auto_rank)
