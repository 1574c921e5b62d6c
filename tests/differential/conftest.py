"""The backends that are compared, on one simulated driver."""

from __future__ import annotations

import pytest
from twins.interpreted import interpreted_backend
from twins.twins import Twins

from trunnion.registry import default_registry
from trunnion.testing.harness import Harness
from trunnion.testing.kept_launchers import launcher_folder
from trunnion.testing.machine import SimulatedMachine

NAMES = ("nvrtc", "tvm_ffi")


@pytest.fixture
def twins(simulator):
    """Return the Python launcher's backend and the C++ launcher's."""
    specs = {spec.name: spec for spec in default_registry().backends()}
    kept = launcher_folder()
    return Twins(
        tuple(Harness(spec=specs[name], machine=SimulatedMachine(simulator), kept=kept) for name in NAMES)
    )


@pytest.fixture
def every_backend(simulator):
    """Return every installed backend that launches on CUDA devices, and the interpreter."""
    specs = [spec for spec in default_registry().backends() if "cuda" in spec.targets and spec.probe().usable]
    specs.append(interpreted_backend())
    kept = launcher_folder()
    return Twins(tuple(Harness(spec=spec, machine=SimulatedMachine(simulator), kept=kept) for spec in specs))
