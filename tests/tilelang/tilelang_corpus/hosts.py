"""What the host function does around launches: loops, conditions, and expressions of every kind."""

import tilelang.language as T
from tilelang_corpus.entry import Entry

__all__ = ["ENTRIES"]


def _nested():
    n = T.dynamic("n")

    @T.prim_func
    def nested(x: T.Tensor((n,), T.float32)):
        for i in range(3):
            if n > i * 300:
                for j in range(2):
                    with T.Kernel(T.ceildiv(n - i * 100, 128), threads=128) as block:
                        for k in T.Parallel(128):
                            if block * 128 + k < n - i * 100:
                                x[block * 128 + k] = x[block * 128 + k] * 2.0 + T.cast(i + j, T.float32)

    return nested


def _bounded():
    n = T.dynamic("n")

    @T.prim_func
    def bounded(x: T.Tensor((n,), T.float32), steps: T.int32):
        for step in T.serial(T.min(steps, 4)):
            with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
                for i in T.Parallel(128):
                    x[block * 128 + i] = x[block * 128 + i] * 2.0 + T.cast(step, T.float32)

    return bounded


def _chosen_grid():
    n = T.dynamic("n")

    @T.prim_func
    def chosen_grid(x: T.Tensor((n,), T.float32), way: T.int32):
        with T.Kernel(
            T.if_then_else(way > 4, T.ceildiv(n, 128), T.ceildiv(n, 256)),
            T.if_then_else((way > 2) and (n > 100), 2, 1),
            threads=128,
        ) as (block, other):
            for i in T.Parallel(128):
                if other == 0:
                    x[block * 128 + i] = x[block * 128 + i] * 2.0

    return chosen_grid


def _bit_grid():
    n = T.dynamic("n")

    @T.prim_func
    def bit_grid(x: T.Tensor((n,), T.float32)):
        with T.Kernel((n + 127) >> 7, 1 + (n & 3), threads=128) as (block, other):
            for i in T.Parallel(128):
                if other == 0:
                    x[block * 128 + i] = x[block * 128 + i] * 2.0

    return bit_grid


def _internal_names():
    n = T.dynamic("n")

    @T.prim_func
    def internal_names(
        args: T.Tensor((n,), T.float32),
        result: T.Tensor((n,), T.float32),
        self_handle: T.Tensor((n,), T.float32),
        num_args: T.Tensor((n,), T.float32),
        dev_id: T.int32,
        out: T.Tensor((n,), T.float32),
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                k = block * 128 + i
                out[k] = args[k] + result[k] * self_handle[k] + num_args[k] * T.cast(dev_id, T.float32)

    return internal_names


def _window_once():
    n = T.dynamic("n")

    @T.prim_func
    def window_once(x: T.Tensor((n,), T.float32), y: T.Tensor((n,), T.float32)):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            T.annotate_l2_hit_ratio({x: 0.75})
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i] * 2.0
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = y[block * 128 + i] + x[block * 128 + i]

    return window_once


def _workspace_if_large():
    n = T.dynamic("n")

    @T.prim_func
    def workspace_if_large(x: T.Tensor((n,), T.float32), y: T.Tensor((n,), T.float32)):
        if n > 500:
            middle = T.alloc_global((n,), T.float32)
            with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
                for i in T.Parallel(128):
                    middle[block * 128 + i] = x[block * 128 + i] * 2.0
            with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
                for i in T.Parallel(128):
                    y[block * 128 + i] = middle[block * 128 + i] * 2.0
        else:
            with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
                for i in T.Parallel(128):
                    y[block * 128 + i] = x[block * 128 + i] * 4.0

    return workspace_if_large


def _solved_extents():
    n = T.dynamic("n")

    @T.prim_func
    def solved_extents(
        x: T.Tensor((3 * n,), T.float32), z: T.Tensor((2 * n + 1,), T.float32), y: T.Tensor((n,), T.float32)
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                if block * 128 + i < n:
                    y[block * 128 + i] = x[block * 128 + i] + z[block * 128 + i]

    return solved_extents


def _flattened():
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def flattened(
        factor: T.Tensor((), T.float32), x: T.Tensor((m, n), T.float32), y: T.Tensor((m * n,), T.float32)
    ):
        with T.Kernel(T.ceildiv(m * n, 128), threads=128) as block:
            for i in T.Parallel(128):
                if block * 128 + i < m * n:
                    y[block * 128 + i] = x[(block * 128 + i) // n, (block * 128 + i) % n] * factor[()]

    return flattened


def _if_told():
    n = T.dynamic("n")

    @T.prim_func
    def if_told(x: T.Tensor((n,), T.float32), told: T.bool):
        if told:
            with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
                for i in T.Parallel(128):
                    x[block * 128 + i] = x[block * 128 + i] * 2.0

    return if_told


def _if_more_than_half():
    n = T.dynamic("n")

    @T.prim_func
    def if_more_than_half(x: T.Tensor((n,), T.float32), share: T.float32):
        if share > T.float32(0.5):
            with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
                for i in T.Parallel(128):
                    x[block * 128 + i] = x[block * 128 + i] * 2.0

    return if_more_than_half


def _truncated_grid():
    n = T.dynamic("n")

    @T.prim_func
    def truncated_grid(x: T.Tensor((n,), T.float32), w: T.int32):
        with T.Kernel(T.ceildiv(n, 128), 12 + T.truncdiv(w, 4), threads=128) as (block, other):
            for i in T.Parallel(128):
                if other == 0:
                    x[block * 128 + i] = x[block * 128 + i] * 2.0

    return truncated_grid


def _vector(draw):
    return (draw.tensor((draw.size(1, 1000),)),)


def _with_number(low, high):
    return lambda draw: (*_vector(draw), draw.size(low, high))


def _four_and_number(draw):
    n = draw.size(1, 1000)
    return (*(draw.tensor((n,)) for _ in range(4)), draw.size(0, 9))


def _solved_inputs(draw):
    n = draw.size(1, 300)
    return draw.tensor((3 * n,)), draw.tensor((2 * n + 1,))


def _nested_reference(x):
    x, n = x.clone(), x.shape[0]
    for i in range(3):
        for j in range(2 if n > i * 300 else 0):
            x[: n - i * 100] = x[: n - i * 100] * 2 + i + j
    return (x,)


def _bounded_reference(x, steps):
    for step in range(min(steps, 4)):
        x = x * 2 + step
    return (x,)


def _twice(x, *_):
    return (x * 2,)


ENTRIES = (
    Entry(
        name="nested",
        covers="loops and conditions around launches, inside each other",
        make=_nested,
        inputs=_vector,
        reference=_nested_reference,
        written=(0,),
        tolerance=1e-5,
    ),
    Entry(
        name="bounded",
        covers="a loop around a launch whose count the call knows, up to four",
        make=_bounded,
        inputs=_with_number(0, 9),
        reference=_bounded_reference,
        written=(0,),
        tolerance=1e-5,
    ),
    Entry(
        name="chosen_grid",
        covers="a grid of conditional expressions",
        make=_chosen_grid,
        inputs=lambda draw: (draw.tensor((draw.size(1, 128),)), draw.size(0, 9)),
        reference=_twice,
        written=(0,),
    ),
    Entry(
        name="bit_grid",
        covers="a grid of shifts and masks",
        make=_bit_grid,
        inputs=_vector,
        reference=_twice,
        written=(0,),
    ),
    Entry(
        name="internal_names",
        covers="parameters called as the host function's own variables",
        make=_internal_names,
        inputs=_four_and_number,
        reference=lambda a, b, c, d, number: (a + b * c + d * number,),
        out_idx=(5,),
        tolerance=1e-5,
    ),
    Entry(
        name="window_once",
        covers="an access-policy window on the first of two launches only",
        make=_window_once,
        inputs=_vector,
        reference=lambda x: (x * 3,),
        out_idx=(1,),
        tolerance=1e-5,
    ),
    Entry(
        name="workspace_if_large",
        covers="a workspace in one branch of a condition",
        make=_workspace_if_large,
        inputs=_vector,
        reference=lambda x: (x * 4,),
        out_idx=(1,),
    ),
    Entry(
        name="solved_extents",
        covers="a size that no dimension of an input says by itself",
        make=_solved_extents,
        inputs=_solved_inputs,
        reference=lambda x, z: (x[: x.shape[0] // 3] + z[: x.shape[0] // 3],),
        out_idx=(2,),
    ),
    Entry(
        name="flattened",
        covers="an output of m * n elements; a tensor without dimensions",
        make=_flattened,
        inputs=lambda draw: (draw.tensor(()), draw.tensor((draw.size(1, 40), draw.size(1, 40)))),
        reference=lambda factor, x: ((x * factor).reshape(-1),),
        out_idx=(2,),
    ),
    Entry(
        name="if_told",
        covers="a condition on a bool around a launch",
        make=_if_told,
        inputs=lambda draw: (*_vector(draw), bool(draw.size(0, 1))),
        reference=lambda x, told: (x * 2 if told else x,),
        written=(0,),
    ),
    Entry(
        name="if_more_than_half",
        covers="a condition on a floating-point number around a launch",
        make=_if_more_than_half,
        inputs=lambda draw: (*_vector(draw), draw.number(0, 1)),
        reference=lambda x, share: (x * 2 if share > 0.5 else x,),
        written=(0,),
        refused="a program computes with integers, not with floating-point numbers",
    ),
    Entry(
        name="truncated_grid",
        covers="a grid of a quotient that is truncated",
        make=_truncated_grid,
        inputs=_with_number(-9, 9),
        reference=_twice,
        written=(0,),
    ),
)
