"""The installed backends, on the simulated driver, for every test of this folder."""

from __future__ import annotations

import pytest

from trunnion.registry import default_registry
from trunnion.testing.harness import Harness
from trunnion.testing.kept_launchers import launcher_folder


@pytest.fixture(scope="session")
def harnesses(running_simulator):
    specs = [spec for spec in default_registry().backends() if spec.probe().usable]
    return {
        spec.name: Harness(spec=spec, simulator=running_simulator, kept=launcher_folder()) for spec in specs
    }


@pytest.fixture(scope="session")
def harness(harnesses):
    """One backend is enough where the laws themselves are under test: the one that programs are given to by default."""
    return max(harnesses.values(), key=lambda one: one.spec.auto_rank)
