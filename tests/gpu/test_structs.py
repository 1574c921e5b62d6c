"""A struct of two tensor maps, a pointer and an int that the launcher builds: its bytes in a graph, and its result."""

from __future__ import annotations

import struct as packing

import pytest
import torch
from gpu_reading import maps
from gpu_reading.captures import pointer

from trunnion import DeviceCode, ProgramBuilder, Symbol, examples, struct
from trunnion.testing.gpu import readback

pytestmark = pytest.mark.gpu

ROWS, COLUMNS = 8, 64
SOURCE = """
#include "tensor_copy.cuh"

struct Source { TensorMap map; const float* bias; };
struct Params { int rows; Source first; TensorMap second; };
struct Boxes { alignas(128) float a[8 * 64]; alignas(128) float b[8 * 64]; unsigned long long barrier; };

extern "C" __global__ void __launch_bounds__(64) add(const __grid_constant__ Params p, float* out) {
  __shared__ Boxes boxes;
  const int row = blockIdx.x * 8;
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(&boxes.barrier), 1);
    fence_proxy_async();
    mbarrier_arrive_expect_tx(shared_address(&boxes.barrier), 2 * 8 * 64 * 4);
    copy_box(shared_address(boxes.a), p.first.map, shared_address(&boxes.barrier), 0, row);
    copy_box(shared_address(boxes.b), p.second, shared_address(&boxes.barrier), 0, row);
  }
  __syncthreads();
  mbarrier_wait(shared_address(&boxes.barrier), 0);
  for (int i = row; i < row + 8 && i < p.rows; ++i) {
    const int own = (i - row) * 64 + threadIdx.x;
    out[i * 64 + threadIdx.x] = boxes.a[own] - boxes.b[own] + p.first.bias[threadIdx.x];
  }
}
"""


def program():
    """Return rows of ``a - b + bias``."""
    headers = examples.load("two_boxes").program.code[0].includes
    p = ProgramBuilder("structs", DeviceCode("cuda", SOURCE, includes=headers, target="sm_90a"))
    m = Symbol("m", min=1, max=1 << 20)
    a, b = (p.input(name, "float32", (m, COLUMNS), alignment=16) for name in "ab")
    bias, out = p.input("bias", "float32", (COLUMNS,)), p.output("out", "float32", (m, COLUMNS))
    params = struct(
        ("rows", m.cast("int32")),
        ("first", struct(("map", a.tiled((ROWS, COLUMNS))), ("bias", bias))),
        ("second", b.tiled((ROWS, COLUMNS))),
    )
    p.launch("add", args=(params, out), grid=(m + ROWS - 1) // ROWS, block=COLUMNS)
    return p.build()


def test_a_struct_arrives_as_the_kernel_declares_it(build):
    with build(program()) as built:
        a, b = (torch.randn(100, COLUMNS, device="cuda") for _ in range(2))
        bias = torch.randn(COLUMNS, device="cuda")
        wanted = a - b + bias
        built.preload(0)
        taken = readback.captured(lambda: built(a, b, bias))
        (launch,) = taken.nodes
        box = {"data_type": "FLOAT32", "box": (ROWS, COLUMNS)}
        first = maps.tiled(a, **box) + pointer(bias) + bytes(56)
        assert launch.parameters == (
            packing.pack("<i60x", 100) + first + maps.tiled(b, **box),
            pointer(taken.result),
        )
        assert torch.equal(taken.replay(), wanted)
        assert torch.equal(built(a, b, bias), wanted)
        moved = torch.randn(7, COLUMNS, device="cuda")
        assert torch.equal(built(moved, moved, bias), bias.expand(7, COLUMNS))
