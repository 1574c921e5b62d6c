"""The backends that are compared, on one simulated driver."""

from __future__ import annotations

import pytest
from trunnion_acme.hooks import SPEC as SAMPLE
from twins.interpreted import interpreted_backend
from twins.twins import Twins

from trunnion.registry import default_registry
from trunnion.testing.harness import Harness
from trunnion.testing.host_machine import HostMachine
from trunnion.testing.kept_launchers import launcher_folder
from trunnion.testing.machine import SimulatedMachine

NAMES = ("nvrtc", "tvm_ffi")


@pytest.fixture
def twins(simulator):
    """Return the Python launcher's backend and the C++ launcher's."""
    specs = {spec.name: spec for spec in default_registry().backends()}
    return Twins(tuple(harness_of(specs[name], simulator) for name in NAMES))


@pytest.fixture
def every_backend(simulator):
    """Return every installed backend that launches on CUDA devices, and the interpreter."""
    specs = [spec for spec in default_registry().backends() if "cuda" in spec.targets and spec.probe().usable]
    specs.append(interpreted_backend())
    return Twins(tuple(harness_of(spec, simulator) for spec in specs))


@pytest.fixture
def with_sample(simulator, every_backend):
    """Return all of them and the manual's sample backend, which declares no access-policy windows."""
    return Twins((*every_backend.harnesses, harness_of(SAMPLE, simulator)))


@pytest.fixture
def on_cpu():
    """Return the backend that launches on the CPU too, there."""
    specs = {spec.name: spec for spec in default_registry().backends()}
    return Harness(spec=specs["tvm_ffi"], machine=HostMachine(), kept=launcher_folder())


def harness_of(spec, simulator):
    """Return a backend's harness, with launchers that may have been compiled before."""
    return Harness(spec=spec, machine=SimulatedMachine(simulator), kept=launcher_folder())
