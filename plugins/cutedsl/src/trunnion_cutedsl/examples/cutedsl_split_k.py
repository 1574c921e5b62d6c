"""C = relu(A B^T) for a long k in CuTeDSL: blocks add parts into a workspace of zeros, then it is finished."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trunnion.examples import load
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv, le
from trunnion_cutedsl.examples.text import device_code

if TYPE_CHECKING:
    import torch

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall

__all__ = ["EXAMPLE"]

_WIDTH, _HEIGHT = 32, 8
_PARTS = 8
_THREADS = _WIDTH * _HEIGHT
_MOST = 2**31 - _THREADS  # the kernels compute with 32-bit integers, a block beyond the end


def _program() -> KernelProgram:
    p = ProgramBuilder("cutedsl_split_k", device_code("split_k"))
    m, n, k = (Symbol(name, max=most) for name, most in (("m", 65535 * _HEIGHT), ("n", _MOST), ("k", _MOST)))
    a, b = p.input("a", "float32", (m, k)), p.input("b", "float32", (n, k))
    c = p.output("c", "float32", (m, n))
    total = p.workspace("total", "float32", (m, n), zeroed=True)
    p.launch(
        "multiply_part",
        args=(a.view(), b.view(), total.view(), ceildiv(k, _PARTS).cast("int32")),
        grid=(ceildiv(n, _WIDTH), ceildiv(m, _HEIGHT), _PARTS),
        block=(_WIDTH, _HEIGHT),
    )
    p.check(le(m * n, _MOST), "C has at most 2^31 - 256 elements")
    p.launch("finish", args=(total.view(), c.view()), grid=ceildiv(m * n, _THREADS), block=_THREADS)
    return p.build()


def _matrices(call: KernelCall, count: int) -> list[torch.Tensor]:
    """Return the first parameters of a kernel of this example: matrices, contiguous and row-major."""
    views = [call.view(ordinal, (None, None), (None, 1)) for ordinal in range(count)]
    return [call.memory.view(view.address, "float32", view.shape) for view in views]


def _multiply_part(call: KernelCall) -> None:
    """Do what ``multiply_part`` does, with what the launch delivered."""
    a, b, total = _matrices(call, 3)
    k_of_part = int(call.scalar(3, "int32"))
    rows, columns = call.grid[1] * call.block[1], call.grid[0] * call.block[0]
    for part in range(call.grid[2]):
        depth = slice(part * k_of_part, (part + 1) * k_of_part)
        total[:rows, :columns] += a[:rows, depth] @ b[:columns, depth].T


def _finish(call: KernelCall) -> None:
    """Do what ``finish`` does, with what the launch delivered."""
    total, c = _matrices(call, 2)
    count = min(c.numel(), call.grid[0] * call.block[0])
    c.view(-1)[:count] = total.view(-1)[:count].relu()


EXAMPLE = replace(
    load("split_k"),  # the same numbers: its inputs, edges, reference and tolerance
    name="cutedsl_split_k",
    summary="C = relu(A B^T) in CuTeDSL, k split over blocks that add into a workspace of zeros",
    program=_program(),
    bodies={"multiply_part": _multiply_part, "finish": _finish},
)
