"""Which parameters are outputs, and where they stand."""

import tilelang.language as T
from tilelang_corpus.entry import Entry

__all__ = ["ENTRIES"]


def _output_first():
    n = T.dynamic("n")

    @T.prim_func
    def output_first(y: T.Tensor((n,), T.float32), x: T.Tensor((n,), T.float32), a: T.float32):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i] * a

    return output_first


def _output_middle():
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def output_middle(
        row: T.Tensor((n,), T.float32), y: T.Tensor((m, n), T.float32), column: T.Tensor((m,), T.float32)
    ):
        with T.Kernel(T.ceildiv(n, 64), m, threads=64) as (block, i):
            for j in T.Parallel(64):
                y[i, block * 64 + j] = column[i] * row[block * 64 + j]

    return output_middle


def _outputs_apart():
    n = T.dynamic("n")

    @T.prim_func
    def outputs_apart(
        high: T.Tensor((n,), T.float32),
        x: T.Tensor((n,), T.float32),
        low: T.Tensor((n,), T.int32),
        a: T.float32,
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                high[block * 128 + i] = x[block * 128 + i] + a
                low[block * 128 + i] = T.cast(T.floor(x[block * 128 + i]), T.int32)

    return outputs_apart


def _declared_outputs():
    n = T.dynamic("n")

    @T.prim_func
    def declared_outputs(x: T.Tensor((n,), T.float32), y: T.Tensor((n,), T.float32)):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i] * x[block * 128 + i]

    return declared_outputs.with_attr("tilelang_out_idx", [-1])


def _vector(draw):
    return (draw.tensor((draw.size(1, 1000),)),)


ENTRIES = (
    Entry(
        name="output_first",
        covers="an output listed before the input that gives its size",
        make=_output_first,
        inputs=lambda draw: (*_vector(draw), draw.number(-4, 4)),
        reference=lambda x, a: (x * a,),
        out_idx=(0,),
    ),
    Entry(
        name="output_middle",
        covers="an output in the middle, sized by one input before it and one after",
        make=_output_middle,
        inputs=lambda draw: (*_vector(draw), draw.tensor((draw.size(1, 50),))),
        reference=lambda row, column: (column[:, None] * row,),
        out_idx=(1,),
    ),
    Entry(
        name="outputs_apart",
        covers="two outputs that are not neighbours, counted from the end, of two types",
        make=_outputs_apart,
        inputs=lambda draw: (*_vector(draw), draw.number(-4, 4)),
        reference=lambda x, a: (x + a, x.floor().int()),
        out_idx=(-4, -2),
    ),
    Entry(
        name="declared_outputs",
        covers="output indices that the PrimFunc itself declares",
        make=_declared_outputs,
        inputs=_vector,
        reference=lambda x: (x * x,),
        out_idx=(-1,),
    ),
)
