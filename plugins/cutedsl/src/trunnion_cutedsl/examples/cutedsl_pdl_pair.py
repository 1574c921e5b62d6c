"""Two CuTeDSL kernels, of which the second starts while the first still runs: programmatic dependent launch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trunnion.examples import load
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv
from trunnion_cutedsl.examples.text import device_code

if TYPE_CHECKING:
    import torch

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall

__all__ = ["EXAMPLE"]

_THREADS = 256


def _program() -> KernelProgram:
    p = ProgramBuilder("cutedsl_pdl_pair", device_code("pdl_pair", "sm_90a"))
    n = Symbol("n", max=2**31 - 1)
    x, bias = p.input("x", "float32", (n,)), p.input("bias", "float32", (n,))
    y = p.output("y", "float32", (n,))
    squares = p.workspace("squares", "float32", (n,))
    grid = ceildiv(n, _THREADS)
    p.launch("produce", args=(x.view(), squares.view()), grid=grid, block=_THREADS)
    p.launch("consume", args=(squares.view(), bias.view(), y.view()), grid=grid, block=_THREADS, pdl=True)
    return p.build()


def _vectors(call: KernelCall) -> list[torch.Tensor]:
    """Return the parameters of a kernel of this example: vectors of one length."""
    views = [call.view(ordinal, (None,), (1,)) for ordinal in range(len(call.parameters))]
    length = min(*(view.shape[0] for view in views), call.grid[0] * call.block[0])
    return [call.memory.view(view.address, "float32", (length,)) for view in views]


def _produce(call: KernelCall) -> None:
    x, squares = _vectors(call)
    squares.copy_(x * x)


def _consume(call: KernelCall) -> None:
    squares, bias, y = _vectors(call)
    y.copy_(squares.flip(0) + bias)


EXAMPLE = replace(
    load("pdl_pair"),  # the same numbers: its inputs, edges, reference and tolerance
    name="cutedsl_pdl_pair",
    summary="y = reversed x^2 + bias by two CuTeDSL kernels, the second launched early (PDL)",
    program=_program(),
    bodies={"produce": _produce, "consume": _consume},
)
