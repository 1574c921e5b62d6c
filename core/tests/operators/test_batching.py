"""torch.vmap of operators."""

from __future__ import annotations

import struct

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder, symbols
from trunnion.errors import ArgumentValueError, UnsupportedFeatureError

TURNED = """#include <trunnion/block.h>
void turned(const float* x, const float* bias, float* y, int64_t size, const trunnion_block_t*) {
    for (int64_t i = 0; i < size; ++i) y[i] = x[i] + bias[i];
}
"""


def test_it_is_called_for_each_member(compiled, name, lib):
    op = trunnion.torch_op(compiled("rows"), name, lib=lib)
    x, bias = torch.randn(4, 3, 5), torch.randn(5, 4)
    for dims, given in (((0, None), bias[:, 0].contiguous()), ((0, 1), bias)):
        y, sums = torch.vmap(lambda x, b: op(x, b, 2, True), in_dims=dims)(x, given)
        for index in range(4):
            one = given if dims[1] is None else given[:, index].contiguous()
            wanted = op(x[index], one, 2, True)
            assert torch.equal(y[index], wanted[0])
            assert torch.equal(sums[index], wanted[1])


def test_members_along_another_dimension_are_made_contiguous(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, lib=lib)
    x = torch.randn(5, 3, dtype=torch.float64)
    assert torch.equal(torch.vmap(op, in_dims=(1, None))(x, 2.0), 2 * x.t())
    nested = torch.vmap(torch.vmap(op, in_dims=(0, None)), in_dims=(0, None))
    assert torch.equal(nested(x.view(5, 3, 1), 2.0), 2 * x.view(5, 3, 1))


def test_a_batch_without_members_has_results_without_members(compiled, name, lib):
    op = trunnion.torch_op(compiled("rows"), name, lib=lib)
    y, sums = torch.vmap(lambda x: op(x, None, 2, True))(torch.empty(0, 3, 5))
    assert (tuple(y.shape), tuple(sums.shape), sums.dtype) == ((0, 3, 2), (0, 3), torch.float64)


def test_a_batch_without_members_has_the_strides_that_members_would_have(name, lib):
    n, m = symbols("n m")
    p = ProgramBuilder("turned", DeviceCode("c++", TURNED))
    x, bias = (p.input(word, "float32", (n, m), strides=(1, n)) for word in ("x", "bias"))
    p.launch("turned", args=(x, bias, p.output("y", "float32", (n, m)), n * m), grid=1, block=1)
    op = trunnion.torch_op(trunnion.compile(p.build()), name, lib=lib)
    bias = torch.randn(3, 4).t()
    for count in (0, 2):
        x = torch.randn(count, 3, 4).transpose(1, 2)
        assert torch.equal(torch.vmap(op, in_dims=(0, None))(x, bias), (x + bias).mT.reshape(count, 4, 3))
    with pytest.raises(ArgumentValueError, match="stride"):
        torch.vmap(op, in_dims=(0, None))(torch.empty(0, 4, 3), bias)
    nested = torch.vmap(torch.vmap(op, in_dims=(0, None)), in_dims=(0, None))
    assert nested(torch.empty(2, 0, 3, 4).transpose(2, 3), bias).shape == (2, 0, 4, 3)


def test_a_struct_is_the_same_for_each_member(compiled, name, lib):
    op = trunnion.torch_op(compiled("clamp"), name, lib=lib)
    limits = [*struct.pack("<ff", -1, 1)]
    for count in (0, 2):
        x = torch.randn(count, 3)
        made = torch.vmap(op, in_dims=(0, None, None))(x, limits, None)
        assert torch.equal(made, x.clamp(-1, 1))


def test_a_gradient_is_taken_of_a_batch(compiled, name, lib):
    op = trunnion.torch_op(compiled("square"), name, backward=compiled("twice"), lib=lib)
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    torch.vmap(op)(x).sum().backward()
    assert torch.allclose(x.grad, 2 * x)


def test_a_rule_of_ones_own_is_taken(compiled, name, lib):
    def rule(info, in_dims, x, k):
        return op(x.movedim(in_dims[0], 0).reshape(-1), k).view(info.batch_size, -1), 0

    op = trunnion.torch_op(compiled("scale"), name, vmap=rule, lib=lib)
    x = torch.randn(4, 3, dtype=torch.float64)
    assert torch.equal(torch.vmap(op, in_dims=(0, None))(x, 2.0), 2 * x)


def test_without_a_rule_torch_goes_its_own_way(compiled, name, lib):
    op = trunnion.torch_op(compiled("scale"), name, vmap=None, lib=lib)
    assert torch.vmap(op, in_dims=(0, None))(torch.ones(2, 3).double(), 2.0).tolist() == [[2.0] * 3] * 2


def test_what_writes_into_its_inputs_is_refused_by_name(compiled, name, lib):
    op = trunnion.torch_op(compiled("add_into"), name, lib=lib)
    with pytest.raises(UnsupportedFeatureError, match="it writes into 'total'; pass a rule for vmap="):
        torch.vmap(op)(torch.ones(2, 3), torch.ones(2, 3))


def test_a_member_is_as_aligned_as_its_parameter_asks(name, lib):
    """Torch cuts it out of the batch: nobody chose its address."""
    (n,) = symbols("n")
    p = ProgramBuilder("turned", DeviceCode("c++", TURNED))
    x = p.input("x", "float32", (n,), alignment=16)
    bias, y = p.input("bias", "float32", (n,)), p.output("y", "float32", (n,))
    p.launch("turned", args=(x, bias, y, n), grid=1, block=1)
    op = trunnion.torch_op(trunnion.compile(p.build()), name, lib=lib)
    x, bias = torch.randn(4, 3), torch.randn(3)
    batched = torch.vmap(op, in_dims=(0, None))
    assert torch.equal(batched(x, bias), x + bias)
    assert torch.equal(torch.compile(batched, fullgraph=True, backend="aot_eager")(x, bias), x + bias)
    with pytest.raises(ArgumentValueError, match="16"):  # this one somebody chose
        op(x[1], bias)
