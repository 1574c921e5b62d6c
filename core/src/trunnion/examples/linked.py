"""A kernel whose device function comes from another part of the program: two translation units, linked."""

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
    p = ProgramBuilder("linked", (device_code("linked.cu"), device_code("linked_step.cu")))
    n = Symbol("n")
    x, y = p.input("x", "float32", (n,)), p.output("y", "float32", (n,))
    p.launch("linked", args=(x, y, n), grid=ceildiv(n, _THREADS), block=_THREADS)
    return p.build()


def _inputs(generator: torch.Generator, device: str, *, length: int = 10_007) -> tuple[torch.Tensor, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    return (torch.randn(length, generator=generator).to(device),)


def _reference(x: torch.Tensor) -> torch.Tensor:
    t = x.double().clamp(0, 1)
    return (t * t * (3 - 2 * t)).float()


def _body(call: KernelCall) -> None:
    """Do what ``linked.cu`` does, with what the launch delivered."""
    length = min(int(call.scalar(2, "int64")), call.grid[0] * call.block[0])
    x, y = (call.memory.view(call.pointer(i), "float32", (length,)) for i in range(2))
    t = x.clamp(0, 1)
    y.copy_(t * t * (3 - 2 * t))


EXAMPLE = Example(
    name="linked",
    summary="y = smooth step of x, by a function of another translation unit",
    program=_program(),
    inputs=_inputs,
    edges=tuple(partial(_inputs, length=length) for length in (0, 1, 257)),
    reference=_reference,
    bodies={"linked": _body},
    tolerance=1e-6,
)
