"""Module variables on a GPU: what kernels read of them, on each device, across calls, streams, captures and loads."""

from __future__ import annotations

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder, ceildiv, errors, symbols

pytestmark = pytest.mark.gpu

SOURCE = """
__constant__ float taps[3];
namespace state { __device__ unsigned long long calls = 7; __device__ float gain = 3.f; }
extern "C" __global__ void blur(const float* x, float* y, unsigned long long* calls, const float* address, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0 && calls == &state::calls && address == taps) ++*calls;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < 3; ++k) { int at = i + k - 1; sum += at < 0 || at >= n ? 0.f : taps[k] * x[at]; }
  y[i] = state::gain * sum;
}
extern "C" __global__ void count(unsigned long long* y) { *y = state::calls; }
"""
FIRST = [0.25, 0.5, 0.25]


def blurred(*, copies):
    p = ProgramBuilder("blur", DeviceCode("cuda", SOURCE))
    (n,) = symbols("n")
    x, y = p.input("x", "float32", (n,)), p.output("y", "float32", (n,))
    total = p.output("total", "uint64", ())
    taps = p.variable("taps", "float32", (3,), init=FIRST)
    calls = p.variable("state::calls", "uint64")
    if copies:
        gain = p.variable("state::gain", "float32", init=1.0)
        p.copy(taps, p.input("other", "float32", (3,)))
        p.copy(gain, p.input("gain", "float32", ()))
    p.launch("blur", (x, y, calls, taps, n.cast("int32")), grid=ceildiv(n, 128), block=128)
    p.launch("count", (total,), grid=1, block=1)
    return p.build()


def expected(x, taps, gain):
    weights = torch.tensor(taps, device=x.device).view(1, 1, 3)
    return gain * torch.nn.functional.conv1d(x.view(1, 1, -1), weights, padding=1).view(-1)


def devices():
    return [torch.device("cuda", index) for index in range(min(2, torch.cuda.device_count()))]


def test_a_variable_is_initialised_on_each_device_and_has_the_address_that_kernels_see(build):
    with build(blurred(copies=False)) as program:
        for device in devices():
            x = torch.randn(1000, device=device)
            for call in (8, 9, 10):
                y, total = program(x)
                torch.testing.assert_close(y, expected(x, FIRST, 3.0))
                assert int(total) == call  # a launch that saw other addresses would not have counted
            side = torch.cuda.Stream(device)
            side.wait_stream(torch.cuda.current_stream(device))
            y, _ = program(x, stream=side)
            torch.cuda.synchronize(device)
            torch.testing.assert_close(y, expected(x, FIRST, 3.0))


def test_each_load_has_variables_of_its_own(build):
    x = torch.ones(8, device="cuda")
    with build(blurred(copies=False)) as one, build(blurred(copies=False)) as other:
        assert int(one(x)[1]) == 8
        assert int(one(x)[1]) == 9
        assert int(other(x)[1]) == 8


def test_copies_come_before_the_launches_that_follow_and_last(build):
    with build(blurred(copies=True)) as program:
        for device in devices():
            x = torch.randn(1000, device=device)
            for scale in (1.0, 2.0, -3.0):
                taps = torch.randn(3, device=device)
                y, _ = program(x, taps, torch.tensor(scale, device=device))
                torch.testing.assert_close(y, expected(x, taps.tolist(), scale))


def test_copies_are_captured_and_bound(build):
    x, taps, gain = (
        torch.randn(1000, device="cuda"),
        torch.randn(3, device="cuda"),
        torch.tensor(2.0, device="cuda"),
    )
    with build(blurred(copies=True)) as program:
        program.preload(0)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y, _ = program(x, taps, gain)
        taps.copy_(torch.tensor([1.0, 0.0, 2.0]))
        graph.replay()
        torch.testing.assert_close(y, expected(x, [1.0, 0.0, 2.0], 2.0))
        bound = program.bind(x, taps, gain)
        for scale in (0.5, 4.0):
            gain.fill_(scale)
            y, _ = bound()
            torch.testing.assert_close(y, expected(x, [1.0, 0.0, 2.0], scale))
        del graph


def test_preparing_a_device_disturbs_no_capture(build):
    x = torch.ones(8, device="cuda")
    with build(blurred(copies=False)) as program:
        graph, doubled = torch.cuda.CUDAGraph(), torch.zeros(8, device="cuda")
        with torch.cuda.graph(graph):
            doubled.copy_(x + x)
            program.preload(0)
        graph.replay()
        assert doubled.tolist() == [2.0] * 8
        torch.testing.assert_close(program(x)[0], expected(x, FIRST, 3.0))
        del graph


def test_another_size_is_refused(build):
    p = ProgramBuilder("sizes", DeviceCode("cuda", SOURCE))
    p.variable("taps", "float32", (4,))
    p.launch("count", (p.output("total", "uint64", ()),), grid=1, block=1)
    with pytest.raises(
        errors.VariableMismatchError, match="the program says 16 bytes, the compiled code has 12 bytes"
    ):
        build(p.build())


def test_ptx_is_held_to_it_when_a_device_is_prepared():
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .u32 table[] = {1, 2, 3};\n"
    p = ProgramBuilder("ptx", DeviceCode("ptx", text + ".visible .entry k() { ret; }\n", target="compute_80"))
    p.variable("table", "uint32", (4,))
    p.launch("k", (), grid=1, block=1)
    with (
        trunnion.compile(p.build(), "nvrtc", cache=False) as program,
        pytest.raises(errors.VariableMismatchError, match="12 bytes on device 0"),
    ):
        program.preload(0)
