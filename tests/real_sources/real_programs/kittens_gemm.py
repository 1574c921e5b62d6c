"""ThunderKittens' bfloat16 GEMM for Hopper: its parameters are three global layouts, each with a tensor map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from real_programs.copies import Copy
from real_programs.excerpts import before
from real_programs.host_text import DEFAULT_DEVICE, HOST_AS_DEVICE

from trunnion import DeviceCode, Expr, KernelProgram, ProgramBuilder, Symbol, device, measured, struct

if TYPE_CHECKING:
    from trunnion.model.params import TensorParam
    from trunnion.model.struct import Struct

COPY = Copy(
    "ThunderKittens",
    "0b55588",
    "https://github.com/HazyResearch/ThunderKittens",
    "0b55588d2769dde0c7a9a606ffc015b0ca7a9551",
    (
        "kernels/gemm/bf16_h100/bf16_h100_gemm.cu",
        "include/kittens.cuh",
        "prototype/prototype.cuh",
    ),
)
TILE = 64
"""Rows and columns of a tile in shared memory: 128 bytes of bfloat16, which is the swizzle."""
THREADS = (8 + 4) * 32
SHARED_BYTES = 227 * 1024 - 1024
SHAPES = ((128, 256, 64), (1024, 512, 192), (4096, 4096, 4096))
"""Rows, columns, and the extent that is summed over."""
TOLERANCE = {"rtol": 1.6e-2, "atol": 1e-2}
"""Of bfloat16, against float32: a rounding of the result is up to 2**-8 of it."""
_MATRIX = "matmul_template<2, 4, 8>"
TYPE = f"{_MATRIX}::layout::globals"


def code() -> DeviceCode:
    """Return the project's kernel up to its benchmark, with its own macro for compilers that have no host."""
    return DeviceCode(
        "cuda",
        HOST_AS_DEVICE + before(COPY.text(COPY.files[0]), "#include <iostream>"),
        name="bf16_h100_gemm.cu",
        includes=(("../common.cuh", ""),),
        defines=(("KITTENS_HOPPER", None), ("KITTENS_NO_HOST", None)),
        options=(*COPY.includes("include", "prototype"), "--std=c++20", "--use_fast_math", DEFAULT_DEVICE),
        target="sm_90a",
    )


def layout(matrix: TensorParam, rows: Expr, columns: Expr) -> Struct:
    """Return a matrix as the project passes it: its address, its extents and a map over panels of 64 columns."""
    panels = matrix.tiled(
        (1, 1, 1, TILE, TILE),
        swizzle="128B",
        shape=(1, 1, columns // TILE, rows, TILE),
        strides=(rows * columns, rows * columns, TILE, columns, 1),
    )
    extents = (("rows_internal", rows), ("cols_internal", columns))
    return struct(
        ("raw_ptr", matrix),
        *((name, struct(("v", extent.cast("uint64")))) for name, extent in extents),
        ("tma_descs", struct(("tma_desc", panels))),
    )


def program() -> KernelProgram:
    """Return the product of two row-major matrices; a block for each multiprocessor takes tile after tile."""
    p = ProgramBuilder("real_kittens_gemm", code())
    m, n = (Symbol(name, min=1, max=1 << 20, multiple_of=step) for name, step in (("m", 128), ("n", 256)))
    k = Symbol("k", min=1, max=1 << 20, multiple_of=TILE)
    a, b = (p.input(name, "bfloat16", shape, alignment=16) for name, shape in (("a", (m, k)), ("b", (k, n))))
    c = p.output("c", "bfloat16", (m, n))
    matrices = struct(("A", layout(a, m, k)), ("B", layout(b, k, n)), ("C", layout(c, m, n)))
    p.launch(
        f"kittens::prototype::lcf::kernel<{_MATRIX}>",
        (measured(matrices, TYPE, code()),),
        grid=device.multiprocessor_count,
        block=THREADS,
        dynamic_smem_bytes=SHARED_BYTES,
    )
    return p.build()


def arguments(shape: tuple[int, int, int], place: str) -> tuple[torch.Tensor, ...]:
    """Return two matrices of numbers from -1 to 1, as the project's own benchmark has them."""
    m, n, k = shape
    return tuple((2 * torch.rand(size) - 1).bfloat16().to(place) for size in ((m, k), (k, n)))


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product in float32."""
    return a.float() @ b.float()
