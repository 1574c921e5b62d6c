"""Devices that lack what a launch asks for: every backend says the same, when the device is prepared or called."""

from __future__ import annotations

import contextlib

import pytest

from trunnion.contract.spec import Target
from trunnion.errors import DeviceRequirementError, DriverError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ge
from trunnion.model.facts import device
from trunnion.sim.abi import FunctionAttribute
from trunnion.sim.trace import Allocated, AttributeSet
from trunnion.testing.machine import synthetic_image
from trunnion.testing.symbols import kernel_symbol

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


# Under a condition --------------------------------------------------------------------------------------------------

FLAG = Symbol("flag", min=0)
TOO_MUCH = (163 << 10) + 1  # for compute capability 8.0


def conditional(when=FLAG, **fields):
    """Return a program with a launch that always happens, an output and scratch, and a launch with a condition."""
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    builder.scalar("flag", "int32", symbol=FLAG)
    y, scratch = builder.output("y", "float32", (8,)), builder.workspace("w", "int8", (64,))
    builder.launch("always", (y, scratch), 1, 32)
    builder.launch("k", (scratch,), (16, 2), 1, when=when, **fields)
    return builder.build()


def refused(harness, call):
    """Return what a call was refused with; it did nothing.

    Its arguments are a number that is not 0, and device 1.
    """
    harness.machine.clear_trace()
    with pytest.raises(DeviceRequirementError) as caught:
        call((1,), device=1)
    # A call without tensors shows TVM-FFI an empty one, of which it learns the allocator.
    allocated = (event.nbytes for event in harness.machine.trace if isinstance(event, Allocated))
    assert not any(allocated)
    assert not harness.observed_launches()
    error = caught.value
    return str(error), error.requirement, error.got, error.hint


SKIPPED = [
    (
        {"dynamic_smem_bytes": TOO_MUCH},
        f"{TOO_MUCH} bytes of dynamic shared memory for kernel '{kernel_symbol(1)}'",
    ),
    ({"cluster": 16}, "compute capability 9.0 for the launch attribute cluster"),
    *((fields, f"compute capability 9.0 for the launch attribute {field}") for field, fields in WANTING),
]


@pytest.mark.parametrize(("fields", "needs"), SKIPPED)
def test_a_call_that_skips_a_launch_asks_for_nothing_of_it(simulator, every_backend, fields, needs):
    said = set()
    program = conditional(**fields)
    image = synthetic_image(program, Target("cuda", "sm_80"))
    with simulator.configured(arch="sm_80"):
        for harness in every_backend.harnesses:
            with harness.loaded(program, image) as loaded:
                loaded.preload(1)
                for _ in range(2):
                    simulator.clear_trace()
                    loaded.call((0,), device=1)
                    assert [one.kernel for one in harness.observed_launches()] == [kernel_symbol(0)]
                    said.add(refused(harness, loaded.call))
                    said.add(refused(harness, loaded.bind))
                    said.add(
                        refused(harness, lambda args, device, entry=loaded.entry: entry(*args, device=device))
                    )
    ((text, requirement, *_),) = said
    assert requirement == needs
    assert text.startswith(f"needs {needs}, got device 1, ")


def test_a_program_chooses_its_launch_by_the_device(simulator, every_backend):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    newer = ge(device.compute_capability_major, 9)
    builder.launch("older", (), 16, 1, when=1 - newer, dynamic_smem_bytes=100 << 10)
    builder.launch("newer", (), 16, 1, when=newer, dynamic_smem_bytes=200 << 10, cluster=16)
    program = builder.build()
    for arch, kernel, asked in (("sm_80", kernel_symbol(0), 1), ("sm_90a", kernel_symbol(1), 2)):
        with simulator.configured(arch=arch):
            for harness in every_backend.harnesses:
                with harness.loaded(program, synthetic_image(program, Target("cuda", arch))) as loaded:
                    harness.machine.clear_trace()
                    loaded.preload(1)
                    for _ in range(3):
                        loaded.call((), device=1)
                    assert [one.kernel for one in harness.observed_launches()] == [kernel] * 3
                    events = [event for event in harness.machine.trace if isinstance(event, AttributeSet)]
                    assert [event.kernel for event in events] == [kernel] * asked


def test_a_device_is_asked_once_by_the_call_that_needs_it(every_backend):
    with every_backend.loaded(conditional(dynamic_smem_bytes=100 << 10, cluster=16)) as pair:
        for harness, loaded in pair.loaded:
            asked = []
            for flag in (0, 1, 1, 0, 1):
                harness.machine.clear_trace()
                loaded.call((flag,), device=1)
                events = (event for event in harness.machine.trace if isinstance(event, AttributeSet))
                asked.append([(event.attribute, event.value) for event in events])
            once = [
                (FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10),
                (FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
            ]
            assert asked == [[], once, [], [], []], harness.name


def test_a_driver_that_is_too_old_for_a_launch_is_told_by_the_call(simulator, every_backend):
    said = set()
    with every_backend.loaded(conditional(cluster=2, preferred_cluster=4)) as pair:
        for harness, loaded in pair.loaded:
            with simulator.configured(driver_version=12040):
                loaded.preload(1)
                loaded.call((0,), device=1)
                said.add(refused(harness, loaded.call))
    ((text, *_),) = said
    assert text.startswith("needs CUDA 12.8 for the launch attribute preferred_cluster")


@pytest.mark.parametrize("prepared", [False, True])
def test_of_a_stream_that_is_none_every_backend_names_the_same_call(simulator, every_backend, prepared):
    said = []
    with every_backend.loaded(program()) as pair:
        for _, loaded in pair.loaded:
            if prepared:
                loaded.preload(1)
            with pytest.raises(DriverError) as caught:
                loaded.call((), device=1, stream=0x5EED5EED00)
            said.append(caught.value.call)
    assert set(said) == {"cuStreamIsCapturing"}
