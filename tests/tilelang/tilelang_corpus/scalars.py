"""Scalars of every type that TileLang can lower, and addresses."""

import tilelang.language as T
import torch
from tilelang_corpus.entry import Entry

__all__ = ["ENTRIES"]


def _integer_scalars():
    @T.prim_func
    def integer_scalars(
        a: T.int8,
        b: T.int16,
        c: T.int32,
        d: T.int64,
        e: T.uint8,
        f: T.uint16,
        g: T.uint32,
        h: T.uint64,
        out: T.Tensor((8, 32), T.int64),
    ):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(32):
                out[0, i] = T.cast(a, T.int64)
                out[1, i] = T.cast(b, T.int64)
                out[2, i] = T.cast(c, T.int64)
                out[3, i] = d
                out[4, i] = T.cast(e, T.int64)
                out[5, i] = T.cast(f, T.int64)
                out[6, i] = T.cast(g, T.int64)
                out[7, i] = T.cast(h, T.int64)

    return integer_scalars


def _float_scalars():
    @T.prim_func
    def float_scalars(a: T.float16, b: T.float32, c: T.float64, out: T.Tensor((3, 32), T.float64)):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(32):
                out[0, i] = T.cast(a, T.float64)
                out[1, i] = T.cast(b, T.float64)
                out[2, i] = c

    return float_scalars


def _bool_scalars():
    @T.prim_func
    def bool_scalars(
        negate: T.bool, halve: T.bool, x: T.Tensor((256,), T.float32), y: T.Tensor((256,), T.float32)
    ):
        with T.Kernel(2, threads=128) as block:
            for i in T.Parallel(128):
                k = block * 128 + i
                y[k] = T.if_then_else(negate, -x[k], x[k]) * T.if_then_else(
                    halve, T.float32(0.5), T.float32(1)
                )

    return bool_scalars


def _addresses():
    @T.prim_func
    def addresses(source: T.int64, target: T.int64, n: T.int32):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            x = T.make_tensor_from_addr(source, (n,), T.float32)
            y = T.make_tensor_from_addr(target, (n,), T.float32)
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i] + 1.0

    return addresses


def _pointers():
    @T.prim_func
    def pointers(source: T.ptr, target: T.ptr, n: T.int32):
        x = T.make_tensor(source, (n,), T.float32)
        y = T.make_tensor(target, (n,), T.float32)
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i] + 1.0

    return pointers


def _rows(*given):
    numbers, out = given[:-1], given[-1]
    return (torch.stack([torch.full_like(out[0], number) for number in numbers]),)


def _integers(draw):
    signed = [draw.size(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32)]
    unsigned = [draw.size(0, 2**bits - 1) for bits in (8, 16, 32)]
    wide = draw.size(-(2**40), 2**40), draw.size(0, 2**62)
    return (*signed, wide[0], *unsigned, wide[1], draw.empty((8, 32), "int64"))


def _floats(draw):
    return (*(draw.number(-100, 100) for _ in range(3)), draw.empty((3, 32), "float64"))


def _pointed(draw):
    n = draw.size(1, 2000)
    return draw.tensor((n,)), draw.empty((n,)), n


ENTRIES = (
    Entry(
        name="integer_scalars",
        covers="scalars of each integer type",
        make=_integer_scalars,
        inputs=_integers,
        reference=_rows,
        written=(8,),
    ),
    Entry(
        name="float_scalars",
        covers="scalars float16, float32 and float64",
        make=_float_scalars,
        inputs=_floats,
        reference=_rows,
        written=(3,),
    ),
    Entry(
        name="bool_scalars",
        covers="scalars of bool",
        make=_bool_scalars,
        inputs=lambda draw: (bool(draw.size(0, 1)), bool(draw.size(0, 1)), draw.tensor((256,))),
        reference=lambda negate, halve, x: ((-x if negate else x) * (0.5 if halve else 1.0),),
        out_idx=(3,),
    ),
    Entry(
        name="addresses",
        covers="memory given by its address, as int64",
        make=_addresses,
        inputs=_pointed,
        reference=lambda source, target, n: (source + 1,),
        written=(1,),
        pointers=(0, 1),
    ),
    Entry(
        name="pointers",
        covers="buffers made of pointer parameters, which take tensors",
        make=_pointers,
        inputs=_pointed,
        reference=lambda source, target, n: (source + 1,),
        written=(1,),
    ),
)
