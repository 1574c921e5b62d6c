import pytest

from trunnion.sim.abi import DeviceAttribute
from trunnion.sim.devices import ARCHITECTURES, Device


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_attribute_that_the_simulator_reads_is_there(name):
    device = Device(0, ARCHITECTURES[name])
    assert all(isinstance(device.attribute(key), int) for key in DeviceAttribute)
    major, minor = device.compute_capability
    assert name.rstrip("a") == f"sm_{major}{minor}"
