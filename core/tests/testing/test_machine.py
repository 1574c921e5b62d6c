"""The machine of the laws: devices that are alike, and devices that differ."""

from __future__ import annotations

import pytest

from trunnion.errors import DeviceRequirementError
from trunnion.sim.abi import DeviceAttribute
from trunnion.testing.machine import ALIKE, ARCHITECTURES, UNLIKE, SimulatedMachine, start_simulator


def test_some_devices_are_alike_and_some_differ(simulator):
    assert start_simulator() is simulator
    assert len({ARCHITECTURES[device] for device in ALIKE}) == 1
    assert len({ARCHITECTURES[device] for device in UNLIKE}) == len(UNLIKE)
    for attribute in (
        DeviceAttribute.MAX_ACCESS_POLICY_WINDOW_SIZE,
        DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    ):
        assert len({simulator.device(device).attribute(attribute) for device in UNLIKE}) == len(UNLIKE)
        assert len({simulator.device(device).attribute(attribute) for device in ALIKE}) == 1


def test_other_devices_are_refused(simulator):
    with simulator.configured(arch="sm_80"), pytest.raises(DeviceRequirementError, match="start_simulator"):
        start_simulator()


def test_a_machine_may_tell_launchers_of_one_device_alone(simulator):
    alone, ordinary = SimulatedMachine(simulator, alone=True), SimulatedMachine(simulator)
    assert (alone.alike, ordinary.alike) == ((0,), ALIKE)
    assert alone.runtime is alone.runtime
    assert alone.runtime.quick_allocator() is not None
    assert ordinary.runtime is simulator.runtime
    assert ordinary.runtime.quick_allocator() is None


def test_a_machine_says_what_is_current_in_the_tensor_library(simulator):
    machine = SimulatedMachine(simulator)
    before, stream = machine.current(), machine.new_stream(1)
    assert len(before) == 1 + simulator.devices
    with machine.stream(stream, 1), simulator.current(1):
        assert machine.current() == (1, before[1], stream, *before[3:])
    assert machine.current() == before
