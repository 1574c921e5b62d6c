"""c = a + b over any number of elements, in CuTeDSL: each tensor carries its length."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trunnion.examples.example import Example
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv
from trunnion_cutedsl.examples.text import device_code

if TYPE_CHECKING:
    import torch

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall

__all__ = ["EXAMPLE"]

_THREADS = 256
_LENGTH = 100_003  # not a multiple of the block: the last block is ragged


def _program() -> KernelProgram:
    p = ProgramBuilder("cutedsl_vector_add", device_code("vector_add"))
    n = Symbol("n", max=2**31 - 1)
    a, b = p.input("a", "float32", (n,)), p.input("b", "float32", (n,))
    c = p.output("c", "float32", (n,))
    p.launch("vector_add", args=(a.view(), b.view(), c.view()), grid=ceildiv(n, _THREADS), block=_THREADS)
    return p.build()


def _inputs(generator: torch.Generator, device: str, *, length: int = _LENGTH) -> tuple[torch.Tensor, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    return tuple(torch.randn(length, generator=generator).to(device) for _ in range(2))


def _reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b


def _body(call: KernelCall) -> None:
    """Do what ``vector_add`` does, with what the launch delivered."""
    views = [call.view(ordinal, (None,), (1,)) for ordinal in range(3)]
    length = min(views[2].shape[0], call.grid[0] * call.block[0])
    a, b, c = (call.memory.view(view.address, "float32", (length,)) for view in views)
    c.copy_(a + b)


EXAMPLE = Example(
    name="cutedsl_vector_add",
    summary="c = a + b of any length, in CuTeDSL",
    program=_program(),
    inputs=_inputs,
    edges=tuple(partial(_inputs, length=length) for length in (0, 1, 255, 257)),
    reference=_reference,
    bodies={"vector_add": _body},
    tolerance=0.0,
)
