"""What the NVRTC compiler makes, on a GPU: linked parts, PTX that the driver compiles, finished code."""

from __future__ import annotations

import pytest
import torch

import trunnion
from trunnion_nvrtc.compiler.program import Program

pytestmark = pytest.mark.gpu

SCALE = """
__device__ float scaled(float x, float by);
extern "C" __global__ void scale(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = scaled(a[i], 3.0f);
}"""
SCALED = """
__device__ float scaled(float x, float by) { return x * by; }
template <int ADD> __global__ void shift(float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] += ADD;
}"""
WHOLE = SCALED + SCALE.replace("__device__ float scaled(float x, float by);", "")


def architecture() -> str:
    return trunnion.compile(program(cuda(WHOLE)), backend="nvrtc").target.arch


def cuda(source: str, *options: str) -> trunnion.DeviceCode:
    return trunnion.DeviceCode("cuda", source, options=options)


def finished(source: str, kind: str, *options: str) -> trunnion.DeviceCode:
    """Return source as PTX or as a cubin for the first device."""
    with Program(source) as compiled:
        compiled.compile([f"--gpu-architecture={architecture()}", *options])
        output = compiled.get_output(kind)
    return trunnion.DeviceCode(kind, output.text if kind == "ptx" else output.data)


def program(*code: trunnion.DeviceCode, shift: bool = False) -> trunnion.KernelProgram:
    """Return b = 3 a, and b = 3 a + 5 if the second part is asked for."""
    p = trunnion.ProgramBuilder("parts", code)
    (n,) = trunnion.symbols("n")
    a, b = p.input("a", "float32", (n,)), p.output("b", "float32", (n,))
    blocks = trunnion.ceildiv(n, 256)
    p.launch("scale", args=(a, b, n.cast("int32")), grid=blocks, block=256)
    if shift:
        p.launch("shift<5>", args=(b, n.cast("int32")), grid=blocks, block=256, code=code[1])
    return p.build()


def check(subject: trunnion.KernelProgram, shift: int = 0, **more) -> None:
    with trunnion.compile(subject, backend="nvrtc", **more) as compiled:
        for n in (1, 255, 100_003):
            a = torch.randn(n, device="cuda")
            assert torch.equal(compiled(a), (a * 3 + shift) if shift else a * 3)


@pytest.mark.parametrize("options", [(), ("-dlto", "--gen-opt-lto"), ("-dc",), ("-G",)])
def test_linked_parts(options) -> None:
    check(program(cuda(SCALE, *options), cuda(SCALED, *options), shift=True), shift=5)


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_finished_code(kind) -> None:
    check(program(finished(WHOLE, kind)))


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_finished_code_linked_with_source(kind) -> None:
    check(program(cuda(SCALE), finished(SCALED, kind, "-dc")))
    check(program(finished(SCALE, kind, "-dc"), cuda(SCALED), shift=True), shift=5)


def test_ptx_that_the_driver_compiles() -> None:
    target = architecture().replace("sm_", "compute_")
    check(program(cuda(WHOLE)), target=target)
    check(program(cuda(WHOLE)), target="compute_80")
    check(program(cuda(SCALE), cuda(SCALED), shift=True), shift=5, target=target)
    check(program(finished(WHOLE, "ptx")), target=target)


def test_a_precompiled_header_changes_nothing() -> None:
    for _ in range(2):
        check(program(cuda("#include <cuda_fp16.h>\n" + WHOLE)), options={"nvrtc": {"pch": True}})


@pytest.mark.parametrize("option", ["-rdc=true", "-dlto"])
def test_a_kernel_launches_another_one(option) -> None:
    child = "__global__ void child(const float* a, float* b, int n) { scaled_one(a, b, n); }"
    source = WHOLE.replace('extern "C" __global__ void scale', "__device__ void scaled_one") + child
    parent = 'extern "C" __global__ void scale(const float* a, float* b, int n) {\n'
    parent += "  if (threadIdx.x == 0 && blockIdx.x == 0) child<<<(n + 255) / 256, 256>>>(a, b, n);\n}"
    check(program(cuda(source + parent, option)))
