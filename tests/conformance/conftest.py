"""The installed backends and core's interpreter, on the simulated driver, for every test of this folder."""

from __future__ import annotations

import pytest
from seeds import SeedsToTry
from twins.interpreted import interpreted_backend

from trunnion.registry import default_registry
from trunnion.testing.harness import Harness
from trunnion.testing.kept_launchers import launcher_folder
from trunnion.testing.laws import passing_over_what_is_there
from trunnion.testing.machine import SimulatedMachine


@pytest.fixture(autouse=True)
def _passed_over():
    """Let the garbage collector look at what a test makes alone, and take up all of that behind it.

    What thousands of tests have left there takes it a second each time, and some laws ask it after each failure. A red
    law's traceback and the contents of memory, hundreds of MB, refer to one another.
    """
    with passing_over_what_is_there():
        yield


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
