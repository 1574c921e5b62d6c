"""Softmax over rows on the CPU: launches over a workspace, one of them conditional, a check, an output of counts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trunnion.examples.example import Example, device_code
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ge

if TYPE_CHECKING:
    import torch

    from trunnion.model.program import KernelProgram

__all__ = ["EXAMPLE"]

_MOST = 2**31 - 1
_MOST_COLUMNS = _MOST // 8  # eight bytes of scratch for each


def _program() -> KernelProgram:
    p = ProgramBuilder("cpu_softmax", device_code("cpu_softmax.cc"))
    m, n = Symbol("m", max=_MOST), Symbol("n", max=_MOST_COLUMNS)
    logarithm = Symbol("logarithm", min=0, max=1)
    x = p.input("x", "float32", (m, n))
    p.scalar("logarithm", "int32", logarithm)
    p.check(ge(n, 1), "rows of at least one element")
    y = p.output("y", "float32", (m, n))
    peaks = p.output("peaks", "int64", (n,), fill=0)
    statistics = p.workspace("statistics", "float64", (m, 2))
    p.launch(
        "softmax::row_statistics<float>",
        args=(x, statistics, n),
        grid=m,
        block=1,
        dynamic_smem_bytes=n * 8,
    )
    p.launch("softmax::normalise<float>", args=(x, statistics, y, n), grid=m, block=1)
    p.launch("softmax::take_logarithm<float>", args=(x, statistics, y, n), grid=m, block=1, when=logarithm)
    p.launch("count_peaks", args=(y, peaks, n), grid=m, block=1)
    return p.build()


def _inputs(
    generator: torch.Generator, device: str, *, shape: tuple[int, int] = (300, 1000), logarithm: bool = False
) -> tuple[Any, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    return (torch.randn(*shape, generator=generator) * 5).to(device), int(logarithm)


def _reference(x: torch.Tensor, logarithm: int) -> tuple[torch.Tensor, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    apply = torch.log_softmax if logarithm else torch.softmax
    y = apply(x.double(), dim=1).float()
    return y, torch.bincount(y.argmax(dim=1), minlength=x.shape[1])


EXAMPLE = Example(
    name="cpu_softmax",
    summary="softmax or its logarithm on the CPU: four launches, one conditional, workspace, scratch, a check",
    program=_program(),
    kind="cpu",
    inputs=_inputs,
    edges=(
        partial(_inputs, logarithm=True),
        partial(_inputs, shape=(1, 1)),
        partial(_inputs, shape=(3, 257), logarithm=True),
        partial(_inputs, shape=(0, 4)),
    ),
    reference=_reference,
    bodies={},
    tolerance=1e-6,
)
