"""What is constant of a launch with a condition: a device is asked once, by the first call in which it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import DeviceRequirementError, DriverError, LifecycleError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ge, lt
from trunnion.model.facts import device

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.model.program import KernelProgram

MAJOR = 75  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
SMEM, NON_PORTABLE = 8, 14  # CUfunction_attribute
MOST = 232_448
FLAG = Symbol("flag", min=0)

NEEDS = {
    "shared memory": ({"dynamic_smem_bytes": MOST + 1}, f"{MOST + 1} bytes of dynamic shared memory for kernel 'k'"),
    "cluster": ({"cluster": 2}, "compute capability 9.0 for the launch attribute cluster"),
    "wide cluster": ({"cluster": 16}, "compute capability 9.0 for the launch attribute cluster"),
    "preferred cluster": (
        {"cluster": 1, "preferred_cluster": 2},
        "CUDA 12.8 for the launch attribute preferred_cluster",
    ),
    "policy": ({"scheduling_policy": "spread"}, "compute capability 9.0 for the launch attribute scheduling_policy"),
    "carveout": ({"carveout": 50}, "CUDA 12.5 for the launch attribute carveout"),
}  # fmt: skip


def program(when: Any = FLAG, **fields: Any) -> KernelProgram:
    """Return a program with a launch that always happens, an output and scratch, and a launch with a condition."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.scalar("flag", "int32", symbol=FLAG)
    y, scratch = p.output("y", "float32", (8,)), p.workspace("w", "int8", (64,))
    p.launch("always", (y, scratch), 1, 32)
    p.launch("k", (scratch,), 16, 32, when=when, **fields)
    return p.build()


def small(rig: Any) -> Any:
    """Let a rig's device and driver have little."""
    rig.facade.attributes[MAJOR] = 8
    rig.facade.version = 12040

    def refuse(_kernel: str, _device: int, attribute: int, value: int) -> None:
        if attribute == SMEM and value > MOST:
            raise DriverError("cuKernelSetAttribute", 1, "CUDA_ERROR_INVALID_VALUE")

    rig.facade.on["set_kernel_attribute"] = refuse
    return rig


def call(rig: Any, flag: int) -> Any:
    return rig.program.call((flag,), stream=9, device=0)


@pytest.mark.parametrize("lacking", NEEDS)
def test_a_device_that_lacks_it_refuses_the_calls_in_which_it_happens(any_rig: Any, lacking: str) -> None:
    fields, said = NEEDS[lacking]
    r = small(any_rig(program(**fields)))
    r.program.preload(0)
    call(r, 0)
    before = len(r.facade.launched), len(r.runtime.allocated)
    for way in (call, call, lambda r, flag: r.program.bind((flag,), stream=9, device=0)):
        with pytest.raises(DeviceRequirementError) as caught:
            way(r, 1)
        assert caught.value.requirement == said
    assert (len(r.facade.launched), len(r.runtime.allocated)) == before, "nothing of a refused call is done"
    call(r, 0)
    assert [one.kernel for one in r.facade.launched] == ["always", "always"]


@pytest.mark.parametrize("lacking", NEEDS)
def test_without_a_condition_the_same_is_said_when_a_device_is_prepared(any_rig: Any, lacking: str) -> None:
    fields, said = NEEDS[lacking]
    r = small(any_rig(program(None, **fields)))
    with pytest.raises(DeviceRequirementError) as caught:
        r.program.preload(0)
    assert caught.value.requirement == said


@pytest.mark.parametrize("when", [0, FLAG * 0])
def test_a_launch_that_never_happens_asks_for_nothing(any_rig: Any, when: Any) -> None:
    r = small(any_rig(program(when, cluster=16, dynamic_smem_bytes=MOST + 1)))
    call(r, 1)
    assert (r.facade.count("set_kernel_attribute"), len(r.facade.launched)) == (0, 1)


def test_a_condition_that_always_holds_is_none(any_rig: Any) -> None:
    r = small(any_rig(program(1, cluster=2)))
    with pytest.raises(DeviceRequirementError):
        r.program.preload(0)


def test_an_empty_grid_asks_for_nothing_either(any_rig: Any) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.scalar("flag", "int32", symbol=FLAG)
    p.launch("k", (), (FLAG - 1) * 2, 32, when=FLAG, cluster=2)
    r = small(any_rig(p.build()))
    for flag in (0, 1):
        call(r, flag)
    with pytest.raises(DeviceRequirementError):
        call(r, 2)


def test_a_condition_over_the_device_chooses_a_launch_for_it(any_rig: Any) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    major = device.compute_capability_major
    p.launch("older", (), 16, 32, when=lt(major, 9), dynamic_smem_bytes=1024)
    p.launch("newer", (), 16, 32, when=ge(major, 9), cluster=16, dynamic_smem_bytes=2048)
    chosen = p.build()
    for capability, kernel in ((8, "older"), (9, "newer")):
        r = any_rig(chosen)
        r.facade.attributes[MAJOR] = capability
        r.program.preload(0)
        for _ in range(2):
            r.program.call((), stream=9, device=0)
        assert {one.kernel for one in r.facade.launched} == {kernel}
        assert {one[1] for one in r.facade.log if one[0] == "set_kernel_attribute"} == {kernel}


def test_a_device_is_asked_once_by_the_first_call_that_needs_it(any_rig: Callable[..., Any]) -> None:
    r = any_rig(program(cluster=16, dynamic_smem_bytes=MOST))
    r.program.preload(0)
    seen = []
    for flag in (0, 1, 1, 0, 1):
        call(r, flag)
        seen.append([one[2:] for one in r.facade.log if one[0] == "set_kernel_attribute"])
        r.facade.log.clear()
    assert seen == [[], [(0, SMEM, MOST), (0, NON_PORTABLE, 1)], [], [], []]
    r.facade.stream_devices[10] = 1
    r.program.call((1,), stream=10, device=1)
    assert {one[2] for one in r.facade.log if one[0] == "set_kernel_attribute"} == {1}


def test_what_is_allowed_already_is_not_asked_for_again(any_rig: Callable[..., Any]) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.scalar("flag", "int32", symbol=FLAG)
    p.launch("k", (), 1, 32, dynamic_smem_bytes=2048)
    p.launch("k", (), 1, 32, dynamic_smem_bytes=1024, when=FLAG)
    r = any_rig(p.build())
    call(r, 1)
    assert r.facade.count("set_kernel_attribute") == 1


def test_a_bound_launch_asks_when_it_is_bound(any_rig: Callable[..., Any]) -> None:
    r = any_rig(program(cluster=2, dynamic_smem_bytes=MOST))
    bound = r.program.bind((1,), stream=9, device=0)
    asked = r.facade.count("set_kernel_attribute")
    bound()
    assert asked == r.facade.count("set_kernel_attribute") == 1


def test_nothing_is_asked_for_a_program_that_was_closed(any_rig: Callable[..., Any]) -> None:
    r = any_rig(program(dynamic_smem_bytes=MOST))
    call(r, 0)
    context = r.program._context
    r.program.close()
    with pytest.raises(LifecycleError):
        context.prepare_launch(0, 1)
    assert r.facade.count("set_kernel_attribute") == 0
