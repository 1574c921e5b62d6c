from __future__ import annotations

import pytest
import torch

from trunnion.errors import ProgramError
from trunnion.examples import CPU_EXAMPLES, EXAMPLES, load
from trunnion.examples.histogram import Address
from trunnion.model.params import PointerParam, StructParam, TensorParam
from trunnion.model.program import KernelProgram

EVERY = (*EXAMPLES, *CPU_EXAMPLES)


@pytest.mark.parametrize("name", EVERY)
def test_an_example_is_whole(name: str) -> None:
    example = load(name)
    assert example.name == name == example.program.name
    assert example.kind == ("cpu" if name in CPU_EXAMPLES else "cuda")
    plan = example.program.plan()
    bodies = {kernel.name for kernel in plan.kernels} if example.kind == "cuda" else set()
    assert set(example.bodies) == bodies
    assert KernelProgram.from_json(example.program.to_json()) == example.program


@pytest.mark.parametrize("name", EVERY)
def test_inputs_fit_the_signature_and_repeat(name: str) -> None:
    example = load(name)
    for make in (example.inputs, *example.edges):
        inputs, again = (make(torch.Generator().manual_seed(7), "cpu") for _ in range(2))
        assert len(inputs) == len(example.program.signature.params)
        for value, other, param in zip(inputs, again, example.program.signature.params, strict=True):
            assert_fits(value, other, param)
        results = example.reference(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        outputs = example.program.signature.outputs
        assert [(one.dtype, one.dim()) for one in results] == [
            (getattr(torch, output.dtype.name), output.rank) for output in outputs
        ]


def assert_fits(value: object, other: object, param: object) -> None:
    if isinstance(param, TensorParam):
        assert isinstance(value, torch.Tensor) or (value is None and param.nullable)
    if isinstance(value, torch.Tensor):
        assert isinstance(param, TensorParam)
        assert torch.equal(value, other)
        assert (value.dtype, value.dim()) == (getattr(torch, param.dtype.name), param.rank)
        assert value.is_contiguous() or param.strides is not None
    elif isinstance(value, Address):
        assert isinstance(param, PointerParam)
        assert torch.equal(value.tensor, other.tensor)
        assert value.__index__() == value.tensor.data_ptr()
    else:
        assert value == other
        assert not isinstance(param, StructParam) or len(value) == param.nbytes


def test_the_edges_reach_what_an_example_is_about() -> None:
    """An absent bias, an absent address, an unwanted launch, and no elements at all."""
    generator = torch.Generator().manual_seed(0)
    assert any(edge(generator, "cpu")[1] is None for edge in load("affine").edges)
    assert any(edge(generator, "cpu")[2] is None for edge in load("histogram").edges)
    assert any(not edge(generator, "cpu")[-1] for edge in load("histogram").edges)
    for name in ("affine", "histogram", "pdl_pair", "grid_sync", "segment_sum", "linked", "cpu_softmax"):
        assert any(not edge(generator, "cpu")[0].numel() for edge in load(name).edges), name
    assert {edge(generator, "cpu")[-1] for edge in load("cpu_softmax").edges} == {0, 1}


def test_the_corners_of_the_convolution_are_all_different() -> None:
    tensor_map = load("im2col_conv").program.launches[0].args[0]
    assert len({*tensor_map.pixel_box_lower_corner, *tensor_map.pixel_box_upper_corner}) == 4


def test_the_maps_of_two_boxes_have_one_label() -> None:
    first, second = (launch.args[0] for launch in load("two_boxes").program.launches)
    assert first.label == second.label == "tile"
    assert first.box_dim != second.box_dim
    assert len(load("two_boxes").program.plan().encodes) == 2


def test_an_unknown_example_is_refused() -> None:
    with pytest.raises(ProgramError, match="vector_add, "):
        load("os")
