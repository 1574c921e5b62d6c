"""Floating-point expressions on a GPU: kernels of every backend compute with what follows from a call's shapes."""

from __future__ import annotations

import math

import pytest
import torch

from trunnion import DeviceCode, ProgramBuilder, ceildiv, errors, real, sqrt, symbols

pytestmark = pytest.mark.gpu

SOURCE = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void told(const float* x, float* y, double* numbers, float scale, double share, __half small,
                                __nv_bfloat16 wide, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = scale * x[i];
  if (i == 0) {
    numbers[0] = scale;
    numbers[1] = share;
    numbers[2] = __half2float(small);
    numbers[3] = __bfloat162float(wide);
  }
}"""


def program():
    rows, d = symbols("rows d")
    p = ProgramBuilder("told", DeviceCode("cuda", SOURCE))
    x, y = p.input("x", "float32", (rows, d)), p.output("y", "float32", (rows, d))
    numbers = p.output("numbers", "float64", (4,))
    scale, share = (1 / sqrt(d)).cast("float32"), rows / (real(rows) * 3)
    small, wide = (real(rows) * 0.1).cast("float16"), (real(rows) * 0.1).cast("bfloat16")
    args = (x, y, numbers, scale, share, small, wide, (rows * d).cast("int32"))
    p.launch("told", args, grid=ceildiv(rows * d, 128), block=128)
    return p.build()


@pytest.mark.parametrize("shape", [(1, 64), (7, 80), (300, 3)])
def test_kernels_are_given_numbers_that_follow_from_shapes(build, shape):
    rows, d = shape
    with build(program()) as told:
        x = torch.randn(*shape, device="cuda")
        scale = torch.tensor(1 / math.sqrt(d), dtype=torch.float32)
        tenth = torch.tensor(rows * 0.1, dtype=torch.float64)
        expected = [scale.item(), rows / (rows * 3.0), tenth.half().item(), tenth.bfloat16().item()]
        for call in (told, told.bind(x)):
            y, numbers = call(x) if call is told else call()
            assert numbers.cpu().tolist() == expected
            assert torch.equal(y, x * scale.cuda())


def test_what_is_not_finite_is_refused_where_a_launch_happens(build):
    n, d = symbols("n d")
    p = ProgramBuilder("told", DeviceCode("cuda", 'extern "C" __global__ void k(float s) {}'))
    p.input("x", "float32", (n, d))
    p.launch("k", ((1 / sqrt(d)).cast("float32"),), grid=n, block=1)
    with build(p.build()) as told:
        told(torch.empty(0, 0, device="cuda"))
        with pytest.raises(errors.ExprError, match=r"the value inf of 1\.0 / sqrt\(d\) is not finite"):
            told(torch.empty(3, 0, device="cuda"))
