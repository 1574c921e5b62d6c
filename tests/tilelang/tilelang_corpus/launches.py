"""Programs of several launches, and launches that need more than a grid and a block."""

import tilelang.language as T
import torch
from tilelang_corpus.entry import Entry

__all__ = ["ENTRIES"]


def _scale_then_sum():
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def scale_then_sum(
        x: T.Tensor((m, n), T.float32), scaled: T.Tensor((m, n), T.float32), sums: T.Tensor((m,), T.float32)
    ):
        with T.Kernel(T.ceildiv(n, 128), m, threads=128) as (block, row):
            for i in T.Parallel(128):
                scaled[row, block * 128 + i] = x[row, block * 128 + i] * 2.0
        with T.Kernel(T.ceildiv(m, 64), threads=64) as block:
            total = T.alloc_fragment((64,), T.float32)
            T.clear(total)
            for column in T.serial(n):
                for i in T.Parallel(64):
                    if block * 64 + i < m:
                        total[i] += scaled[block * 64 + i, column]
            for i in T.Parallel(64):
                if block * 64 + i < m:
                    sums[block * 64 + i] = total[i]

    return scale_then_sum


def _repeated():
    n = T.dynamic("n")

    @T.prim_func
    def repeated(x: T.Tensor((n,), T.float32)):
        for step in range(3):
            with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
                for i in T.Parallel(128):
                    x[block * 128 + i] = x[block * 128 + i] * 2.0 + T.cast(step, T.float32)

    return repeated


def _repeated_as_told():
    n = T.dynamic("n")

    @T.prim_func
    def repeated_as_told(x: T.Tensor((n,), T.float32), steps: T.int32):
        for step in T.serial(steps):
            with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
                for i in T.Parallel(128):
                    x[block * 128 + i] = x[block * 128 + i] * 2.0 + T.cast(step, T.float32)

    return repeated_as_told


def _alike():
    n = T.dynamic("n")

    @T.prim_func
    def alike(x: T.Tensor((n,), T.float32), y: T.Tensor((n,), T.float32)):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = y[block * 128 + i] + x[block * 128 + i]
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = y[block * 128 + i] + x[block * 128 + i]

    return alike


def _either_way():
    n = T.dynamic("n")

    @T.prim_func
    def either_way(x: T.Tensor((n,), T.float32), way: T.int32):
        if way > 0:
            with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
                for i in T.Parallel(128):
                    x[block * 128 + i] = x[block * 128 + i] * 2.0
        else:
            with T.Kernel(T.ceildiv(n, 64), threads=64) as block:
                for i in T.Parallel(64):
                    x[block * 64 + i] = x[block * 64 + i] + 1.0

    return either_way


def _only_large():
    n = T.dynamic("n")

    @T.prim_func
    def only_large(x: T.Tensor((n,), T.float32), y: T.Tensor((n,), T.float32)):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i] + 1.0
        if n > 500:
            with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
                for i in T.Parallel(128):
                    y[block * 128 + i] = y[block * 128 + i] * 2.0

    return only_large


def _clusters():
    n = T.dynamic("n")

    @T.prim_func
    def clusters(x: T.Tensor((n, 128), T.float32), y: T.Tensor((n, 128), T.float32)):
        with T.Kernel(T.ceildiv(n, 4) * 4, threads=128, cluster_dims=4) as row:
            T.cluster_sync()
            if row < n:
                for i in T.Parallel(128):
                    y[row, i] = x[row, i] + T.cast(T.block_rank_in_cluster(), T.float32)

    return clusters


def _grid_sync():
    @T.prim_func
    def grid_sync(
        x: T.Tensor((512,), T.float32), middle: T.Tensor((512,), T.float32), y: T.Tensor((512,), T.float32)
    ):
        with T.Kernel(4, threads=128) as block:
            for i in T.Parallel(128):
                middle[block * 128 + i] = x[block * 128 + i] * 2.0
            T.sync_grid()
            for i in T.Parallel(128):
                y[block * 128 + i] = middle[511 - block * 128 - i]

    return grid_sync


def _pdl_pair():
    n = T.dynamic("n")

    @T.prim_func
    def pdl_pair(
        x: T.Tensor((n,), T.float32), middle: T.Tensor((n,), T.float32), y: T.Tensor((n,), T.float32)
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                middle[block * 128 + i] = x[block * 128 + i] * 2.0
            T.pdl_trigger()
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            T.pdl_sync()
            for i in T.Parallel(128):
                y[block * 128 + i] = middle[block * 128 + i] + 1.0

    return pdl_pair


def _kept_in_l2():
    n = T.dynamic("n")

    @T.prim_func
    def kept_in_l2(x: T.Tensor((n,), T.float32), y: T.Tensor((n,), T.float32)):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            T.annotate_l2_hit_ratio({x: 0.5})
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i] + 1.0

    return kept_in_l2


def _two_windows():
    @T.prim_func
    def two_windows(
        x: T.Tensor((512,), T.float32), z: T.Tensor((512,), T.float32), y: T.Tensor((512,), T.float32)
    ):
        with T.Kernel(4, threads=128) as block:
            T.annotate_l2_hit_ratio({x: 0.5, z: 0.25})
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i] + z[block * 128 + i]

    return two_windows


def _workspaces():
    n = T.dynamic("n")

    @T.prim_func
    def workspaces(x: T.Tensor((n,), T.float32), y: T.Tensor((n,), T.float32)):
        first = T.alloc_global((n,), T.float32)
        second = T.alloc_global((n + 1,), T.int32)
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                if block * 128 + i < n:
                    first[block * 128 + i] = x[block * 128 + i] * 2.0
                    second[block * 128 + i + 1] = 3
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                if block * 128 + i < n:
                    y[block * 128 + i] = first[block * 128 + i] + T.cast(
                        second[block * 128 + i + 1], T.float32
                    )

    return workspaces


def _vector(draw):
    return (draw.tensor((draw.size(1, 1000),)),)


def _with_number(low, high):
    return lambda draw: (*_vector(draw), draw.size(low, high))


def _accumulated(draw):
    (x,) = _vector(draw)
    return x, draw.tensor(x.shape)


def _stepped(x, steps=3):
    for step in range(steps):
        x = x * 2 + step
    return (x,)


def _ranked(x):
    return (x + torch.arange(x.shape[0], device=x.device)[:, None] % 4,)


ENTRIES = (
    Entry(
        name="scale_then_sum",
        covers="two kernels, the second reading what the first wrote; two outputs",
        make=_scale_then_sum,
        inputs=lambda draw: (draw.tensor((draw.size(1, 90), draw.size(1, 300))),),
        reference=lambda x: (x * 2, (x * 2).sum(1)),
        out_idx=(1, 2),
        tolerance=1e-4,
    ),
    Entry(
        name="repeated",
        covers="one kernel launched three times, each with another argument",
        make=_repeated,
        inputs=_vector,
        reference=_stepped,
        written=(0,),
        tolerance=1e-5,
    ),
    Entry(
        name="repeated_as_told",
        covers="a loop around a launch whose count only the call knows",
        make=_repeated_as_told,
        inputs=_with_number(0, 4),
        reference=_stepped,
        written=(0,),
        tolerance=1e-5,
        refused="the number of launches is not known when the program is made",
    ),
    Entry(
        name="alike",
        covers="two kernels that do the same",
        make=_alike,
        inputs=_accumulated,
        reference=lambda x, y: (y + x + x,),
        written=(1,),
        tolerance=1e-5,
    ),
    Entry(
        name="either_way",
        covers="a condition on a scalar around launches, with an else",
        make=_either_way,
        inputs=_with_number(0, 1),
        reference=lambda x, way: (x * 2 if way > 0 else x + 1,),
        written=(0,),
    ),
    Entry(
        name="only_large",
        covers="a condition on a size around a launch",
        make=_only_large,
        inputs=_vector,
        reference=lambda x: ((x + 1) * (2 if x.shape[0] > 500 else 1),),
        out_idx=(1,),
    ),
    Entry(
        name="clusters",
        covers="clusters of four blocks",
        make=_clusters,
        inputs=lambda draw: (draw.tensor((draw.size(1, 50), 128)),),
        reference=_ranked,
        out_idx=(1,),
    ),
    Entry(
        name="grid_sync",
        covers="a cooperative launch",
        make=_grid_sync,
        inputs=lambda draw: (draw.tensor((512,)), draw.empty((512,))),
        reference=lambda x, middle: ((x * 2).flip(0), x * 2),
        out_idx=(2,),
        written=(1,),
    ),
    Entry(
        name="pdl_pair",
        covers="a programmatic dependent launch",
        make=_pdl_pair,
        inputs=_vector,
        reference=lambda x: (x * 2, x * 2 + 1),
        out_idx=(1, 2),
    ),
    Entry(
        name="kept_in_l2",
        covers="an access-policy window",
        make=_kept_in_l2,
        inputs=_vector,
        reference=lambda x: (x + 1,),
        out_idx=(1,),
    ),
    Entry(
        name="two_windows",
        covers="two access-policy windows on one launch",
        make=_two_windows,
        inputs=lambda draw: (draw.tensor((512,)), draw.tensor((512,))),
        reference=lambda x, z: (x + z,),
        out_idx=(2,),
        refused="a launch has one window, and a stream has one: TileLang's second replaces its first",
    ),
    Entry(
        name="workspaces",
        covers="two workspaces, one of compound extent",
        make=_workspaces,
        inputs=_vector,
        reference=lambda x: (x * 2 + 3,),
        out_idx=(1,),
    ),
)
