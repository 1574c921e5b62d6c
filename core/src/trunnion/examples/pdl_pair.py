"""Two kernels, of which the second starts while the first still runs: programmatic dependent launch."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trunnion.examples.example import Example, device_code
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv

if TYPE_CHECKING:
    import torch

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall

__all__ = ["EXAMPLE"]

_THREADS = 256


def _program() -> KernelProgram:
    p = ProgramBuilder("pdl_pair", device_code("pdl_pair.cu", target="sm_90a"))
    n = Symbol("n", max=2**31 - 1)
    x, bias = p.input("x", "float32", (n,)), p.input("bias", "float32", (n,))
    y = p.output("y", "float32", (n,))
    squares = p.workspace("squares", "float32", (n,))
    count, grid = n.cast("int32"), ceildiv(n, _THREADS)
    p.launch("produce", args=(x, squares, count), grid=grid, block=_THREADS)
    p.launch("consume", args=(squares, bias, y, count), grid=grid, block=_THREADS, pdl=True)
    return p.build()


def _inputs(generator: torch.Generator, device: str, *, length: int = 100_003) -> tuple[torch.Tensor, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    return tuple(torch.randn(length, generator=generator).to(device) for _ in range(2))


def _reference(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return (x * x).flip(0) + bias


def _produce(call: KernelCall) -> None:
    length = min(int(call.scalar(2, "int32")), call.grid[0] * call.block[0])
    x, squares = (call.memory.view(call.pointer(i), "float32", (length,)) for i in range(2))
    squares.copy_(x * x)


def _consume(call: KernelCall) -> None:
    length = min(int(call.scalar(3, "int32")), call.grid[0] * call.block[0])
    squares, bias, y = (call.memory.view(call.pointer(i), "float32", (length,)) for i in range(3))
    y.copy_(squares.flip(0) + bias)


EXAMPLE = Example(
    name="pdl_pair",
    summary="y = reversed x^2 + bias by two kernels, the second launched early (PDL)",
    program=_program(),
    inputs=_inputs,
    edges=tuple(partial(_inputs, length=length) for length in (0, 1, 257)),
    reference=_reference,
    bodies={"produce": _produce, "consume": _consume},
    tolerance=0.0,
)
