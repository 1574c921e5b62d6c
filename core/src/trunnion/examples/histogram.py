"""A histogram: a struct and an address as parameters, a launch on condition, several outputs with a fill."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from trunnion.examples.example import Example, device_code
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv

if TYPE_CHECKING:
    import torch

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall

__all__ = ["EXAMPLE", "Address"]

_THREADS = 256
_RANGE = struct.Struct("<ff")
_LOW, _HIGH = -2.0, 2.0


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a tensor's first element, which keeps the tensor alive."""

    tensor: torch.Tensor
    """The tensor."""

    def __index__(self) -> int:
        """Return the address."""
        return self.tensor.data_ptr()


def _program() -> KernelProgram:
    p = ProgramBuilder("histogram", device_code("histogram.cu"))
    n, bins = Symbol("n", max=2**31 - 1), Symbol("bins", min=1, max=65536)
    shared_out = Symbol("with_shares", min=0, max=1)
    x = p.input("x", "float32", (n,))
    limits = p.struct("range", _RANGE.size, alignment=4)
    weights = p.pointer("weights", nullable=True, alignment=4)
    p.scalar("bins", "int32", bins)
    p.scalar("with_shares", "int32", shared_out)
    counts = p.output("counts", "int32", (bins,), fill=0)
    outside = p.output("outside", "int32", (), fill=0)
    shares = p.output("shares", "float32", (bins,), fill=-1.0)
    count = bins.cast("int32")
    p.launch(
        "count",
        args=(x, limits, weights, counts, outside, count, n.cast("int32")),
        grid=ceildiv(n, _THREADS),
        block=_THREADS,
    )
    p.launch("share", args=(counts, outside, shares, count), grid=1, block=_THREADS, when=shared_out)
    return p.build()


def _inputs(
    generator: torch.Generator,
    device: str,
    *,
    length: int = 10_007,
    bins: int = 37,
    weighted: bool = True,
    with_shares: bool = True,
) -> tuple[Any, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    x = torch.randn(length, generator=generator).to(device)
    weights = torch.randint(-5, 100, (length,), generator=generator, dtype=torch.int32).to(device)
    return x, _RANGE.pack(_LOW, _HIGH), Address(weights) if weighted else None, bins, int(with_shares)


def _reference(
    x: torch.Tensor, limits: bytes, weights: Address | None, bins: int, with_shares: int
) -> tuple[torch.Tensor, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    given = None if weights is None else weights.tensor.cpu()
    counts, outside = _counted(x, _RANGE.unpack(limits), given, bins)
    total = int(counts.sum() + outside)
    shares = counts.double() / total if total else torch.zeros(bins)
    return counts, outside, shares.float() if with_shares else torch.full((bins,), -1.0)


def _counted(
    x: torch.Tensor, limits: tuple[float, ...], weights: torch.Tensor | None, bins: int
) -> tuple[torch.Tensor, torch.Tensor]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    low, high = limits
    at = (x - low) / (high - low) * bins
    inside = (at >= 0) & (at < bins)
    each = torch.ones(len(x), dtype=torch.int32) if weights is None else weights
    counts = torch.zeros(bins, dtype=torch.int32).index_add_(0, at[inside].long(), each[inside])
    return counts, each[~inside].sum().int()


def _count(call: KernelCall) -> None:
    """Do what ``count`` does, with what the launch delivered."""
    bins, n = (int(call.scalar(i, "int32")) for i in (5, 6))
    x = call.memory.view(call.pointer(0), "float32", (n,))
    address = call.pointer(2)
    weights = call.memory.view(address, "int32", (n,)) if address else None
    counts, outside = _counted(x, _RANGE.unpack(call.parameters[1]), weights, bins)
    call.memory.view(call.pointer(3), "int32", (bins,)).add_(counts)
    call.memory.view(call.pointer(4), "int32", ()).add_(outside)


def _share(call: KernelCall) -> None:
    """Do what ``share`` does, with what the launch delivered."""
    bins = int(call.scalar(3, "int32"))
    counts = call.memory.view(call.pointer(0), "int32", (bins,)).double()
    total = counts.sum() + call.memory.view(call.pointer(1), "int32", ())
    call.memory.view(call.pointer(2), "float32", (bins,)).copy_(counts / total if total else counts)


EXAMPLE = Example(
    name="histogram",
    summary="counts, outliers, shares: struct and address parameters, a launch on condition, filled outputs",
    program=_program(),
    inputs=_inputs,
    edges=(
        partial(_inputs, weighted=False),
        partial(_inputs, with_shares=False),
        partial(_inputs, length=1, bins=1),
        partial(_inputs, length=0, bins=300),
    ),
    reference=_reference,
    bodies={"count": _count, "share": _share},
    tolerance=0.0,
)
