"""A matrix with any strides, a bias that may be absent, and scalars of four types."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

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
    p = ProgramBuilder("affine", device_code("affine.cu"))
    m, n = Symbol("m", max=65535), Symbol("n")
    stride_m, stride_n = Symbol("stride_m"), Symbol("stride_n")
    x = p.input("x", "float32", (m, n), strides=(stride_m, stride_n))
    bias = p.input("bias", "float32", (n,), nullable=True)
    gain, offset = p.scalar("gain", "float32"), p.scalar("offset", "int64")
    rectify, slope = p.scalar("rectify", "bool"), p.scalar("slope", "bfloat16")
    y = p.output("y", "float32", (m, n))
    p.launch(
        "affine",
        args=(x, bias, y, stride_m, stride_n, n, gain, offset, rectify, slope),
        grid=(ceildiv(n, _THREADS), m),
        block=_THREADS,
    )
    return p.build()


def _inputs(
    generator: torch.Generator,
    device: str,
    *,
    shape: tuple[int, int] = (50, 300),
    bias: bool = True,
    rectify: bool = True,
) -> tuple[Any, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    m, n = shape
    # Every second column of a matrix, from its fourth row on, transposed: two strides, and an offset.
    x = torch.randn(n + 3, 2 * m, generator=generator).to(device)[3:, ::2].T
    added = torch.randn(n, generator=generator).to(device) if bias else None
    gain = float(torch.randn((), generator=generator, dtype=torch.float64))
    return x, added, gain, -1, rectify, 0.1


def _reference(
    x: torch.Tensor, bias: torch.Tensor | None, gain: float, offset: int, rectify: bool, slope: float
) -> torch.Tensor:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    z = x.double() * torch.tensor(gain, dtype=torch.float32).double() + offset
    z = z if bias is None else z + bias.double()
    leak = torch.tensor(slope, dtype=torch.bfloat16).double()
    return torch.where((z < 0) & rectify, z * leak, z).float()


def _body(call: KernelCall) -> None:
    """Do what ``affine.cu`` does, with what the launch delivered."""
    import torch  # noqa: PLC0415 - describing a program must not import torch

    strides = (int(call.scalar(3, "int64")), int(call.scalar(4, "int64")))
    shape = (call.grid[1], int(call.scalar(5, "int64")))
    x = call.memory.view(call.pointer(0), "float32", shape, strides)
    y = call.memory.view(call.pointer(2), "float32", shape)
    z = x * float(call.scalar(6, "float32")) + int(call.scalar(7, "int64"))
    if call.pointer(1):
        z = z + call.memory.view(call.pointer(1), "float32", shape[1:])
    if call.scalar(8, "bool"):
        z = torch.where(z < 0, z * float(call.scalar(9, "bfloat16")), z)
    y.copy_(z)


EXAMPLE = Example(
    name="affine",
    summary="leaky(x * gain + bias + offset): strided x, nullable bias; fp32, int64, bool and bf16 scalars",
    program=_program(),
    inputs=_inputs,
    edges=(
        partial(_inputs, bias=False),
        partial(_inputs, shape=(3, 257), rectify=False),
        partial(_inputs, shape=(1, 1), bias=False, rectify=False),
        partial(_inputs, shape=(4, 0)),
    ),
    reference=_reference,
    bodies={"affine": _body},
    tolerance=1e-6,
)
