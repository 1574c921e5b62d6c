"""NVIDIA's reductionMultiBlockCG: a cooperative sum whose blocks are as many as fit on the device at once."""

from __future__ import annotations

import torch
from real_programs.copies import Copy
from real_programs.excerpts import before
from real_programs.host_text import DEFAULT_DEVICE, empty

from trunnion import (
    DeviceCode,
    KernelProgram,
    ProgramBuilder,
    Symbol,
    const,
    device,
    ge,
    maximum,
    minimum,
    occupancy,
)

COPY = Copy(
    "cuda-samples",
    "13.0",
    "https://github.com/NVIDIA/cuda-samples",
    "v13.0",
    ("Samples/2_Concepts_and_Techniques/reductionMultiBlockCG/reductionMultiBlockCG.cu",),
)
KERNEL = "reduceSinglePassMultiBlockCG"
THREADS = 256
SHARED_BYTES = THREADS * 8
"""One double for each thread."""
SHAPES = (1, 1000, 1 << 20, (1 << 25) + 3)
TOLERANCE = {"rtol": 1e-5, "atol": 0.0}
"""Of a sum of numbers from 0 to 1: each block sums in float64, the blocks' sums are added in float32."""


def code() -> DeviceCode:
    """Return the sample up to the first function that launches."""
    return DeviceCode(
        "cuda",
        before(COPY.text(COPY.files[0]), "void call_reduceSinglePassMultiBlockCG("),
        name="reductionMultiBlockCG.cu",
        includes=empty("helper_cuda.h", "helper_functions.h"),
        options=(*COPY.includes(), DEFAULT_DEVICE),
        target="sm_90a",
    )


def program() -> KernelProgram:
    """Return the sum of all elements."""
    p = ProgramBuilder("real_reduction", code())
    n = Symbol("n", min=1, max=(1 << 31) - 1)
    x = p.input("x", "float32", (n,))
    held = occupancy(KERNEL, THREADS, SHARED_BYTES)
    resident = device.multiprocessor_count * held
    p.check(ge(held, 1), "a device that holds a block of the reduction")
    partial = p.workspace("partial", "float32", (maximum(resident, 1),))
    total = p.output("total", "float32", (1,))
    shape = {"block": THREADS, "dynamic_smem_bytes": SHARED_BYTES, "cooperative": True}
    grid = minimum((n + THREADS - 1) // THREADS, resident)
    p.launch(KERNEL, (x, partial, n.cast("uint32")), grid=grid, **shape)
    # The sum lies in the first of as many elements as there are blocks: summing that one alone brings it out.
    p.launch(KERNEL, (partial, total, const(1, "uint32")), grid=1, **shape)
    return p.build()


def arguments(shape: int, place: str) -> tuple[torch.Tensor, ...]:
    """Return numbers from 0 to 1."""
    return (torch.rand(shape, device=place),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return the sum in float64."""
    return x.double().sum().reshape(1)
