"""Elementwise kernels: the smallest programs, and names, counts and kinds of parameters."""

import tilelang.language as T
import torch
from tilelang_corpus.entry import Entry

__all__ = ["ENTRIES"]

_SHIFT = """extern "C" __global__ void shift(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.0f;
}
"""


def _vector_add():
    @T.prim_func
    def vector_add(
        a: T.Tensor((1000,), T.float32), b: T.Tensor((1000,), T.float32), c: T.Tensor((1000,), T.float32)
    ):
        with T.Kernel(T.ceildiv(1000, 128), threads=128) as block:
            for i in T.Parallel(128):
                c[block * 128 + i] = a[block * 128 + i] + b[block * 128 + i]

    return vector_add


def _vector_add_dynamic():
    n = T.dynamic("n")

    @T.prim_func
    def main(a: T.Tensor((n,), T.float32), b: T.Tensor((n,), T.float32), c: T.Tensor((n,), T.float32)):
        with T.Kernel(T.ceildiv(n, 256), threads=256) as block:
            for i in T.Parallel(256):
                c[block * 256 + i] = a[block * 256 + i] + b[block * 256 + i]

    return main


def _hostile_names():
    n = T.dynamic("n")

    @T.prim_func
    def call(
        res: T.Tensor((n,), T.float32),
        config: T.Tensor((n,), T.float32),
        stream: T.Tensor((n,), T.float32),
        kernels: T.Tensor((n,), T.float32),
        attrs: T.Tensor((n,), T.float32),
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                attrs[block * 128 + i] = (
                    res[block * 128 + i]
                    - config[block * 128 + i] * stream[block * 128 + i]
                    + kernels[block * 128 + i]
                )

    return call


def _many_parameters():
    n = T.dynamic("n")

    @T.prim_func
    def blend(
        z: T.Tensor((n,), T.float32),
        y: T.Tensor((n,), T.float32),
        x: T.Tensor((n,), T.float32),
        w: T.Tensor((n,), T.float32),
        v: T.Tensor((n,), T.float32),
        u: T.Tensor((n,), T.float32),
        t: T.Tensor((n,), T.float32),
        s: T.Tensor((n,), T.float32),
        r: T.float32,
        q: T.int32,
        p: T.float32,
        o: T.int32,
        out: T.Tensor((n,), T.float32),
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                k = block * 128 + i
                out[k] = (
                    (z[k] - y[k]) * r
                    + (x[k] - w[k]) * T.cast(q, T.float32)
                    + (v[k] - u[k]) * p
                    + (t[k] - s[k]) * T.cast(o, T.float32)
                )

    return blend


def _in_place():
    n = T.dynamic("n")

    @T.prim_func
    def double(x: T.Tensor((n,), T.float32)):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                x[block * 128 + i] = x[block * 128 + i] * 2.0

    return double


def _choose():
    n = T.dynamic("n")

    @T.prim_func
    def choose(
        mask: T.Tensor((n,), T.bool),
        a: T.Tensor((n,), T.float16),
        b: T.Tensor((n,), T.float16),
        c: T.Tensor((n,), T.float16),
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                c[block * 128 + i] = T.if_then_else(
                    mask[block * 128 + i], a[block * 128 + i], b[block * 128 + i]
                )

    return choose


def _unused_bias():
    n = T.dynamic("n")

    @T.prim_func
    def unused_bias(
        bias: T.Tensor((n,), T.float32), x: T.Tensor((n,), T.float32), y: T.Tensor((n,), T.float32)
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i] + 1.0

    return unused_bias


def _raw_source():
    n = T.dynamic("n")

    @T.prim_func
    def raw_source(x: T.Tensor((n,), T.float32), y: T.Tensor((n,), T.float32)):
        T.CUDASourceCodeKernel(T.ceildiv(n, 128), threads=128, source_code_or_path=_SHIFT, entry_name="shift")

    return raw_source


def _blended(*given):
    z, y, x, w, v, u, t, s, r, q, p, o = given
    return ((z - y) * r + (x - w) * q + (v - u) * p + (t - s) * o,)


def _vectors(draw, count, dtype="float32"):
    n = draw.size(1, 2000)
    return tuple(draw.tensor((n,), dtype) for _ in range(count))


def _blend_inputs(draw):
    numbers = draw.number(-4, 4), draw.size(-9, 9), draw.number(-4, 4), draw.size(-9, 9)
    return (*_vectors(draw, 8), *numbers)


def _choose_inputs(draw):
    n = draw.size(1, 2000)
    return draw.tensor((n,), "bool"), draw.tensor((n,), "float16"), draw.tensor((n,), "float16")


def _unused_inputs(draw):
    bias, x = _vectors(draw, 2)
    return draw.either(bias), x


ENTRIES = (
    Entry(
        name="vector_add",
        covers="a static length",
        make=_vector_add,
        inputs=lambda draw: (draw.tensor((1000,)), draw.tensor((1000,))),
        reference=lambda a, b: (a + b,),
        out_idx=(2,),
    ),
    Entry(
        name="vector_add_dynamic",
        covers="a dynamic length; a PrimFunc called main",
        make=_vector_add_dynamic,
        inputs=lambda draw: _vectors(draw, 2),
        reference=lambda a, b: (a + b,),
        out_idx=(2,),
    ),
    Entry(
        name="hostile_names",
        covers="buffers called res, config, stream, kernels and attrs, in a PrimFunc called call",
        make=_hostile_names,
        inputs=lambda draw: _vectors(draw, 4),
        reference=lambda a, b, c, d: (a - b * c + d,),
        out_idx=(4,),
    ),
    Entry(
        name="many_parameters",
        covers="thirteen parameters, in another order than the device function's",
        make=_many_parameters,
        inputs=_blend_inputs,
        reference=_blended,
        out_idx=(12,),
        tolerance=1e-5,
    ),
    Entry(
        name="in_place",
        covers="no output: the result is in an argument",
        make=_in_place,
        inputs=lambda draw: _vectors(draw, 1),
        reference=lambda x: (x * 2,),
        written=(0,),
    ),
    Entry(
        name="choose",
        covers="tensors of bool",
        make=_choose,
        inputs=_choose_inputs,
        reference=lambda mask, a, b: (torch.where(mask, a, b),),
        out_idx=(3,),
    ),
    Entry(
        name="unused_bias",
        covers="a nullable buffer, before the one that gives the length",
        make=_unused_bias,
        inputs=_unused_inputs,
        reference=lambda bias, x: (x + 1,),
        out_idx=(2,),
    ),
    Entry(
        name="raw_source",
        covers="a kernel given as CUDA source, under a name of its own",
        make=_raw_source,
        inputs=lambda draw: _vectors(draw, 1),
        reference=lambda x: (x + 1,),
        out_idx=(1,),
    ),
)
