"""What is compiled for where nobody names it: the first device, whose architecture NVRTC knows."""

from __future__ import annotations

import pytest

from trunnion.contract.spec import Target
from trunnion.toolchain.device import arch_of
from trunnion_nvrtc.compiler import compiler
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_nvrtc.compiler.nvrtc import supported_archs
from trunnion_nvrtc.compiler.program import Program


def test_nvrtc_compiles_for_the_architecture_of_every_capability() -> None:
    for number in supported_archs():
        assert build_for(arch_of((number // 10, number % 10))).startswith(b"\x7fELF")


def build_for(arch: str) -> bytes:
    with Program("__global__ void k() {}") as program:
        program.compile([f"--gpu-architecture={arch}"])
        return program.get_cubin().data


@pytest.mark.parametrize(("arch", "target"), [("sm_90a", Target("cuda", "sm_90a")), (None, None)])
def test_the_target_is_the_first_device(
    monkeypatch: pytest.MonkeyPatch, arch: str | None, target: Target | None
) -> None:
    monkeypatch.setattr(compiler, "device_arch", [arch].__getitem__)
    assert NvrtcCompiler().default_target() == target
