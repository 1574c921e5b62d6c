"""Types of eight bits and of four, two of which share a byte."""

import tilelang.language as T
import torch
from tilelang_corpus.entry import Entry

__all__ = ["ENTRIES"]


def _float8_cast():
    n = T.dynamic("n")

    @T.prim_func
    def float8_cast(
        x: T.Tensor((n,), T.float8_e4m3fn), y: T.Tensor((n,), T.float16), z: T.Tensor((n,), T.float8_e5m2)
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = T.cast(x[block * 128 + i], T.float16)
            for i in T.Parallel(128):
                z[block * 128 + i] = T.cast(T.cast(x[block * 128 + i], T.float32) * 2.0, T.float8_e5m2)

    return float8_cast


def _copy_of(dtype):
    m = T.dynamic("m")

    @T.prim_func
    def packed_copy(x: T.Tensor((m, 128), dtype), y: T.Tensor((m, 128), dtype)):
        with T.Kernel(m, threads=32) as row:
            tile = T.alloc_shared((1, 128), dtype)
            T.copy(x[row : row + 1, :], tile)
            T.copy(tile, y[row : row + 1, :])

    return packed_copy


ENTRIES = (
    Entry(
        name="float8_cast",
        covers="tensors of both float8 types",
        make=_float8_cast,
        inputs=lambda draw: (draw.tensor((draw.size(1, 1000),)).to(torch.float8_e4m3fn),),
        reference=lambda x: (x.half(), (x.float() * 2).to(torch.float8_e5m2)),
        out_idx=(1, 2),
    ),
    Entry(
        name="float4_copy",
        covers="a float4 type, two elements in a byte",
        make=lambda: _copy_of(T.float4_e2m1fn),
        inputs=lambda draw: (draw.packed((draw.size(1, 90), 64), "float4_e2m1fn_x2"),),
        reference=lambda x: (x.clone(),),
        out_idx=(1,),
    ),
    Entry(
        name="int4_copy",
        covers="int4, two elements in a byte of int8",
        make=lambda: _copy_of(T.int4),
        inputs=lambda draw: (draw.packed((draw.size(1, 90), 64), "int8"),),
        reference=lambda x: (x.clone(),),
        out_idx=(1,),
    ),
)
