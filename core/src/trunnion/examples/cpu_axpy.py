"""z = alpha x + y on the CPU: one launch of a C++ kernel."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trunnion.examples.example import Example, device_code
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv

if TYPE_CHECKING:
    import torch

    from trunnion.model.program import KernelProgram

__all__ = ["EXAMPLE"]

_BLOCK = 1024


def _program() -> KernelProgram:
    p = ProgramBuilder("cpu_axpy", device_code("cpu_axpy.cc"))
    n = Symbol("n", max=(2**31 - 1) * _BLOCK)
    alpha = p.scalar("alpha", "float32")
    x, y = p.input("x", "float32", (n,)), p.input("y", "float32", (n,))
    z = p.output("z", "float32", (n,))
    p.launch("axpy", args=(alpha, x, y, z, n), grid=ceildiv(n, _BLOCK), block=_BLOCK)
    return p.build()


def _inputs(generator: torch.Generator, device: str, *, length: int = 10_007) -> tuple[Any, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    x, y = (torch.randn(length, generator=generator).to(device) for _ in range(2))
    return 1.5, x, y


def _reference(alpha: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (alpha * x.double() + y.double()).float()


EXAMPLE = Example(
    name="cpu_axpy",
    summary="alpha x + y on the CPU: a kernel in C++ that runs where there is no GPU",
    program=_program(),
    kind="cpu",
    inputs=_inputs,
    edges=tuple(partial(_inputs, length=length) for length in (1, 1024, 1025, 0)),
    reference=_reference,
    bodies={},
    tolerance=1e-6,
)
