"""The simulated driver and the installed backends, for every test of this folder."""

from __future__ import annotations

import pytest

from trunnion import sim
from trunnion.registry import default_registry
from trunnion.testing.harness import Harness


@pytest.fixture(scope="session")
def simulator():
    running = sim.active() or sim.start(devices=2)
    assert running.devices >= 2, "another test started the simulator of this process with one device"
    return running


@pytest.fixture(scope="session")
def harnesses(simulator):
    specs = [spec for spec in default_registry().backends() if spec.probe().usable]
    return {spec.name: Harness(spec=spec, simulator=simulator) for spec in specs}


@pytest.fixture(scope="session")
def harness(harnesses):
    """One backend is enough where the laws themselves are under test."""
    return next(iter(harnesses.values()))
