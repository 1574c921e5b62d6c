"""Programs of several parts and languages, from the model to a simulated launch."""

from __future__ import annotations

import struct

import pytest
import torch

import trunnion
from trunnion.sim.trace import Launched
from trunnion_nvrtc.compiler.program import Program

ADD = 'extern "C" __global__ void add(const float* a, float* b, int n) { if (n) b[0] = a[0]; }'
HALF = "__device__ int half_of(int x) { return x / 2; } template <class T> __global__ void scale(T* b) { b[0] *= 2; }"
USES = """__device__ int half_of(int);
extern "C" __global__ void add(const float* a, float* b, int n) { b[half_of(n)] = a[0]; }"""


def finished(kind: str) -> trunnion.DeviceCode:
    with Program(ADD) as program:
        program.compile(["-arch=sm_90a"])
        output = program.get_output(kind)
    return trunnion.DeviceCode(kind, output.text if kind == "ptx" else output.data)


def launched(simulator, *code: trunnion.DeviceCode, second: str = "") -> list[Launched]:
    """Launch ``add`` of the first part, and then the kernel ``second`` of the second; return both launches."""
    p = trunnion.ProgramBuilder("parts", code)
    (n,) = trunnion.symbols("n")
    a, b = p.input("a", "float32", (n,)), p.output("b", "float32", (n,))
    p.launch("add", args=(a, b, n.cast("int32")), grid=1, block=32)
    if second:
        p.launch(second, args=(b,), grid=1, block=32, code=code[1])
    with trunnion.compile(p.build(), backend="nvrtc", target="sm_90a") as program, simulator.torch_mode():
        program(torch.ones(7, device="cuda:0"))
    return [event for event in simulator.trace if isinstance(event, Launched)][-1 - bool(second) :]


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_finished_code_is_launched(simulator, kind: str) -> None:
    (launch,) = launched(simulator, finished(kind))
    assert launch.kernel == "add"
    assert launch.parameters[2] == struct.pack("<i", 7)


@pytest.mark.parametrize("options", [(), ("-dc",)])
def test_linked_parts_are_launched(simulator, options: tuple[str, ...]) -> None:
    code = tuple(trunnion.DeviceCode("cuda", text, options=options) for text in (USES, HALF))
    first, second = launched(simulator, *code, second="scale<float>")
    assert (first.kernel, second.kernel) == ("add", "_Z5scaleIfEvPT_")
    assert second.parameters[0] == first.parameters[1]
