"""Facts of a device in Python launchers, generated and interpreted: read once for each device, refused in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import ArgumentValueError, DeviceRequirementError, DriverError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import ceildiv, ge, lt, minimum, symbols
from trunnion.model.facts import device, occupancy

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram

(N,) = symbols("n")
SMEM = 65536


def persistent(*, checked: bool = False) -> KernelProgram:
    p = ProgramBuilder("persistent", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (N,))
    if checked:
        p.check(ge(device.compute_capability_major, 10), "capability 10 or later")
    resident = device.multiprocessor_count * occupancy("k", 256, SMEM)
    p.launch("k", (x, device.warp_size.cast("int32")), minimum(ceildiv(N, 4), resident), 256)
    return p.build()


def rig_of(any_rig: Any, program: KernelProgram) -> Any:
    r = any_rig(program)
    r.facade.attributes |= {16: 3, 10: 32}
    return r


def grids(r: Any) -> list[int]:
    return [launch.shape[0] for launch in r.facade.launched]


def test_a_grid_is_of_the_device_and_facts_are_read_once(any_rig: Any, tensor: Any) -> None:
    r = rig_of(any_rig, persistent())
    for extent in (4, 4096, 4096):
        r.program.call((tensor("float32", extent),), stream=9)
    assert grids(r) == [1, 6, 6]
    assert [call for call in r.facade.log if call[0] == "occupancy"] == [("occupancy", "k", 256, SMEM)]
    assert r.facade.log.count(("device_attribute", 0, 16)) == 1
    assert r.facade.launched[0].parameters[1][:4] == (32).to_bytes(4, "little")


def test_each_device_has_its_own(any_rig: Any, tensor: Any) -> None:
    r = rig_of(any_rig, persistent())
    r.program.call((tensor("float32", 4096),), stream=9)
    r.facade.attributes[16] = 5
    r.facade.stream_devices[11] = 1
    r.program.call((tensor("float32", 4096, ordinal=1),), stream=11)
    r.program.call((tensor("float32", 4096),), stream=9)
    assert grids(r) == [6, 10, 6]


def test_a_kernel_is_allowed_the_shared_memory_before_it_is_asked_about(any_rig: Any, tensor: Any) -> None:
    r = rig_of(any_rig, persistent())
    r.program.call((tensor("float32", 8),), stream=9)
    names = [call[0] for call in r.facade.log]
    assert names.index("set_kernel_attribute") < names.index("occupancy")
    assert ("set_kernel_attribute", "k", 0, 8, SMEM) in r.facade.log


def test_what_a_device_does_not_allow_it_holds_none_of(any_rig: Any, tensor: Any, monkeypatch: Any) -> None:
    r = rig_of(any_rig, persistent())

    def refuse(*_: Any) -> None:
        raise DriverError("cuKernelSetAttribute", 1, "CUDA_ERROR_INVALID_VALUE")

    monkeypatch.setattr(r.facade, "set_kernel_attribute", refuse)
    r.facade.occupancies["k"] = 0
    r.program.call((tensor("float32", 8),), stream=9)
    assert r.facade.launched == []


def test_a_driver_that_fails_is_named_and_asked_again(any_rig: Any, tensor: Any, monkeypatch: Any) -> None:
    r = rig_of(any_rig, persistent())
    true = r.facade.occupancy

    def fail(*_: Any) -> int:
        raise DriverError("cuOccupancyMaxActiveBlocksPerMultiprocessor", 999, "CUDA_ERROR_UNKNOWN")

    monkeypatch.setattr(r.facade, "occupancy", fail)
    with pytest.raises(DriverError, match="kernel is 'k' on device 0"):
        r.program.call((tensor("float32", 8),), stream=9)
    monkeypatch.setattr(r.facade, "occupancy", true)
    r.program.call((tensor("float32", 8),), stream=9)
    assert grids(r) == [2]


def test_a_device_that_answers_what_none_can_is_refused(any_rig: Any, tensor: Any) -> None:
    r = rig_of(any_rig, persistent())
    r.facade.attributes[16] = 0
    with pytest.raises(
        DeviceRequirementError, match=r"at least 1 as device.multiprocessor_count.*0, as device 0"
    ):
        r.program.call((tensor("float32", 8),), stream=9)


def test_arguments_are_judged_before_the_device(any_rig: Any, tensor: Any) -> None:
    r = rig_of(any_rig, persistent(checked=True))
    with pytest.raises(ArgumentValueError, match=r"rank|dimension"):
        r.program.call((tensor("float32", 8, 8),), stream=9)
    assert not any(call[0] == "occupancy" for call in r.facade.log)
    for _ in range(2):
        with pytest.raises(
            ArgumentValueError, match=r"got a call that fails .* check, expected capability 10 or later"
        ):
            r.program.call((tensor("float32", 8),), stream=9)
    r.facade.attributes[75] = 10
    assert r.facade.launched == []


def test_of_two_broken_rules_the_first_of_the_plan_is_told(any_rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (N,))
    p.check(lt(device.multiprocessor_count, N), "fewer multiprocessors than rows")
    p.launch("k", (x,), device.multiprocessor_count * 1000, 256, dynamic_smem_bytes=device.warp_size - 64)
    r = rig_of(any_rig, p.build())
    with pytest.raises(ArgumentValueError, match="fewer multiprocessors than rows"):
        r.program.call((tensor("float32", 2),), stream=9)
    with pytest.raises(ArgumentValueError, match="-32"):
        r.program.call((tensor("float32", 8),), stream=9)


def test_a_bound_call_launches_with_what_it_was_bound_with(any_rig: Any, tensor: Any) -> None:
    r = rig_of(any_rig, persistent())
    bound = r.program.bind((tensor("float32", 4096),), stream=9)
    for _ in range(2):
        bound()
    assert grids(r) == [6, 6]


def test_a_workspace_is_sized_by_the_device(any_rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (N,))
    scratch = p.workspace("w", "float32", (device.multiprocessor_count, 8))
    p.launch("k", (x, scratch, scratch.view()), 1, 256)
    r = rig_of(any_rig, p.build())
    r.program.call((tensor("float32", 2),), stream=9)
    (launched,) = r.facade.launched
    assert launched.parameters[2][8:12] == (3).to_bytes(4, "little")
