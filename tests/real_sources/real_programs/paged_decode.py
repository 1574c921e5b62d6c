"""FlashInfer's decoding attention over a paged cache: its parameters are one struct with the cache's within it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from real_programs.copies import Copy
from real_programs.host_text import DEFAULT_DEVICE, HOST_AS_DEVICE, STRING, empty

from trunnion import DeviceCode, KernelProgram, ProgramBuilder, Symbol, const, measured, struct

if TYPE_CHECKING:
    from trunnion.model.struct import Struct

COPY = Copy(
    "flashinfer",
    "0.2.14",
    "https://github.com/flashinfer-ai/flashinfer",
    "v0.2.14",
    (
        "include/flashinfer/attention/decode.cuh",
        "include/flashinfer/attention/default_decode_params.cuh",
        "include/flashinfer/attention/variants.cuh",
        "include/flashinfer/fastdiv.cuh",
    ),
)
HEADS, GROUPS, DIM, PAGE = 32, 8, 128, 16
"""Heads of queries, heads of keys and values, elements of a head, tokens of a page."""
BLOCK = (16, 4, 2)
"""Threads: 8 elements of a head for each, the queries' heads that share keys, and the rest of 128 threads."""
SHARED_BYTES = 2 * 2 * BLOCK[1] * BLOCK[2] * DIM * 2 + 128 * 8
"""Two stages of keys and of values in float16, and an offset for each thread."""
SHAPES = ((1,), (16, 17, 1), (5, 128, 1000, 33, 2048, 64, 15))
"""Tokens that are cached for each sequence."""
TOLERANCE = {"rtol": 2e-3, "atol": 2e-3}
"""Of float16, against float32."""
TYPE = "Params"
_SOURCE = """
#include <cooperative_groups.h>
#include <tuple>
#include <utility>
typedef unsigned short ushort;
#include <flashinfer/attention/decode.cuh>
#include <flashinfer/attention/default_decode_params.cuh>
#include <flashinfer/attention/variants.cuh>
using Variant = flashinfer::DefaultAttention<false, false, false, false>;
using Params = flashinfer::BatchDecodeParams<half, half, half, int32_t>;
"""
_KERNEL = (
    "flashinfer::BatchDecodeWithPagedKVCacheKernel<flashinfer::PosEncodingMode::kNone, 2, 1, 8, "
    f"{', '.join(map(str, BLOCK))}, Variant, Params>"
)


def code() -> DeviceCode:
    """Return the project's headers, as they are; its own errors' header, which is for the host, is left out."""
    return DeviceCode(
        "cuda",
        HOST_AS_DEVICE + _SOURCE,
        name="paged_decode.cu",
        includes=(
            *empty("exception", "iostream", "sstream", "vector"),
            ("string", STRING),
        ),
        defines=(("FLASHINFER_EXCEPTION_H_", None),),
        options=(*COPY.includes("include"), "--std=c++17", DEFAULT_DEVICE),
        target="sm_90a",
    )


def divisor(number: int) -> Struct:
    """Return what divides by a number with a multiplication and a shift: unsigned, of 32 bits.

    The multiplier is 2**p / number, rounded up, for the least p from 32 on with which every quotient is right; of its
    33 bits the highest is a flag.
    """
    most = (1 << 32) - 1 - ((1 << 32) - number) % number
    power = 32
    while 1 << power <= most * (number - 1 - ((1 << power) - 1) % number):
        power += 1
    multiplier = ((1 << power) + number - 1 - ((1 << power) - 1) % number) // number
    numbers = {"d": number, "m": multiplier % (1 << 32), "s": power - 32, "a": multiplier >> 32}
    return struct(*((name, const(value, "uint32")) for name, value in numbers.items()))


def program() -> KernelProgram:
    """Return a token's attention over what is cached for each sequence."""
    p = ProgramBuilder("real_paged_decode", code())
    batch = Symbol("batch", min=1, max=65535)
    pages, used, ends = Symbol("pages", min=1, max=1 << 17), Symbol("used", max=(1 << 31) - 1), batch + 1
    q = p.input("q", "float16", (batch, HEADS, DIM), alignment=16)
    k, v = (p.input(name, "float16", (pages, PAGE, GROUPS, DIM), alignment=16) for name in "kv")
    indices, indptr = p.input("indices", "int32", (used,)), p.input("indptr", "int32", (ends,))
    last, requests = (p.input(name, "int32", (batch,)) for name in ("last_page_len", "requests"))
    out = p.output("out", "float16", (batch, HEADS, DIM))
    tiles, chunk = (
        p.workspace(name, "int32", (size,), zeroed=True) for name, size in (("tiles", batch), ("chunk", 1))
    )
    strides = {"stride_page": PAGE * GROUPS * DIM, "stride_n": GROUPS * DIM, "stride_h": DIM}
    sizes = {"num_heads": GROUPS, "head_dim": DIM, **strides}
    cache = struct(
        ("page_size", divisor(PAGE)),
        ("batch_size", batch.cast("uint32")),
        *((name, const(size, "uint32")) for name, size in sizes.items()),
        *(("k_data", k), ("v_data", v), ("indices", indices), ("indptr", indptr), ("last_page_len", last)),
    )
    params = struct(
        *(("q", q), ("paged_kv", cache), ("o", out)),
        ("padded_batch_size", batch.cast("uint32")),
        ("num_qo_heads", const(HEADS, "uint32")),
        ("q_stride_n", const(HEADS * DIM, "int32")),
        ("q_stride_h", const(DIM, "int32")),
        ("window_left", const(-1, "int32")),
        ("sm_scale", const(1 / math.sqrt(DIM), "float32")),
        *(("rope_rcp_scale", const(1.0, "float32")), ("rope_rcp_theta", const(1e-4, "float32"))),
        *(("request_indices", requests), ("kv_tile_indices", tiles), ("kv_chunk_size_ptr", chunk)),
        ("partition_kv", const(value=False, dtype="bool")),
    )
    params = measured(params, TYPE, code())
    p.launch(_KERNEL, (params,), grid=(batch, GROUPS), block=BLOCK, dynamic_smem_bytes=SHARED_BYTES)
    return p.build()


def arguments(shape: tuple[int, ...], place: str) -> tuple[torch.Tensor, ...]:
    """Return a query for each sequence, and a cache whose pages lie in any order, some of them nobody's."""
    counts = [-(-length // PAGE) for length in shape]
    pages = sum(counts) + 3
    order = torch.randperm(pages)[: sum(counts)].to(torch.int32)
    ends = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
    last = torch.tensor([length - (count - 1) * PAGE for length, count in zip(shape, counts, strict=True)])
    queries = torch.randn(len(shape), HEADS, DIM)
    keys, values = (torch.randn(pages, PAGE, GROUPS, DIM) for _ in range(2))
    halves = (one.half().to(place) for one in (queries, keys, values))
    numbers = (order, ends, last.to(torch.int32), torch.arange(len(shape), dtype=torch.int32))
    return *halves, *(one.to(place) for one in numbers)


def reference(*given: torch.Tensor) -> torch.Tensor:
    """Return each sequence's attention in float32, of its own tokens in their order."""
    queries, keys, values, order, ends, last, _ = given
    rows = []
    for number, query in enumerate(queries.float()):
        own = order[ends[number] : ends[number + 1]].long()
        length = (len(own) - 1) * PAGE + int(last[number])
        key, value = (
            one[own].reshape(-1, GROUPS, DIM)[:length].float().repeat_interleave(HEADS // GROUPS, 1)
            for one in (keys, values)
        )
        scores = torch.einsum("hd,nhd->hn", query, key) / math.sqrt(DIM)
        rows.append(torch.einsum("hn,nhd->hd", scores.softmax(-1), value))
    return torch.stack(rows)
