"""Matrix products: tensor maps of every kind that TileLang makes of its copies."""

import tilelang.language as T
import torch
from tilelang_corpus.entry import Entry

__all__ = ["ENTRIES"]


def _gemm(m, n, k, block):
    rows, columns, depth = block

    @T.prim_func
    def gemm(A: T.Tensor((m, k), T.float16), B: T.Tensor((k, n), T.float16), C: T.Tensor((m, n), T.float32)):
        with T.Kernel(T.ceildiv(n, columns), T.ceildiv(m, rows), threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), T.float16)
            b = T.alloc_shared((depth, columns), T.float16)
            total = T.alloc_fragment((rows, columns), T.float32)
            T.clear(total)
            for step in T.Pipelined(T.ceildiv(k, depth), num_stages=2):
                T.copy(A[by * rows, step * depth], a)
                T.copy(B[step * depth, bx * columns], b)
                T.gemm(a, b, total)
            T.copy(total, C[by * rows, bx * columns])

    return gemm


def _gemm_transposed(n, k, dtype):
    m = T.dynamic("m")

    @T.prim_func
    def gemm_transposed(
        A: T.Tensor((m, k), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((m, n), T.bfloat16)
    ):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), threads=128) as (bx, by):
            a = T.alloc_shared((64, 64), dtype)
            b = T.alloc_shared((64, 64), dtype)
            total = T.alloc_fragment((64, 64), T.float32)
            T.use_swizzle(panel_size=4)
            T.clear(total)
            for step in T.Pipelined(T.ceildiv(k, 64), num_stages=3):
                T.copy(A[by * 64, step * 64], a)
                T.copy(B[bx * 64, step * 64], b)
                T.gemm(a, b, total, transpose_B=True)
            T.copy(total, C[by * 64, bx * 64])

    return gemm_transposed


def _two_boxes():
    @T.prim_func
    def two_boxes(
        A: T.Tensor((128, 128), T.float16),
        B: T.Tensor((128, 128), T.float16),
        C: T.Tensor((128, 128), T.float32),
        D: T.Tensor((128, 128), T.float32),
    ):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            a = T.alloc_shared((64, 64), T.float16)
            b = T.alloc_shared((64, 64), T.float16)
            total = T.alloc_fragment((64, 64), T.float32)
            T.clear(total)
            for step in T.Pipelined(2, num_stages=2):
                T.copy(A[by * 64, step * 64], a)
                T.copy(B[step * 64, bx * 64], b)
                T.gemm(a, b, total)
            T.copy(total, C[by * 64, bx * 64])
        with T.Kernel(4, 2, threads=128) as (bx, by):
            a = T.alloc_shared((64, 64), T.float16)
            b = T.alloc_shared((64, 32), T.float16)
            total = T.alloc_fragment((64, 32), T.float32)
            T.clear(total)
            for step in T.Pipelined(2, num_stages=2):
                T.copy(A[by * 64, step * 64], a)
                T.copy(B[step * 64, bx * 32], b)
                T.gemm(a, b, total)
            T.copy(total, D[by * 64, bx * 32])

    return two_boxes


def _two_maps():
    m = T.dynamic("m")

    @T.prim_func
    def two_maps(x: T.Tensor((m, 64), T.float16), y: T.Tensor((m, 64), T.float16)):
        with T.Kernel(T.ceildiv(m, 64), threads=128) as block:
            large = T.alloc_shared((64, 64), T.float16)
            small = T.alloc_shared((32, 64), T.float16)
            T.copy(x[block * 64, 0], large, prefer_instruction="tma")
            T.copy(x[block * 32, 0], small, prefer_instruction="tma")
            for i, j in T.Parallel(64, 64):
                if block * 64 + i < m:
                    y[block * 64 + i, j] = large[i, j] + small[i % 32, j]

    return two_maps


def _split_k():
    m = T.dynamic("m")

    @T.prim_func
    def split_k(
        A: T.Tensor((m, 512), T.float16), B: T.Tensor((512, 64), T.float16), C: T.Tensor((m, 64), T.float32)
    ):
        partial = T.alloc_global((4, m, 64), T.float32)
        with T.Kernel(4, T.ceildiv(m, 64), threads=128) as (part, by):
            a = T.alloc_shared((64, 64), T.float16)
            b = T.alloc_shared((64, 64), T.float16)
            total = T.alloc_fragment((64, 64), T.float32)
            T.clear(total)
            for step in T.Pipelined(2, num_stages=2):
                T.copy(A[by * 64, part * 128 + step * 64], a)
                T.copy(B[part * 128 + step * 64, 0], b)
                T.gemm(a, b, total)
            for i, j in T.Parallel(64, 64):
                if by * 64 + i < m:
                    partial[part, by * 64 + i, j] = total[i, j]
        with T.Kernel(m, threads=64) as row:
            for j in T.Parallel(64):
                C[row, j] = partial[0, row, j] + partial[1, row, j] + partial[2, row, j] + partial[3, row, j]

    return split_k


def _batched():
    b, m = T.dynamic("b"), T.dynamic("m")

    @T.prim_func
    def batched(
        A: T.Tensor((b, m, 128), T.float16),
        B: T.Tensor((b, 128, 64), T.float16),
        C: T.Tensor((b, m, 64), T.float16),
    ):
        with T.Kernel(T.ceildiv(m, 64), b, threads=128) as (by, batch):
            a = T.alloc_shared((64, 64), T.float16)
            w = T.alloc_shared((64, 64), T.float16)
            total = T.alloc_fragment((64, 64), T.float32)
            T.clear(total)
            for step in T.Pipelined(2, num_stages=2):
                T.copy(A[batch, by * 64, step * 64], a)
                T.copy(B[batch, step * 64, 0], w)
                T.gemm(a, w, total)
            T.copy(total, C[batch, by * 64, 0])

    return batched


def _mapped_copy():
    m = T.dynamic("m")

    @T.prim_func
    def mapped_copy(x: T.Tensor((m, 128), T.bfloat16), y: T.Tensor((m, 128), T.bfloat16)):
        with T.Kernel(2, T.ceildiv(m, 64), threads=128) as (bx, by):
            tile = T.alloc_shared((64, 64), T.bfloat16)
            T.copy(x[by * 64, bx * 64], tile, prefer_instruction="tma")
            T.copy(tile, y[by * 64, bx * 64], prefer_instruction="tma")

    return mapped_copy


def _strided_map():
    m, s = T.dynamic("m"), T.dynamic("s")

    @T.prim_func
    def strided_map(x: T.StridedTensor((m, 128), (s, 1), T.float16), y: T.Tensor((m, 64), T.float16)):
        with T.Kernel(T.ceildiv(m, 64), threads=128) as block:
            tile = T.alloc_shared((64, 64), T.float16)
            T.copy(x[block * 64, 64], tile, prefer_instruction="tma")
            T.copy(tile, y[block * 64, 0])

    return strided_map


def _five_dimensions():
    a, m = T.dynamic("a"), T.dynamic("m")

    @T.prim_func
    def five_dimensions(x: T.Tensor((2, a, 3, m, 64), T.float16), y: T.Tensor((2, a, 3, m, 64), T.float16)):
        with T.Kernel(T.ceildiv(m, 64), a * 3, 2, threads=128) as (block, middle, first):
            tile = T.alloc_shared((64, 64), T.float16)
            rows = block * 64
            T.copy(x[first, middle // 3, middle % 3, rows : rows + 64, 0:64], tile, prefer_instruction="tma")
            T.copy(tile, y[first, middle // 3, middle % 3, rows : rows + 64, 0:64])

    return five_dimensions


def _map_names():
    m = T.dynamic("A")

    @T.prim_func
    def entry(
        x_desc: T.Tensor((m, 64), T.float16),
        x: T.Tensor((m, 64), T.float16),
        x_desc_1: T.Tensor((m, 64), T.float16),
    ):
        with T.Kernel(T.ceildiv(m, 64), threads=128) as block:
            one = T.alloc_shared((64, 64), T.float16)
            other = T.alloc_shared((64, 64), T.float16)
            T.copy(x[block * 64, 0], one, prefer_instruction="tma")
            T.copy(x_desc[block * 64, 0], other, prefer_instruction="tma")
            for i, j in T.Parallel(64, 64):
                if block * 64 + i < m:
                    x_desc_1[block * 64 + i, j] = one[i, j] - other[i, j]

    return entry


def _product(a, b):
    return (a.float() @ b.float(),)


def _product_transposed(a, b):
    return ((a.float() @ b.float().T).bfloat16(),)


def _gemm_inputs(m, n, k):
    return lambda draw: (draw.tensor((m, k), "float16"), draw.tensor((k, n), "float16"))


def _rows_inputs(columns, depth):
    def inputs(draw):
        return draw.tensor((draw.size(1, 300), depth), "float16"), draw.tensor((depth, columns), "float16")

    return inputs


def _transposed_inputs(draw):
    m, n, k = draw.size(1, 200), draw.size(8, 200, 8), draw.size(8, 200, 8)
    return draw.tensor((m, k), "bfloat16"), draw.tensor((n, k), "bfloat16")


def _float8_inputs(draw):
    drawn = draw.tensor((draw.size(1, 300), 256)), draw.tensor((128, 256))
    return tuple(x.to(torch.float8_e4m3fn) for x in drawn)


def _batched_inputs(draw):
    b, m = draw.size(1, 5), draw.size(1, 150)
    return draw.tensor((b, m, 128), "float16"), draw.tensor((b, 128, 64), "float16")


def _two_alike(draw):
    rows = draw.size(1, 300)
    return tuple(draw.tensor((rows, 64), "float16") for _ in range(2))


def _strided_inputs(draw):
    rows, more = draw.size(1, 300), draw.size(0, 40, 8)
    return (draw.tensor((rows, 128 + more), "float16")[:, :128],)


def _twice_added(x):
    rows = torch.arange(x.shape[0], device=x.device)
    return (x + x[rows // 64 * 32 + rows % 32],)


ENTRIES = (
    Entry(
        name="gemm",
        covers="two tensor maps, static",
        make=lambda: _gemm(256, 192, 128, (64, 64, 64)),
        inputs=_gemm_inputs(256, 192, 128),
        reference=_product,
        out_idx=(2,),
        tolerance=1e-4,
    ),
    Entry(
        name="gemm_without_maps",
        covers="pass configs: the same product with no tensor map",
        make=lambda: _gemm(256, 192, 128, (64, 64, 64)),
        inputs=_gemm_inputs(256, 192, 128),
        reference=_product,
        out_idx=(2,),
        tolerance=1e-4,
        pass_configs={"tl.disable_tma_lower": True, "tl.disable_warp_specialized": True},
    ),
    Entry(
        name="gemm_rows",
        covers="two tensor maps, a dynamic m",
        make=lambda: _gemm(T.dynamic("m"), 192, 128, (128, 64, 64)),
        inputs=_rows_inputs(192, 128),
        reference=_product,
        out_idx=(2,),
        tolerance=1e-4,
    ),
    Entry(
        name="gemm_float8",
        covers="tensor maps of float8",
        make=lambda: _gemm_transposed(128, 256, T.float8_e4m3fn),
        inputs=_float8_inputs,
        reference=_product_transposed,
        out_idx=(2,),
        tolerance=1e-2,
    ),
    Entry(
        name="gemm_transposed",
        covers="every size dynamic, so that the maps' strides are; bfloat16; a swizzled grid",
        make=lambda: _gemm_transposed(T.dynamic("n"), T.dynamic("k"), T.bfloat16),
        inputs=_transposed_inputs,
        reference=_product_transposed,
        out_idx=(2,),
        tolerance=1e-2,
    ),
    Entry(
        name="two_boxes",
        covers="two kernels whose descriptors have one name, and different boxes",
        make=_two_boxes,
        inputs=_gemm_inputs(128, 128, 128),
        reference=lambda a, b: _product(a, b) * 2,
        out_idx=(2, 3),
        tolerance=1e-4,
    ),
    Entry(
        name="two_maps",
        covers="two descriptors on one buffer in one kernel",
        make=_two_maps,
        inputs=lambda draw: (draw.tensor((draw.size(1, 300), 64), "float16"),),
        reference=_twice_added,
        out_idx=(1,),
    ),
    Entry(
        name="split_k",
        covers="a workspace between two kernels",
        make=_split_k,
        inputs=_rows_inputs(64, 512),
        reference=_product,
        out_idx=(2,),
        tolerance=1e-4,
    ),
    Entry(
        name="batched",
        covers="tensor maps of three dimensions, two of them dynamic",
        make=_batched,
        inputs=_batched_inputs,
        reference=lambda a, b: ((a.float() @ b.float()).half(),),
        out_idx=(2,),
        tolerance=1e-2,
    ),
    Entry(
        name="strided_map",
        covers="a tensor map with a dynamic stride, over half of the columns",
        make=_strided_map,
        inputs=_strided_inputs,
        reference=lambda x: (x[:, 64:].clone(),),
        out_idx=(1,),
    ),
    Entry(
        name="five_dimensions",
        covers="a tensor map of five dimensions",
        make=_five_dimensions,
        inputs=lambda draw: (draw.tensor((2, draw.size(1, 4), 3, draw.size(1, 90), 64), "float16"),),
        reference=lambda x: (x.clone(),),
        out_idx=(1,),
    ),
    Entry(
        name="map_names",
        covers="buffers called as the descriptors of another buffer are; a PrimFunc called entry",
        make=_map_names,
        inputs=_two_alike,
        reference=lambda x_desc, x: (x - x_desc,),
        out_idx=(2,),
    ),
    Entry(
        name="mapped_copy",
        covers="a kernel whose arguments are all descriptors; a map that is stored through",
        make=_mapped_copy,
        inputs=lambda draw: (draw.tensor((draw.size(1, 300), 128), "bfloat16"),),
        reference=lambda x: (x.clone(),),
        out_idx=(1,),
    ),
)
