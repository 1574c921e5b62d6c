"""FlashAttention-3's forward for Hopper, heads of 128 elements in float16, causal and not: a struct of 2,368 bytes."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import torch
from real_programs.copies import Copy
from real_programs.cute_tuples import cute_tuple
from real_programs.fast_division import fast_divmod, fast_divmod_by, fast_divmod_shifted
from real_programs.host_text import DEFAULT_DEVICE

from trunnion import (
    DeviceCode,
    Expr,
    KernelProgram,
    ProgramBuilder,
    Symbol,
    ceildiv,
    const,
    device,
    le,
    maximum,
    measured,
    struct,
)
from trunnion.model.expr import Const

if TYPE_CHECKING:
    from trunnion.model.params import TensorParam
    from trunnion.model.struct import Struct
    from trunnion.model.workspace import Workspace

COPY = Copy(
    "flash-attention",
    "2.8.3",
    "https://github.com/Dao-AILab/flash-attention",
    "v2.8.3",
    ("hopper/flash_fwd_kernel_sm90.h", "hopper/tile_scheduler.hpp", "hopper/tile_size.h"),
)
CUTLASS = Copy(
    "cutlass",
    "dc48179",
    "https://github.com/NVIDIA/cutlass",
    "dc4817921edda44a549197ff3a9dcf5df0636e7b",
    ("include/cute/tensor.hpp",),
)
"""What that version of the project names as its submodule."""
HEADS, GROUPS, DIM, ROWS, THREADS = 16, 4, 128, 128, 384
"""Heads of queries, heads of keys and values, elements of a head; a block's rows of queries, and its threads."""
COLUMNS = {False: 176, True: 128}
"""Rows of keys that a block takes at once, by whether it is causal."""
SHARED_BYTES = {False: 216064, True: 166912}
"""What the kernel's type says, which the source compares."""
CACHE_BYTES = 32 << 20
"""The part of the L2 cache for which the causal kernel's scheduler groups heads."""
SHAPES = ((1, 128, 128), (2, 200, 333), (4, 1024, 1024), (2, 4096, 4096))
"""Sequences, tokens of queries, tokens of keys; no fewer of keys, so that no row of a causal one is empty."""
TOLERANCE = {"rtol": 2e-3, "atol": 2e-3}
"""Of float16, against float32."""
SOURCE = """
#include <algorithm>
#include <tuple>
#include <type_traits>
#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/device_kernel.h>
#include "tile_size.h"
#include "tile_scheduler.hpp"
#include "flash_fwd_kernel_sm90.h"
#include "mainloop_fwd_sm90_tma_gmma_ws.hpp"
#include "epilogue_fwd.hpp"
using namespace cute;
template <bool Causal> struct Forward {
  static constexpr auto sizes = tile_size_fwd_sm90(128, 128, Causal, false, 2);
  static constexpr int rows = std::get<0>(sizes), columns = std::get<1>(sizes);
  using Alone = Shape<_1, _1, _1>;
  using Half = cutlass::half_t;
  using Mainloop = flash::CollectiveMainloopFwdSm90<
      2, Alone, Shape<Int<rows>, Int<columns>, _128>, 128, Half, float, cutlass::arch::Sm90, Causal, false, false,
      false, false, false, false, std::get<2>(sizes), std::get<3>(sizes), false, false, false>;
  using Epilogue = flash::CollectiveEpilogueFwd<Shape<Int<rows>, _128, Int<columns>>, Alone, Half, cutlass::arch::Sm90,
      Mainloop::NumMmaThreads, false, false, false, false>;
  using Scheduler = std::conditional_t<Causal,
      flash::DynamicPersistentTileScheduler<Mainloop::NumMmaThreads, Mainloop::NumProducerThreads, false, false, true>,
      flash::StaticPersistentTileScheduler<false>>;
  using Kernel = flash::FlashAttnFwdSm90<Mainloop, Epilogue, Scheduler>;
  using Params = typename Kernel::Params;
};
"""


def code(*, causal: bool) -> DeviceCode:
    """Return the project's headers, as they are, and the types that its own launcher would choose."""
    given = {"columns": COLUMNS[causal], "rows": ROWS, "Kernel::SharedStorageSize": SHARED_BYTES[causal]}
    given["Kernel::MaxThreadsPerBlock"] = THREADS
    kind = f"Forward<{str(causal).lower()}>"
    asserted = "\n".join(f"static_assert({kind}::{name} == {value});" for name, value in given.items())
    return DeviceCode(
        "cuda",
        f"{SOURCE}{asserted}\n",
        name="flash_attention.cu",
        defines=(("M_LN2", str(math.log(2))),),
        options=(*COPY.includes("hopper"), *CUTLASS.includes("include"), "--std=c++17", DEFAULT_DEVICE),
        target="sm_90a",
    )


def shape_of(tokens: Expr, heads: int, batch: Expr) -> tuple[object, ...]:
    """Return extents in the project's order: tokens, elements, heads, sequences."""
    return tokens.cast("int32"), const(DIM, "int32"), const(heads, "int32"), batch.cast("int32")


def stride_of(tokens: Expr, heads: int) -> tuple[object, ...]:
    """Return strides in that order; that elements lie side by side, the type says."""
    return const(heads * DIM, "int64"), None, const(DIM, "int64"), tokens * (heads * DIM)


def over(
    matrix: TensorParam, extents: tuple[Expr, Expr], heads: int, rows: int, *, splits: bool = False
) -> Struct:
    """Return a map over the heads of each sequence: 64 elements wide, which is the swizzle, and some rows high."""
    batch, tokens = extents
    more, stride = ((1,), (batch * tokens * (heads * DIM),)) if splits else ((), ())
    panels = matrix.tiled(
        (*more, 1, 1, rows, 64),
        swizzle="128B",
        shape=(*more, batch, heads, tokens, DIM),
        strides=(*stride, tokens * (heads * DIM), DIM, heads * DIM, 1),
    )
    return struct(("tma_desc_", panels))


def mainloop(
    q: TensorParam, k: TensorParam, v: TensorParam, sizes: tuple[Expr, Expr, Expr], columns: int
) -> Struct:
    """Return what the loop over keys is given; members for what is not asked for here are left 0."""
    batch, m, n = sizes
    queries, keys = cute_tuple(*shape_of(m, HEADS, batch)), cute_tuple(*shape_of(n, GROUPS, batch))
    rows, cached = cute_tuple(*stride_of(m, HEADS)), cute_tuple(*stride_of(n, GROUPS))
    return struct(
        *(("ptr_Q", q), ("shape_Q", queries), ("stride_Q", rows)),
        *(("shape_Q_packed", queries), ("stride_Q_packed", rows)),
        *(("ptr_K", k), ("shape_K", keys), ("stride_K", cached)),
        *(("ptr_V", v), ("headdim_v", const(DIM, "int32")), ("stride_V", cached)),
        *((f"{name}_divmod", fast_divmod_by(1)) for name in ("page_size", "blockN_per_page_size")),
        ("qhead_per_khead_divmod", fast_divmod_by(HEADS // GROUPS)),
        ("tma_load_Q", over(q, (batch, m), HEADS, ROWS)),
        *((f"tma_load_{name}", over(one, (batch, n), GROUPS, columns)) for name, one in (("K", k), ("V", v))),
        ("softmax_scale_log2", const(math.log2(math.e) / math.sqrt(DIM), "float32")),
        *((f"window_size_{side}", const(-1, "int32")) for side in ("left", "right")),
        ("num_splits", const(1, "int32")),
    )


def epilogue(out: TensorParam, lse: TensorParam, batch: Expr, m: Expr) -> Struct:
    """Return what the result's stores are given: one split, which is the last extent."""
    one, none = const(1, "int32"), const(0, "int64")
    extents, strides = (*shape_of(m, HEADS, batch), one), cute_tuple(*stride_of(m, HEADS), none)
    weights = cute_tuple(None, m, m * HEADS, none)
    return struct(
        *(("ptr_O", out), ("shape_O", cute_tuple(*extents)), ("stride_O", strides)),
        *(("shape_O_packed", cute_tuple(*extents)), ("stride_O_packed", strides)),
        *(("ptr_LSE", lse), ("stride_LSE", weights)),
        *(("shape_LSE_packed", cute_tuple(extents[0], *extents[2:])), ("stride_LSE_packed", weights)),
        ("tma_store_O", over(out, (batch, m), HEADS, ROWS, splits=True)),
    )


def scheduler(batch: Expr, m: Expr, n: Expr, counter: Workspace | None) -> Struct:
    """Return how blocks find their tiles: each its share, or by a counter, the heads that fit the cache together."""
    tiles = ceildiv(m, ROWS)
    total = (tiles * batch * HEADS).cast("int32")
    fields = [
        ("total_blocks", total),
        ("m_block_divmod", fast_divmod(tiles, 10)),
        ("head_divmod", fast_divmod_by(HEADS)),
    ]
    if counter is None:
        return struct(*fields, ("nsplits_divmod", fast_divmod_by(1)))
    # The cache holds a head's keys and values so often, rounded down to a power of two; heads share them in groups.
    head = (DIM + DIM) * 2
    fitting = reduce(add, (le(n, (CACHE_BYTES >> power) // head) for power in range(1, 17)))
    power = fitting + (HEADS // GROUPS).bit_length() - 1
    section = 1 << power
    residue = maximum(batch * HEADS % section, 1)
    return struct(
        *fields,
        ("l2_minor_divmod", fast_divmod_shifted(Const(1), power, 1)),
        ("l2_major_divmod", fast_divmod_shifted(tiles, power, 10)),
        ("l2_minor_residual_divmod", fast_divmod(residue, 18)),
        ("num_hb_quotient", (batch * HEADS // section).cast("int32")),
        ("tile_count_semaphore", counter),
    )


def program(*, causal: bool) -> KernelProgram:
    """Return attention, and the logarithm of each row's sum; the last queries attend to all keys."""
    p = ProgramBuilder(f"real_flash_attention_{'causal' if causal else 'full'}", code(causal=causal))
    batch, m, n = Symbol("batch", min=1, max=1 << 10), *(Symbol(name, min=1, max=1 << 17) for name in "mn")
    q = p.input("q", "float16", (batch, m, HEADS, DIM), alignment=16)
    k, v = (p.input(name, "float16", (batch, n, GROUPS, DIM), alignment=16) for name in "kv")
    out = p.output("out", "float16", (batch, m, HEADS, DIM))
    lse = p.output("lse", "float32", (batch, HEADS, m))
    counter = p.workspace("counter", "int32", (1,), zeroed=True) if causal else None
    params = struct(
        ("mainloop", mainloop(q, k, v, (batch, m, n), COLUMNS[causal])),
        ("epilogue", epilogue(out, lse, batch, m)),
        ("hw_info", struct(("sm_count", device.multiprocessor_count.cast("int32")))),
        ("scheduler", scheduler(batch, m, n, counter)),
    )
    kind = f"Forward<{str(causal).lower()}>"
    p.launch(
        f"cutlass::device_kernel<{kind}::Kernel>",
        (measured(params, f"{kind}::Params", code(causal=causal)),),
        grid=device.multiprocessor_count,
        block=THREADS,
        dynamic_smem_bytes=SHARED_BYTES[causal],
    )
    return p.build()


def arguments(shape: tuple[int, int, int], place: str) -> tuple[torch.Tensor, ...]:
    """Return queries, keys and values."""
    batch, m, n = shape
    sizes = ((batch, m, HEADS, DIM), *((batch, n, GROUPS, DIM),) * 2)
    return tuple(torch.randn(size).half().to(place) for size in sizes)


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both results in float32."""
    keys, values = (one.float().repeat_interleave(HEADS // GROUPS, 2) for one in (k, v))
    scores = torch.einsum("bmhd,bnhd->bhmn", q.float(), keys) / math.sqrt(DIM)
    if causal:
        m, n = scores.shape[-2:]
        later = torch.ones(m, n, dtype=torch.bool, device=q.device).triu(n - m + 1)
        scores = scores.masked_fill(later, -math.inf)
    return torch.einsum("bhmn,bnhd->bmhd", scores.softmax(-1), values), scores.logsumexp(-1)
