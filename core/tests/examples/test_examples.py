from __future__ import annotations

import pytest
import torch

from trunnion.errors import ProgramError
from trunnion.examples import EXAMPLES, load
from trunnion.model.program import KernelProgram


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_whole(name: str) -> None:
    example = load(name)
    assert example.name == name == example.program.name
    plan = example.program.plan()
    assert set(example.bodies) == {kernel.name for kernel in plan.kernels}
    assert KernelProgram.from_json(example.program.to_json()) == example.program


@pytest.mark.parametrize("name", EXAMPLES)
def test_inputs_fit_the_signature_and_repeat(name: str) -> None:
    example = load(name)
    inputs, again = (example.inputs(torch.Generator().manual_seed(7), "cpu") for _ in range(2))
    assert len(inputs) == len(example.program.signature.params)
    for value, other, param in zip(inputs, again, example.program.signature.params, strict=True):
        assert torch.equal(value, other)
        assert (value.dtype, value.dim()) == (getattr(torch, param.dtype.name), param.rank)
    result = example.reference(*inputs)
    (output,) = example.program.signature.outputs
    assert (result.dtype, result.dim()) == (getattr(torch, output.dtype.name), output.rank)


def test_an_unknown_example_is_refused() -> None:
    with pytest.raises(ProgramError, match="vector_add, hopper_gemm"):
        load("os")
