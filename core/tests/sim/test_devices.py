import pytest

from trunnion.sim.abi import DeviceAttribute
from trunnion.sim.devices import ARCHITECTURES, Device, can_run


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_attribute_that_the_simulator_reads_is_there(name):
    device = Device(0, ARCHITECTURES[name])
    assert all(isinstance(device.attribute(key), int) for key in DeviceAttribute)
    major, minor = device.compute_capability
    assert name.rstrip("a") == f"sm_{major}{minor}"


@pytest.mark.parametrize(
    ("image", "runs"),
    [
        ("sm_90", True),
        ("sm_90a", True),
        ("sm_80", False),
        ("sm_89", False),
        ("sm_91", False),
        ("sm_100f", False),
    ],
)
def test_what_a_hopper_runs(image, runs):
    assert can_run(image, Device(0, ARCHITECTURES["sm_90a"])) is runs
