"""The machine of the laws: devices that are alike, and devices that differ."""

from __future__ import annotations

import pytest

from trunnion.errors import DeviceRequirementError
from trunnion.sim.abi import DeviceAttribute
from trunnion.testing.machine import ALIKE, ARCHITECTURES, UNLIKE, start_simulator


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
