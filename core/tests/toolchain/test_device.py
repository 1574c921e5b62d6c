"""Which architecture a device has, with a driver that answers as it is told."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from trunnion.toolchain import device
from trunnion.toolchain.device import Absence, arch_of, device_arch, find_device

ASKED = {75: 9, 76: 0}
INVALID = 101  # CUDA_ERROR_INVALID_DEVICE


@pytest.mark.parametrize(
    ("capability", "arch"),
    [
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100a"),
        ((12, 0), "sm_120a"),
        ((8, 9), "sm_89"),
        ((10, 3), "sm_103a"),
        ((12, 1), "sm_121a"),
        ((7, 5), "sm_75"),
    ],
)
def test_the_architecture_of_a_capability(capability, arch):
    assert arch_of(capability) == arch


def driver(init=0, devices=1, attribute=0):
    def get(_, ordinal):
        return 0 if ordinal < devices else INVALID

    def ask(number, name, _):
        number._obj.value = ASKED[name]  # what ctypes.byref refers to
        return attribute

    return SimpleNamespace(cuInit=lambda _: init, cuDeviceGet=get, cuDeviceGetAttribute=ask)


@pytest.fixture
def found(monkeypatch):
    """Return what puts a driver, or an error of loading one, in the driver's place."""

    def put(answer):
        def load(name):
            assert name == "libcuda.so.1"
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(device.ctypes, "CDLL", load)

    return put


def test_a_device(found):
    found(driver())
    assert (find_device(), device_arch()) == ((9, 0), "sm_90a")
    assert device_arch(1) is None


@pytest.mark.parametrize(
    ("answer", "absence"),
    [
        (driver(init=100), Absence.DEVICE),  # CUDA_ERROR_NO_DEVICE
        (driver(init=3), Absence.FORKED),  # CUDA_ERROR_NOT_INITIALIZED
        (driver(init=999), Absence.START),  # CUDA_ERROR_UNKNOWN
        (driver(devices=0), Absence.DEVICE),
        (driver(attribute=1), Absence.DEVICE),
        (OSError("no libcuda"), Absence.DRIVER),
    ],
)
def test_no_driver_or_no_device(found, answer, absence):
    found(answer)
    assert find_device() is absence
    assert device_arch() is None
