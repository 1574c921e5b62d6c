"""C = relu(A B^T) for a long k, by two launches: blocks add parts into a workspace of zeros, then it is finished."""

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

_TILE = 32
_PARTS = 8
_MOST = 2**31 - _PARTS * _TILE  # the kernel computes with 32-bit integers, a tile beyond the end
_THREADS = 256


def _program() -> KernelProgram:
    p = ProgramBuilder("split_k", device_code("split_k.cu"))
    m, n, k = (Symbol(name, max=most) for name, most in (("m", _MOST), ("n", 65535 * _TILE), ("k", _MOST)))
    a, b = p.input("a", "float32", (m, k)), p.input("b", "float32", (n, k))
    c = p.output("c", "float32", (m, n))
    total = p.workspace("total", "float32", (m, n), zeroed=True)
    sizes = [value.cast("int32") for value in (m, n, k, ceildiv(k, _PARTS))]
    p.launch(
        "multiply_part",
        args=(a, b, total, *sizes),
        grid=(ceildiv(m, _TILE), ceildiv(n, _TILE), _PARTS),
        block=(_TILE, _THREADS // _TILE),
    )
    p.launch("finish", args=(total, c, m * n), grid=ceildiv(m * n, _THREADS), block=_THREADS)
    return p.build()


def _inputs(
    generator: torch.Generator, device: str, *, shape: tuple[int, int, int] = (50, 70, 1001)
) -> tuple[torch.Tensor, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    m, n, k = shape
    return tuple(torch.randn(rows, k, generator=generator).to(device) for rows in (m, n))


def _reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.double() @ b.double().T).relu().float()


def _multiply_part(call: KernelCall) -> None:
    """Do what ``multiply_part`` does, with what the launch delivered."""
    m, n, k, k_of_part = (int(call.scalar(i, "int32")) for i in range(3, 7))
    shapes = ((m, k), (n, k), (m, n))
    a, b, total = (call.memory.view(call.pointer(i), "float32", shape) for i, shape in enumerate(shapes))
    rows, columns = call.grid[0] * _TILE, call.grid[1] * _TILE
    for part in range(call.grid[2]):
        depth = slice(part * k_of_part, (part + 1) * k_of_part)
        total[:rows, :columns] += a[:rows, depth] @ b[:columns, depth].T


def _finish(call: KernelCall) -> None:
    """Do what ``finish`` does, with what the launch delivered."""
    count = min(int(call.scalar(2, "int64")), call.grid[0] * call.block[0])
    total, c = (call.memory.view(call.pointer(i), "float32", (count,)) for i in range(2))
    c.copy_(total.relu())


EXAMPLE = Example(
    name="split_k",
    summary="C = relu(A B^T), k split over blocks that add into a workspace of zeros",
    program=_program(),
    inputs=_inputs,
    edges=tuple(
        partial(_inputs, shape=shape)
        for shape in ((1, 1, 1), (33, 64, 4097), (5, 3, 0), (0, 4, 8), (32, 32, 7))
    ),
    reference=_reference,
    bodies={"multiply_part": _multiply_part, "finish": _finish},
    tolerance=1e-5,
)
