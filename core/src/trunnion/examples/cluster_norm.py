"""Rows to mean 0 and variance 1, each by one cluster, whose blocks read one another's shared memory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trunnion.examples.example import Example, device_code
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol

if TYPE_CHECKING:
    import torch

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall

__all__ = ["EXAMPLE", "cluster_norm"]

_THREADS = 256


def _program(name: str, blocks: int) -> KernelProgram:
    p = ProgramBuilder(name, device_code("cluster_norm.cu", options=("--std=c++17",), target="sm_90a"))
    rows, n = Symbol("rows", max=65535), Symbol("n", max=2**31 - 1 - 16 * _THREADS)
    x = p.input("x", "float32", (rows, n))
    epsilon = p.scalar("epsilon", "float32")
    y = p.output("y", "float32", (rows, n))
    p.launch(
        f"cluster_norm<{blocks}>",
        args=(x, y, n.cast("int32"), epsilon),
        grid=(blocks, rows),
        block=_THREADS,
        cluster=blocks,
    )
    return p.build()


def _inputs(generator: torch.Generator, device: str, *, shape: tuple[int, int]) -> tuple[Any, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    return (torch.randn(shape, generator=generator) * 3 + 7).to(device), 1e-5


def _reference(x: torch.Tensor, epsilon: float) -> torch.Tensor:
    wide = x.double()
    centred = wide - wide.mean(-1, keepdim=True)
    return (centred / ((centred * centred).mean(-1, keepdim=True) + epsilon).sqrt()).float()


def _body(call: KernelCall, *, blocks: int) -> None:
    """Do what ``cluster_norm.cu`` does, with what the launch delivered."""
    n, epsilon = int(call.scalar(2, "int32")), float(call.scalar(3, "float32"))
    x, y = (call.memory.view(call.pointer(i), "float32", (call.grid[1], n)) for i in range(2))
    # A block has one of `blocks` pieces of the row, and sees the sums of its own cluster alone.
    together = call.cluster[0] if call.cluster else 1
    seen = x[:, : together * -(-n // blocks)]
    mean = seen.sum(-1, keepdim=True) / n
    variance = ((seen - mean) ** 2).sum(-1, keepdim=True) / n
    y.copy_((x - mean) * (variance + epsilon).rsqrt())


def cluster_norm(name: str, blocks: int, shape: tuple[int, int]) -> Example:
    """Return the example for clusters of some size.

    Parameters
    ----------
    name
        Its name.
    blocks
        The blocks of a cluster; more than 8 are not portable.
    shape
        Rows and columns of the demo's matrix.
    """
    edges = ((3, 1), (1, blocks - 1), (5, 16 * _THREADS + 1), (0, 4))
    return Example(
        name=name,
        summary=f"rows to mean 0 and variance 1, each by a cluster of {blocks} blocks",
        program=_program(name, blocks),
        inputs=partial(_inputs, shape=shape),
        edges=tuple(partial(_inputs, shape=each) for each in edges),
        reference=_reference,
        bodies={f"cluster_norm<{blocks}>": partial(_body, blocks=blocks)},
        tolerance=1e-5,
    )


EXAMPLE = cluster_norm("cluster_norm", 2, (40, 1001))
