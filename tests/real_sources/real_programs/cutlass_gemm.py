"""A warp-specialised GEMM of CUTLASS 3.x, built by its collective builders and given its kernel's own ``Params``."""

from __future__ import annotations

import torch
from real_programs.copies import Copy
from real_programs.cute_tuples import cute_tuple
from real_programs.host_text import DEFAULT_DEVICE

from trunnion import DeviceCode, KernelProgram, ProgramBuilder, Symbol, const, measured, struct

COPY = Copy(
    "cutlass",
    "4.7.0",
    "https://github.com/NVIDIA/cutlass",
    "v4.7.0",
    ("include/cutlass/gemm/kernel/gemm_universal.hpp", "include/cute/tensor.hpp"),
)
TILE, DEPTH, STAGES = 128, 64, 4
"""Rows and columns of a block's result, what one stage sums over, stages of the pipeline."""
THREADS = 256
"""A warp group that loads, and one that multiplies."""
SHARED_BYTES = STAGES * 2 * TILE * DEPTH * 2 + 128
"""Each stage's two tiles, and the barriers; the source has the compiler compare it with the kernel's type."""
SHAPES = ((128, 128, 64), (200, 264, 520), (4096, 4096, 4096))
"""Rows, columns, and the extent that is summed over."""
TOLERANCE = {"rtol": 1e-3, "atol": 2e-3}
"""Of a float32 sum of float16 products; the reference sums in float32 too, in another order."""
TYPE = "Gemm::Params"
SOURCE = f"""
#include <algorithm>
#include <type_traits>
#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/device_kernel.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
using namespace cute;
using Block = Shape<Int<{TILE}>, Int<{TILE}>, Int<{DEPTH}>>;
using Alone = Shape<_1, _1, _1>;
using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;
using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Block, Alone,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Rows, 4, float, Rows, 4,
    cutlass::epilogue::NoSmemWarpSpecialized>::CollectiveOp;
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, cutlass::half_t, Rows, 8, cutlass::half_t, Columns, 8, float,
    Block, Alone, cutlass::gemm::collective::StageCount<{STAGES}>,
    cutlass::gemm::KernelTmaWarpSpecialized>::CollectiveOp;
using Gemm = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
static_assert(Gemm::SharedStorageSize == {SHARED_BYTES} && Gemm::MaxThreadsPerBlock == {THREADS});
"""


def code() -> DeviceCode:
    """Return the project's headers, as they are, and the types of one GEMM."""
    return DeviceCode(
        "cuda",
        SOURCE,
        name="cutlass_gemm.cu",
        options=(*COPY.includes("include"), "--std=c++17", DEFAULT_DEVICE),
        target="sm_90a",
    )


def program() -> KernelProgram:
    """Return ``alpha * a @ b.T`` in float32."""
    p = ProgramBuilder("real_cutlass_gemm", code())
    m, n = (Symbol(name, min=1, max=1 << 20) for name in "mn")
    k = Symbol("k", min=8, max=1 << 20, multiple_of=8)
    a, b = (p.input(name, "float16", (rows, k), alignment=16) for name, rows in (("a", m), ("b", n)))
    alpha, d = p.scalar("alpha", "float32"), p.output("d", "float32", (m, n))
    loads = (one.tiled((1, TILE, DEPTH), swizzle="128B", shape=(1, rows, k), strides=(rows * k, k, 1))
             for one, rows in ((a, m), (b, n)))  # fmt: skip
    load_a, load_b = (struct(("tma_desc_", load)) for load in loads)
    nbytes = TILE * DEPTH * 2
    transactions = (
        (f"tma_transaction_bytes{name}", const(count * nbytes, "uint32"))
        for name, count in (("", 2), ("_mk", 1), ("_nk", 1))
    )
    strides = cute_tuple(n, None, const(0, "int64"))
    params = struct(
        ("problem_shape", cute_tuple(*(size.cast("int32") for size in (m, n, k)), const(1, "int32"))),
        ("mainloop", struct(("tma_load_a", load_a), ("tma_load_b", load_b), *transactions)),
        ("epilogue", struct(("thread", struct(("alpha", alpha))), ("ptr_D", d), ("dD", strides))),
    )
    params = measured(params, TYPE, code())
    grid = ((m + TILE - 1) // TILE, (n + TILE - 1) // TILE)
    p.launch(
        "cutlass::device_kernel<Gemm>",
        (params,),
        grid=grid,
        block=THREADS,
        cluster=(1, 1, 1),
        dynamic_smem_bytes=SHARED_BYTES,
    )
    return p.build()


def arguments(shape: tuple[int, int, int], place: str) -> tuple[torch.Tensor | float, ...]:
    """Return two matrices and a factor."""
    m, n, k = shape
    a, b = (torch.randn(rows, k).half().to(place) for rows in (m, n))
    return a, b, 0.5


def reference(a: torch.Tensor, b: torch.Tensor, alpha: float) -> torch.Tensor:
    """Return the product in float32."""
    return alpha * (a.float() @ b.float().T)
