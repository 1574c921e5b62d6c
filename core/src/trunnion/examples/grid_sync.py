"""A vector to length 1 in one launch: a cooperative grid, whose blocks wait for one another."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trunnion.examples.example import Example, device_code
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv, minimum

if TYPE_CHECKING:
    import torch

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall

__all__ = ["EXAMPLE"]

_THREADS = 256
_BLOCKS = 64  # few enough to be resident at once on any device of the target's architecture


def _program() -> KernelProgram:
    p = ProgramBuilder("grid_sync", device_code("grid_sync.cu"))
    n = Symbol("n")
    x, y = p.input("x", "float32", (n,)), p.output("y", "float32", (n,))
    partial_sums = p.workspace("partial", "float32", (_BLOCKS,))
    arrived = p.workspace("arrived", "uint32", (1,), zeroed=True)
    p.launch(
        "unit_vector",
        args=(x, y, partial_sums, arrived, n),
        grid=minimum(ceildiv(n, _THREADS), _BLOCKS),
        block=_THREADS,
        cooperative=True,
    )
    return p.build()


def _inputs(generator: torch.Generator, device: str, *, length: int = 100_003) -> tuple[torch.Tensor, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    return (torch.randn(length, generator=generator).to(device),)


def _reference(x: torch.Tensor) -> torch.Tensor:
    wide = x.double()
    return (wide / (wide * wide).sum().sqrt()).float()


def _body(call: KernelCall) -> None:
    """Do what ``grid_sync.cu`` does, with what the launch delivered."""
    import torch  # noqa: PLC0415 - describing a program must not import torch

    n, blocks = int(call.scalar(4, "int64")), call.grid[0]
    x, y = (call.memory.view(call.pointer(i), "float32", (n,)) for i in range(2))
    sums = call.memory.view(call.pointer(2), "float32", (blocks,))
    arrived = call.memory.view(call.pointer(3), "int32", (1,))
    threads = call.block[0]
    padded = torch.nn.functional.pad(x * x, (0, -n % (blocks * threads)))
    sums.copy_(padded.reshape(-1, blocks, threads).sum((0, 2)))
    # A counter that does not start at 0 lets blocks pass before the others have written their sums.
    length = sums.sum().sqrt() if int(arrived) == 0 else torch.tensor(float("nan"))
    arrived += blocks
    y.copy_(x / length)


EXAMPLE = Example(
    name="grid_sync",
    summary="y = x / |x| in one cooperative launch, whose blocks wait for one another",
    program=_program(),
    inputs=_inputs,
    edges=tuple(partial(_inputs, length=length) for length in (0, 1, 256, 16_385)),
    reference=_reference,
    bodies={"unit_vector": _body},
    tolerance=1e-5,
)
