"""Kernels that take as long as real ones do: what the device's time is measured with."""

from dataclasses import dataclass

import tilelang.language as T
import torch
from tilelang_corpus.drawing import Draw
from tilelang_corpus.entry import Entry
from tilelang_corpus.networks import attention

__all__ = ["LARGE", "LargeEntry"]

_SIZE = 8192
_HEADS = (4, 32, 4096, 128)
"""Batch, heads, length and size of a head."""


@dataclass(frozen=True, kw_only=True)
class LargeEntry(Entry):
    """A kernel whose reference is computed on the device too, and whose operations are counted."""

    operations: int
    """Floating-point operations of one call."""

    large: bool = True
    """What tells it from an `Entry`."""


def _gemm():
    @T.prim_func
    def gemm_8192(
        A: T.Tensor((_SIZE, _SIZE), T.float16),
        B: T.Tensor((_SIZE, _SIZE), T.float16),
        C: T.Tensor((_SIZE, _SIZE), T.float16),
    ):
        with T.Kernel(_SIZE // 256, _SIZE // 128, threads=256) as (bx, by):
            a = T.alloc_shared((128, 64), T.float16)
            b = T.alloc_shared((64, 256), T.float16)
            total = T.alloc_fragment((128, 256), T.float32)
            T.use_swizzle(panel_size=10)
            T.clear(total)
            for step in T.Pipelined(_SIZE // 64, num_stages=3):
                T.copy(A[by * 128, step * 64], a)
                T.copy(B[step * 64, bx * 256], b)
                T.gemm(a, b, total)
            T.copy(total, C[by * 128, bx * 256])

    return gemm_8192


def _drawn(draw: Draw, shape, count):
    return tuple(draw.tensor(shape, "float16") for _ in range(count))


def _attended(q, k, v):
    heads_first = (x.transpose(1, 2) for x in (q, k, v))
    return (torch.nn.functional.scaled_dot_product_attention(*heads_first).transpose(1, 2),)


def _attention_shape():
    batch, heads, length, dim = _HEADS
    return batch, length, heads, dim


_ENTRIES = (
    LargeEntry(
        name="gemm_8192",
        covers="a product of two matrices of 8192 by 8192, float16",
        make=_gemm,
        inputs=lambda draw: _drawn(draw, (_SIZE, _SIZE), 2),
        reference=lambda a, b: (a @ b,),
        out_idx=(2,),
        tolerance=2e-2,
        operations=2 * _SIZE**3,
    ),
    LargeEntry(
        name="attention_4096",
        covers="attention without a mask: batch 4, 32 heads, length 4096, 128 numbers a head, float16",
        make=lambda: attention(*_HEADS),
        inputs=lambda draw: _drawn(draw, _attention_shape(), 3),
        reference=_attended,
        out_idx=(3,),
        tolerance=2e-2,
        operations=4 * _HEADS[0] * _HEADS[1] * _HEADS[2] ** 2 * _HEADS[3],
    ),
)

LARGE = {entry.name: entry for entry in _ENTRIES}
"""By name."""
