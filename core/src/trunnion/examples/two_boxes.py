"""Sums of rows and of columns, by two kernels that read one matrix through maps of one name and different boxes."""

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

_SHORT, _LONG = 8, 64
_MOST = 2**31 - 2 * _LONG  # the kernels compute with 32-bit integers, a box beyond the end


def _program() -> KernelProgram:
    p = ProgramBuilder(
        "two_boxes", device_code("two_boxes.cu", headers=("tensor_copy.cuh",), target="sm_90a")
    )
    m = Symbol("m", min=1, max=_MOST)
    n = Symbol("n", min=4, max=_MOST, multiple_of=4)  # a row's pitch is a multiple of 16 bytes
    matrix = p.input("matrix", "float32", (m, n), alignment=16)
    rows, columns = p.output("rows", "float32", (m,)), p.output("columns", "float32", (n,))
    wide = matrix.tiled(box_dim=(_SHORT, _LONG), label="tile")
    high = matrix.tiled(box_dim=(_LONG, _SHORT), label="tile")
    sizes = (m.cast("int32"), n.cast("int32"))
    p.launch("row_sums", args=(wide, rows, *sizes), grid=ceildiv(m, _SHORT), block=_LONG)
    p.launch("column_sums", args=(high, columns, *sizes), grid=ceildiv(n, _SHORT), block=_LONG)
    return p.build()


def _inputs(
    generator: torch.Generator, device: str, *, shape: tuple[int, int] = (100, 72)
) -> tuple[torch.Tensor, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    return (torch.randn(shape, generator=generator).to(device),)


def _reference(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return matrix.double().sum(1).float(), matrix.double().sum(0).float()


def _row_sums(call: KernelCall) -> None:
    """Do what ``row_sums`` does, box by box, with what the launch delivered."""
    import torch  # noqa: PLC0415 - describing a program must not import torch

    tile, (m, n) = call.tensor_map(0), (int(call.scalar(i, "int32")) for i in (2, 3))
    rows = call.memory.view(call.pointer(1), "float32", (m,))
    for row in range(0, call.grid[0] * _SHORT, _SHORT):
        boxes = [tile.load((column, row)).reshape(_SHORT, _LONG) for column in range(0, n, _LONG)]
        own = rows[row : row + _SHORT]
        own.copy_(torch.stack(boxes).sum((0, 2))[: len(own)])


def _column_sums(call: KernelCall) -> None:
    """Do what ``column_sums`` does, box by box, with what the launch delivered."""
    import torch  # noqa: PLC0415 - describing a program must not import torch

    tile, (m, n) = call.tensor_map(0), (int(call.scalar(i, "int32")) for i in (2, 3))
    columns = call.memory.view(call.pointer(1), "float32", (n,))
    for column in range(0, call.grid[0] * _SHORT, _SHORT):
        boxes = [tile.load((column, row)).reshape(_LONG, _SHORT) for row in range(0, m, _LONG)]
        own = columns[column : column + _SHORT]
        own.copy_(torch.stack(boxes).sum((0, 1))[: len(own)])


EXAMPLE = Example(
    name="two_boxes",
    summary="sums of rows and of columns, through two maps of one name and different boxes",
    program=_program(),
    inputs=_inputs,
    edges=tuple(partial(_inputs, shape=shape) for shape in ((1, 4), (129, 68), (64, 64), (7, 260))),
    reference=_reference,
    bodies={"row_sums": _row_sums, "column_sums": _column_sums},
    tolerance=1e-5,
)
