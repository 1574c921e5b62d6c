"""Sums of rows by key: an access-policy window keeps the sums in the L2 cache while the rows stream through it."""

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

__all__ = ["EXAMPLE", "segment_sum_program"]

_THREADS = 256
_INT = 2**31 - 1


def segment_sum_program(*, window: bool) -> KernelProgram:
    """Return the program, with its window or without: the results are the same.

    Parameters
    ----------
    window
        Whether the launch has an access-policy window over the sums.
    """
    p = ProgramBuilder("segment_sum", device_code("segment_sum.cu", target="sm_90a"))
    rows, width = Symbol("rows", max=_INT), Symbol("width", max=_INT - _THREADS)
    segments = Symbol("segments", min=0, max=_INT)
    x = p.input("x", "float32", (rows, width))
    keys = p.input("keys", "int32", (rows,))
    p.scalar("segments", "int32", segments)
    sums = p.output("sums", "float32", (segments, width), fill=0)
    p.launch(
        "segment_sum",
        args=(x, keys, sums, width.cast("int32"), segments.cast("int32")),
        grid=rows,
        block=_THREADS,
        window=sums.window(hit_ratio=1.0, hit_property="persisting") if window else None,
    )
    return p.build()


def _inputs(
    generator: torch.Generator, device: str, *, shape: tuple[int, int, int] = (300, 130, 20)
) -> tuple[Any, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    rows, width, segments = shape
    x = torch.randn(rows, width, generator=generator)
    keys = torch.randint(-1, segments + 1, (rows,), generator=generator, dtype=torch.int32)
    return x.to(device), keys.to(device), segments


def _reference(x: torch.Tensor, keys: torch.Tensor, segments: int) -> torch.Tensor:
    here = (keys >= 0) & (keys < segments)
    sums = x.new_zeros(segments, x.shape[1]).double()
    return sums.index_add_(0, keys[here].long(), x[here].double()).float()


def _body(call: KernelCall) -> None:
    """Do what ``segment_sum.cu`` does, with what the launch delivered."""
    rows, (width, segments) = call.grid[0], (int(call.scalar(i, "int32")) for i in (3, 4))
    x = call.memory.view(call.pointer(0), "float32", (rows, width))
    keys = call.memory.view(call.pointer(1), "int32", (rows,))
    sums = call.memory.view(call.pointer(2), "float32", (segments, width))
    here = (keys >= 0) & (keys < segments)
    sums.index_add_(0, keys[here].long(), x[here])


EXAMPLE = Example(
    name="segment_sum",
    summary="rows added up by key, in a table that a window keeps in the L2 cache",
    program=segment_sum_program(window=True),
    inputs=_inputs,
    edges=tuple(partial(_inputs, shape=shape) for shape in ((0, 5, 3), (1, 1, 1), (700, 257, 1))),
    reference=_reference,
    bodies={"segment_sum": _body},
    tolerance=1e-5,
)
