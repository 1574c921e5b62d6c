"""Shapes, strides and grids that are expressions."""

import tilelang.language as T
import torch
from tilelang_corpus.entry import Entry

__all__ = ["ENTRIES"]


def _compound_extents():
    n, b = T.dynamic("n"), T.dynamic("B")

    @T.prim_func
    def compound_extents(
        x: T.Tensor((n,), T.float32),
        offsets: T.Tensor((b,), T.int32),
        pairs: T.Tensor((n * 2,), T.float32),
        ends: T.Tensor((b + 1,), T.int32),
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                if block * 128 + i < n:
                    pairs[2 * (block * 128 + i)] = x[block * 128 + i]
                    pairs[2 * (block * 128 + i) + 1] = -x[block * 128 + i]
        with T.Kernel(T.ceildiv(b + 1, 32), threads=32) as block:
            for i in T.Parallel(32):
                if block * 32 + i < b + 1:
                    ends[block * 32 + i] = T.if_then_else(
                        block * 32 + i < b, offsets[T.min(block * 32 + i, b - 1)], 7
                    )

    return compound_extents


def _strided_rows():
    n, s, t = T.dynamic("n"), T.dynamic("s"), T.dynamic("t")

    @T.prim_func
    def strided_rows(
        x: T.StridedTensor((n, 64), (s, 1), T.float32), y: T.StridedTensor((n, 64), (t, 2), T.float32)
    ):
        with T.Kernel(n, threads=64) as row:
            for i in T.Parallel(64):
                y[row, i] = x[row, i] + 1.0

    return strided_rows


def _strided_batches():
    b, m, s = T.dynamic("b"), T.dynamic("m"), T.dynamic("s", "int64")

    @T.prim_func
    def strided_batches(
        x: T.StridedTensor((b, m, 32), (s, 32, 1), T.float16),
        y: T.Tensor((b, m, 32), T.float16),
        scale: T.float32,
    ):
        with T.Kernel(m, b, threads=32) as (row, batch):
            for i in T.Parallel(32):
                y[batch, row, i] = T.cast(T.cast(x[batch, row, i], T.float32) * scale, T.float16)

    return strided_batches


def _transpose():
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def transpose(x: T.Tensor((m, n), T.float32), y: T.Tensor((n, m), T.float32)):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 32), threads=128) as (bx, by):
            tile = T.alloc_shared((32, 33), T.float32)
            for i, j in T.Parallel(32, 32):
                if (by * 32 + i < m) and (bx * 32 + j < n):
                    tile[i, j] = x[by * 32 + i, bx * 32 + j]
            for i, j in T.Parallel(32, 32):
                if (bx * 32 + i < n) and (by * 32 + j < m):
                    y[bx * 32 + i, by * 32 + j] = tile[j, i]

    return transpose


def _odd_grid():
    n, m = T.dynamic("n"), T.dynamic("m")

    @T.prim_func
    def odd_grid(x: T.Tensor((n,), T.float32), like: T.Tensor((m,), T.float32), y: T.Tensor((n,), T.float32)):
        with T.Kernel(T.min(T.ceildiv(n, 128), 5), T.max(1, m % 4), threads=128) as (block, _):
            for step in T.serial(T.ceildiv(n, 128 * T.min(T.ceildiv(n, 128), 5))):
                for i in T.Parallel(128):
                    k = (step * T.min(T.ceildiv(n, 128), 5) + block) * 128 + i
                    if k < n:
                        y[k] = x[k] + like[0]

    return odd_grid


def _three_axes():
    a, b = T.dynamic("a"), T.dynamic("b")

    @T.prim_func
    def three_axes(x: T.Tensor((a, b, 6), T.float32), y: T.Tensor((a, b, 6), T.float32)):
        with T.Kernel(T.ceildiv(b, 8), a, 3, threads=(8, 2)) as (bx, by, bz):
            tx, ty = T.get_thread_bindings()[:2]
            if bx * 8 + tx < b:
                y[by, bx * 8 + tx, bz * 2 + ty] = x[by, bx * 8 + tx, bz * 2 + ty] * 3.0

    return three_axes


def _wide_length():
    n = T.dynamic("n", "int64")

    @T.prim_func
    def wide_length(x: T.Tensor((n,), T.int64), y: T.Tensor((n,), T.int64)):
        with T.Kernel(T.ceildiv(n, T.int64(128)), threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i] * T.int64(3)

    return wide_length


def _host_let():
    n = T.dynamic("n")

    @T.prim_func
    def host_let(x: T.Tensor((n,), T.float32), skip: T.int32):
        most = n // 2 + skip
        with T.Kernel(T.ceildiv(most, 128), threads=128) as block:
            for i in T.Parallel(128):
                if block * 128 + i < most:
                    x[block * 128 + i] = x[block * 128 + i] * 2.0

    return host_let


def _checked():
    n = T.dynamic("n")

    @T.prim_func
    def checked(x: T.Tensor((n,), T.float32), y: T.Tensor((n,), T.float32)):
        T.assume(n % 128 == 0)
        T.Assert(n > 200, "at least two blocks")
        with T.Kernel(n // 128, threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i] - 1.0

    return checked


def _halved(x, skip):
    most = x.shape[0] // 2 + skip
    return (torch.cat([x[:most] * 2, x[most:]]),)


def _ends(x, offsets):
    pairs = torch.stack([x, -x], dim=1).reshape(-1)
    return pairs, torch.cat([offsets, torch.full_like(offsets[:1], 7)])


def _strided_inputs(draw):
    n = draw.size(1, 40)
    x = draw.tensor((n, 64 + draw.size(0, 9)))[:, :64]
    return x, draw.empty((n, 128 + draw.size(0, 9)))[:, :128:2]


def _batches(draw):
    b, m, first = draw.size(1, 5), draw.size(1, 20), draw.size(0, 3)
    whole = draw.tensor((b, m + 8, 32), "float16")
    return whole[:, first : first + m], draw.number(-2, 2)


def _three(draw):
    return (draw.tensor((draw.size(1, 9), draw.size(1, 40), 6)),)


ENTRIES = (
    Entry(
        name="compound_extents",
        covers="outputs of n * 2 and B + 1 elements",
        make=_compound_extents,
        inputs=lambda draw: (draw.tensor((draw.size(1, 500),)), draw.tensor((draw.size(1, 90),), "int32")),
        reference=_ends,
        out_idx=(2, 3),
    ),
    Entry(
        name="strided_rows",
        covers="dynamic strides, and a stride of two",
        make=_strided_rows,
        inputs=_strided_inputs,
        reference=lambda x, y: (x + 1,),
        written=(1,),
    ),
    Entry(
        name="strided_batches",
        covers="a dynamic stride of 64 bits, storage offsets, a scalar after the output",
        make=_strided_batches,
        inputs=_batches,
        reference=lambda x, scale: ((x.float() * scale).half(),),
        out_idx=(1,),
    ),
    Entry(
        name="transpose",
        covers="an output whose dimensions are its input's in another order",
        make=_transpose,
        inputs=lambda draw: (draw.tensor((draw.size(1, 90), draw.size(1, 90))),),
        reference=lambda x: (x.T.contiguous(),),
        out_idx=(1,),
    ),
    Entry(
        name="odd_grid",
        covers="a grid of min, max and mod",
        make=_odd_grid,
        inputs=lambda draw: (draw.tensor((draw.size(1, 3000),)), draw.tensor((draw.size(1, 9),))),
        reference=lambda x, like: (x + like[0],),
        out_idx=(2,),
    ),
    Entry(
        name="three_axes",
        covers="a grid of three axes, a block of two",
        make=_three_axes,
        inputs=_three,
        reference=lambda x: (x * 3,),
        out_idx=(1,),
    ),
    Entry(
        name="wide_length",
        covers="a dynamic length of 64 bits",
        make=_wide_length,
        inputs=lambda draw: (draw.tensor((draw.size(1, 2000),), "int64"),),
        reference=lambda x: (x * 3,),
        out_idx=(1,),
    ),
    Entry(
        name="host_let",
        covers="a value that the host computes before the launch",
        make=_host_let,
        inputs=lambda draw: (draw.tensor((draw.size(20, 2000),)), draw.size(0, 9)),
        reference=_halved,
        written=(0,),
    ),
    Entry(
        name="checked",
        covers="an assume and an assert",
        make=_checked,
        inputs=lambda draw: (draw.tensor((draw.size(256, 2048, 128),)),),
        reference=lambda x: (x - 1,),
        out_idx=(1,),
    ),
)
