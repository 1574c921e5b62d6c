"""What networks are made of: convolution, attention, normalisation, reductions, scans and histograms."""

import tilelang.language as T
import torch
from tilelang.layout import make_swizzled_layout
from tilelang_corpus.entry import Entry

__all__ = ["ENTRIES", "attention", "convolution"]


def convolution(batch, channels, height, filters):
    """Return a 3 by 3 convolution over a square image, channels innermost, with a border of zeros."""
    pixels = batch * height * height

    @T.prim_func
    def convolution(
        image: T.Tensor((batch, height, height, channels), T.float16),
        weights: T.Tensor((9 * channels, filters), T.float16),
        result: T.Tensor((pixels, filters), T.float16),
    ):
        with T.Kernel(T.ceildiv(filters, 64), T.ceildiv(pixels, 64), threads=128) as (bx, by):
            patch = T.alloc_shared((64, 64), T.float16)
            weight = T.alloc_shared((64, 64), T.float16)
            tile = T.alloc_shared((64, 64), T.float16)
            total = T.alloc_fragment((64, 64), T.float32)
            T.annotate_layout({tile: make_swizzled_layout(tile)})
            T.clear(total)
            for step in T.Pipelined(T.ceildiv(9 * channels, 64), num_stages=2):
                T.im2col(image, patch, by, step, 3, 1, 1, 1)
                T.copy(weights[step * 64, bx * 64], weight)
                T.gemm(patch, weight, total)
            T.copy(total, tile)
            T.copy(tile, result[by * 64, bx * 64])

    return convolution


def _running_softmax(scale):
    @T.macro
    def weigh(scores, highest, before, factor, total, row_sums):
        T.copy(highest, before)
        T.reduce_max(scores, highest, dim=1, clear=False)
        for i in T.Parallel(64):
            factor[i] = T.exp2((before[i] - highest[i]) * scale)
        for i, j in T.Parallel(64, 64):
            scores[i, j] = T.exp2((scores[i, j] - highest[i]) * scale)
        T.reduce_sum(scores, row_sums, dim=1)
        for i in T.Parallel(64):
            total[i] = total[i] * factor[i] + row_sums[i]

    return weigh


def attention(batch, heads, length, dim):
    """Return attention without a mask; ``length`` and ``dim`` are multiples of 64."""
    shape, weigh = (batch, length, heads, dim), _running_softmax(1.4426950408889634 / dim**0.5)

    @T.prim_func
    def attention(
        Q: T.Tensor(shape, T.float16),
        K: T.Tensor(shape, T.float16),
        V: T.Tensor(shape, T.float16),
        O: T.Tensor(shape, T.float16),
    ):
        with T.Kernel(length // 64, heads, batch, threads=128) as (block, head, item):
            query = T.alloc_shared((64, dim), T.float16)
            key = T.alloc_shared((64, dim), T.float16)
            value = T.alloc_shared((64, dim), T.float16)
            scores = T.alloc_fragment((64, 64), T.float32)
            weights = T.alloc_fragment((64, 64), T.float16)
            result = T.alloc_fragment((64, dim), T.float32)
            highest = T.alloc_fragment((64,), T.float32)
            before = T.alloc_fragment((64,), T.float32)
            factor = T.alloc_fragment((64,), T.float32)
            row_sums = T.alloc_fragment((64,), T.float32)
            total = T.alloc_fragment((64,), T.float32)
            T.copy(Q[item, block * 64 : (block + 1) * 64, head, :], query)
            T.clear(result)
            T.clear(total)
            T.fill(highest, -T.infinity(T.float32))
            for step in T.Pipelined(length // 64, num_stages=2):
                T.copy(K[item, step * 64 : (step + 1) * 64, head, :], key)
                T.clear(scores)
                T.gemm(query, key, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                weigh(scores, highest, before, factor, total, row_sums)
                T.copy(scores, weights)
                for i, j in T.Parallel(64, dim):
                    result[i, j] *= factor[i]
                T.copy(V[item, step * 64 : (step + 1) * 64, head, :], value)
                T.gemm(weights, value, result, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(64, dim):
                result[i, j] /= total[i]
            T.copy(result, O[item, block * 64 : (block + 1) * 64, head, :])

    return attention


def _row_norm():
    m = T.dynamic("m")

    @T.prim_func
    def row_norm(x: T.Tensor((m, 256), T.float32), y: T.Tensor((m, 256), T.float32), epsilon: T.float32):
        with T.Kernel(m, threads=128) as row:
            values = T.alloc_fragment((1, 256), T.float32)
            squares = T.alloc_fragment((1, 256), T.float32)
            total = T.alloc_fragment((1,), T.float32)
            T.copy(x[row : row + 1, :], values)
            for i, j in T.Parallel(1, 256):
                squares[i, j] = values[i, j] * values[i, j]
            T.reduce_sum(squares, total, dim=1)
            for i, j in T.Parallel(1, 256):
                values[i, j] = values[i, j] * T.rsqrt(total[i] / 256.0 + epsilon)
            T.copy(values, y[row : row + 1, :])

    return row_norm


def _row_extremes():
    m = T.dynamic("m")

    @T.prim_func
    def row_extremes(
        x: T.Tensor((m, 128), T.float32), high: T.Tensor((m,), T.float32), low: T.Tensor((m,), T.float32)
    ):
        with T.Kernel(m, threads=128) as row:
            values = T.alloc_fragment((1, 128), T.float32)
            most = T.alloc_fragment((1,), T.float32)
            least = T.alloc_fragment((1,), T.float32)
            T.copy(x[row : row + 1, :], values)
            T.reduce_max(values, most, dim=1)
            T.reduce_min(values, least, dim=1)
            high[row] = most[0]
            low[row] = least[0]

    return row_extremes


def _running_sum():
    m = T.dynamic("m")

    @T.prim_func
    def running_sum(x: T.Tensor((m, 128), T.float32), y: T.Tensor((m, 128), T.float32)):
        with T.Kernel(m, threads=128) as row:
            values = T.alloc_shared((1, 128), T.float32)
            T.copy(x[row : row + 1, :], values)
            T.cumsum(src=values, dim=1)
            T.copy(values, y[row : row + 1, :])

    return running_sum


def _histogram():
    n = T.dynamic("n")

    @T.prim_func
    def histogram(values: T.Tensor((n,), T.int32), counts: T.Tensor((32,), T.int32)):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                if block * 128 + i < n:
                    T.atomic_add(counts[values[block * 128 + i]], 1)

    return histogram


def _convolved(image, weights):
    batch, height, _, channels = image.shape
    kernel = weights.float().reshape(3, 3, channels, -1).permute(3, 2, 0, 1)
    result = torch.nn.functional.conv2d(image.float().permute(0, 3, 1, 2), kernel, padding=1)
    return (result.permute(0, 2, 3, 1).reshape(batch * height * height, -1).half(),)


def _attended(q, k, v):
    heads_first = (x.float().transpose(1, 2) for x in (q, k, v))
    return (torch.nn.functional.scaled_dot_product_attention(*heads_first).transpose(1, 2).half(),)


def _counted(values, counts):
    return (counts + torch.bincount(values, minlength=32).int(),)


def _histogram_inputs(draw):
    return draw.tensor((draw.size(1, 3000),), "int32") % 32, draw.empty((32,), "int32")


ENTRIES = (
    Entry(
        name="convolution",
        covers="an im2col map; a kernel whose arguments are all descriptors; a buffer called result",
        make=lambda: convolution(2, 64, 16, 64),
        inputs=lambda draw: (draw.tensor((2, 16, 16, 64), "float16"), draw.tensor((576, 64), "float16")),
        reference=_convolved,
        out_idx=(2,),
        tolerance=1e-2,
    ),
    Entry(
        name="attention",
        covers="attention: three maps of four dimensions, given in another order than they are passed",
        make=lambda: attention(2, 4, 256, 64),
        inputs=lambda draw: tuple(draw.tensor((2, 256, 4, 64), "float16") for _ in range(3)),
        reference=_attended,
        out_idx=(3,),
        tolerance=1e-2,
    ),
    Entry(
        name="row_norm",
        covers="a reduction; a scalar after the output",
        make=_row_norm,
        inputs=lambda draw: (draw.tensor((draw.size(1, 90), 256)), 0.125),
        reference=lambda x, epsilon: (x * torch.rsqrt((x * x).mean(1, keepdim=True) + epsilon),),
        out_idx=(1,),
        tolerance=1e-4,
    ),
    Entry(
        name="row_extremes",
        covers="two reductions into two outputs",
        make=_row_extremes,
        inputs=lambda draw: (draw.tensor((draw.size(1, 90), 128)),),
        reference=lambda x: (x.amax(1), x.amin(1)),
        out_idx=(1, 2),
    ),
    Entry(
        name="running_sum",
        covers="a scan in shared memory",
        make=_running_sum,
        inputs=lambda draw: (draw.tensor((draw.size(1, 90), 128)),),
        reference=lambda x: (x.cumsum(1),),
        out_idx=(1,),
        tolerance=1e-4,
    ),
    Entry(
        name="histogram",
        covers="atomic additions into an argument",
        make=_histogram,
        inputs=_histogram_inputs,
        reference=_counted,
        written=(1,),
    ),
)
