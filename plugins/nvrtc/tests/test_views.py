"""A CUDA C++ kernel that takes tensors with their layouts declares a structure of its own for them."""

from __future__ import annotations

import pytest
import torch

import trunnion
from trunnion.errors import ParameterMismatchError

CODE = trunnion.DeviceCode(
    "cuda",
    """
struct Matrix { const float* data; int rows; int columns; long long pitch; };
struct Vector { float* data; int length; };
extern "C" __global__ void sum_rows(Matrix a, Vector sums) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= a.rows) return;
  float sum = 0;
  for (int column = 0; column < a.columns; ++column) sum += a.data[row * a.pitch + column];
  sums.data[row] = sum;
}
""",
)
M, N, PITCH = trunnion.symbols("m n pitch")


def sum_rows(p, *, strides=(PITCH, 1)):
    a = p.input("a", "float32", (M, N), strides=strides)
    sums = p.output("sums", "float32", (M,))
    p.launch("sum_rows", args=(a.view(), sums.view()), grid=trunnion.ceildiv(M, 64), block=64)


def body(call):
    matrix, vector = call.view(0, (None, None), (None, 1)), call.view(1, (None,), (1,))
    rows, columns = matrix.shape
    whole = call.memory.view(matrix.address, "float32", (rows * matrix.strides[0],))
    parts = whole.as_strided((rows, columns), (matrix.strides[0], 1))
    call.memory.view(vector.address, "float32", vector.shape).copy_(parts.sum(1))


def test_a_structure_of_the_kernel_s_own_receives_a_view(build, simulator):
    program = build(sum_rows)
    assert [one.size for one in program.artifact.manifest.kernels[0].parameters] == [24, 16]
    simulator.register_body("sum_rows", body)
    wide = torch.arange(60.0).reshape(6, 10)
    given = wide.to("cuda:0")[:, :7]
    assert torch.equal(program(given).cpu(), wide[:, :7].sum(1))


def test_a_layout_that_the_structure_has_no_room_for_is_refused(build):
    with pytest.raises(ParameterMismatchError, match="a view of float32"):
        build(lambda p: sum_rows(p, strides=(PITCH, N)))
