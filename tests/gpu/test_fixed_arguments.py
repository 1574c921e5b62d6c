"""Constants and moved addresses on a GPU: kernels of every backend compute with what they must be given."""

from __future__ import annotations

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder, Symbol, ceildiv, const, errors

pytestmark = pytest.mark.gpu

SOURCE = """
extern "C" __global__ void fixed(const float* left, const float* right, const float* bias, float* y, float* scratch,
                                 float k, double d, bool negated, signed char small, unsigned long long large, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  scratch[i] = left[i] + right[i];
  float sign = negated ? -1.0f : 1.0f;
  bool whole = d == 0.1 && small == -128 && large == 18446744073709551615ull && bias == nullptr;
  y[i] = whole ? sign * k * scratch[i] : __int_as_float(0x7fc00000);
}"""


def program():
    n, start = Symbol("n"), Symbol("start", min=-(2**63))
    p = ProgramBuilder("fixed", DeviceCode("cuda", SOURCE))
    x = p.input("x", "float32", (n,))
    p.scalar("start", "int64", start)
    y, scratch = p.output("y", "float32", (n,), fill=0.0), p.workspace("scratch", "float32", (n,))
    numbers = const(0.5, "float32"), const(0.1, "float64"), const(True), const(-128, "int8")
    count = (n - start).cast("int32")
    args = (x, x.at(start), const(None), y.at(start), scratch.at(start), *numbers)
    p.launch("fixed", (*args, const(2**64 - 1, "uint64"), count), grid=ceildiv(n, 128), block=128)
    return p.build()


@pytest.mark.parametrize("start", [0, 1, 4999, 5000])
def test_kernels_compute_with_constants_and_from_moved_addresses(build, start):
    with build(program()) as fixed:
        x = torch.randn(5000, device="cuda")
        expected = torch.zeros_like(x)
        expected[start:] = -0.5 * (x[: 5000 - start] + x[start:])
        assert torch.equal(fixed(x, start), expected)
        bound = fixed.bind(x, start)
        assert torch.equal(bound(), expected)


@pytest.mark.parametrize("start", [-1, 5001, 2**61])
def test_an_address_is_not_moved_out_of_its_memory(build, start):
    with build(program()) as fixed, pytest.raises(errors.ArgumentValueError) as caught:
        fixed(torch.randn(5000, device="cuda"), start)
    assert caught.value.argument == "x"
    assert f"moved by {start} elements" in str(caught.value)


def test_what_is_left_out_is_a_null_pointer_wherever_it_would_be_moved(build):
    source = """
    extern "C" __global__ void told(const float* x, int* y) { *y = x == nullptr; }"""
    p = ProgramBuilder("told", DeviceCode("cuda", source))
    x, k = p.input("x", "float32", (4,), nullable=True), Symbol("k")
    p.scalar("k", "int64", k)
    p.launch("told", (x.at(k), p.output("y", "int32", ())), grid=1, block=1)
    with build(p.build()) as told:
        assert told(None, 99, device=0).item() == 1
        assert told(torch.ones(4, device="cuda"), 4).item() == 0
        with pytest.raises(trunnion.errors.ArgumentValueError):
            told(torch.ones(4, device="cuda"), 5)
