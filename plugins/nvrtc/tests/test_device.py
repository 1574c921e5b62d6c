"""Which architecture a device has, with bindings that answer as a driver would."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest

from trunnion.contract.spec import Target
from trunnion_nvrtc import device
from trunnion_nvrtc.compiler import NvrtcCompiler
from trunnion_nvrtc.device import arch_of, device_arch
from trunnion_nvrtc.nvrtc import supported_archs
from trunnion_nvrtc.program import Program


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
def test_the_architecture_of_a_capability(capability: tuple[int, int], arch: str) -> None:
    assert arch_of(*capability) == arch


def test_nvrtc_compiles_for_the_architecture_of_every_capability() -> None:
    for number in supported_archs():
        assert build_for(arch_of(number // 10, number % 10)).startswith(b"\x7fELF")


def build_for(arch: str) -> bytes:
    with Program("__global__ void k() {}") as program:
        program.compile([f"--gpu-architecture={arch}"])
        return program.get_cubin().data


def bindings(init: int = 0, devices: int = 1) -> Any:
    names = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR="major",
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR="minor",
    )
    return SimpleNamespace(
        CUdevice_attribute=names,
        cuInit=lambda flags: (init,),
        cuDeviceGet=lambda ordinal: (0, ordinal) if ordinal < devices else (101, None),
        cuDeviceGetAttribute=lambda name, _: (0, {"major": 9, "minor": 0}[name]),
    )


def install(monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    def import_module(name: str) -> Any:
        assert name == "cuda.bindings.driver"
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(device, "importlib", SimpleNamespace(import_module=import_module))


def test_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, bindings())
    assert device_arch(0) == "sm_90a"
    assert device_arch(1) is None
    assert NvrtcCompiler().default_target() == Target("cuda", "sm_90a")


def fails(_: int) -> tuple[int]:
    raise RuntimeError("Failed to dlopen libcuda.so.1")


@pytest.mark.parametrize(
    "found",
    [
        bindings(init=100),
        bindings(devices=0),
        SimpleNamespace(**{**vars(bindings()), "cuInit": fails}),
        ImportError(),
    ],
    ids=["cuInit fails", "no device", "no libcuda", "no bindings"],
)
def test_no_driver_or_no_device(monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    install(monkeypatch, found)
    assert device_arch() is None
    assert NvrtcCompiler().default_target() is None


def test_the_names_exist_in_the_realbindings() -> None:
    real = importlib.import_module("cuda.bindings.driver")
    for name in vars(bindings()):
        assert hasattr(real, name)
    for name in vars(bindings().CUdevice_attribute):
        assert hasattr(real.CUdevice_attribute, name)
