"""Devices that lack what a launch asks for: every backend says the same, when the device is prepared."""

from __future__ import annotations

import contextlib

import pytest

from trunnion.contract.spec import Target
from trunnion.errors import DeviceRequirementError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.testing.machine import synthetic_image

DEVICE = "device 1, of compute capability 8.0"
HINT = "launch on a device that has it, or leave the attribute out"


def program(**attributes):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    builder.launch("k", (), (4, 2), 1, **attributes)
    return builder.build()


WANTING = [
    ("cluster", {"cluster": (2, 1)}),
    ("cluster", {"cluster": (2, 1), "preferred_cluster": (4, 1), "scheduling_policy": "spread"}),
    ("preferred_cluster", {"cluster": 1, "preferred_cluster": (2, 1), "pdl": True}),
    ("scheduling_policy", {"cluster": 1, "scheduling_policy": "spread"}),
]


@pytest.mark.parametrize(("field", "attributes"), WANTING)
def test_a_device_without_clusters_is_a_device_requirement(simulator, every_backend, field, attributes):
    said = []
    with every_backend.loaded(program(**attributes)) as pair:
        for (_, loaded), prepare in zip(pair.loaded * 2, _ways(len(pair.loaded)), strict=True):
            with simulator.configured(arch="sm_80"), pytest.raises(DeviceRequirementError) as caught:
                prepare(loaded)
            error = caught.value
            said.append((str(error), error.requirement, error.got, error.hint))
        for _, loaded in pair.loaded:  # nothing is kept of a preparation that failed
            loaded.preload(1)
    needs = f"compute capability 9.0 for the launch attribute {field}"
    assert set(said) == {(f"needs {needs}, got {DEVICE}; {HINT}", needs, DEVICE, HINT)}


def _ways(count):
    return (lambda loaded: loaded.preload(1),) * count + (lambda loaded: loaded.call((), device=1),) * count


@pytest.mark.parametrize(
    "attributes", [{"cluster": 1}, {"cluster": (1, 1, 1), "preferred_cluster": (1, 1)}, {"pdl": True}]
)
def test_a_cluster_of_one_block_needs_no_clusters(simulator, every_backend, attributes):
    given = program(**attributes)
    image = synthetic_image(given, Target("cuda", "sm_80"))
    with simulator.configured(arch="sm_80"):
        for harness in every_backend.harnesses:
            with contextlib.closing(harness.load(harness.build(given, image))) as loaded:
                simulator.clear_trace()
                loaded.call((), device=1)
                assert len(harness.observed_launches()) == 1


def test_a_driver_that_is_too_old_is_told_before_the_device(simulator, every_backend):
    with every_backend.loaded(program(cluster=(2, 1), preferred_cluster=(4, 1))) as pair:
        said = set()
        for _, loaded in pair.loaded:
            with (
                simulator.configured(driver_version=12040),
                pytest.raises(DeviceRequirementError) as caught,
            ):
                loaded.preload(1)
            said.add(str(caught.value))
    (text,) = said
    assert text.startswith(
        "needs CUDA 12.8 for the launch attribute preferred_cluster, got a driver for CUDA 12.4"
    )
