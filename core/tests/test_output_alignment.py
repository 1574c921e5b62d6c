"""Outputs begin where the program says, however little the allocator promises."""

from __future__ import annotations

import pytest
import torch

import trunnion
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol

KERNEL = """
extern "C" __global__ void k(const float* x, float* y, unsigned char* z, double* one) {}
"""


def program(alignment):
    builder = ProgramBuilder("aligned", DeviceCode("cuda", KERNEL))
    n = Symbol("n")
    x = builder.input("x", "float32", (n,))
    y = builder.output("y", "float32", (n, 3), alignment=alignment)
    z = builder.output("z", "bool", (n,), alignment=alignment, fill=True)
    one = builder.output("one", "float64", (), alignment=alignment)
    builder.launch("k", (x, y, z, one), 1, 1)
    return builder.build()


@pytest.mark.parametrize("alignment", [256, 512, 4096, 1 << 16, 1 << 20])
@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi"])
def test_every_call_allocates_outputs_at_a_multiple_of_their_alignment(backend, alignment, simulator):
    with simulator.torch_mode(), trunnion.compile(program(alignment), backend, target="sm_90a") as compiled:
        for extent in (0, 1, 700, 4099):
            x = torch.zeros(extent, device="cuda:0")
            for way in (compiled, compiled.entry, compiled.bind(x)):
                y, z, one = way() if isinstance(way, trunnion.BoundLaunch) else way(x)
                assert (tuple(y.shape), y.dtype, y.is_contiguous()) == ((extent, 3), torch.float32, True)
                assert (tuple(z.shape), z.dtype, bool(z.all())) == ((extent,), torch.bool, True)
                assert (tuple(one.shape), one.dtype) == ((), torch.float64)
                assert [tensor.data_ptr() % alignment for tensor in (y, z, one) if tensor.numel()] in (
                    [0] * 3,
                    [0],
                )
                y.fill_(1)
                z.fill_(False)
                one.fill_(2)
    simulator.clear_trace()
