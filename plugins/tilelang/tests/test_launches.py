"""Launches: order, conditions, loops, operands and attributes of a program made from a host function."""

import tilelang.language as T

from trunnion import Workspace
from trunnion.model.expr_text import format_expr
from trunnion_tilelang.walk import MOST_ITERATIONS


def texts(exprs):
    return [format_expr(expr) for expr in exprs]


def conditions(program):
    return [None if launch.when is None else format_expr(launch.when) for launch in program.launches]


def vector():
    return T.Tensor((T.dynamic("n"),), "float32")


def test_nested_conditions_are_conjunctions_and_else_is_the_negation(imported):
    @T.prim_func
    def main(x: vector(), k: T.int32, j: T.int32):
        if k > 3:
            if j == 1:
                with T.Kernel(1, threads=32):
                    x[0] = 1.0
            else:
                with T.Kernel(2, threads=32):
                    x[0] = 2.0
        else:
            with T.Kernel(3, threads=32):
                x[0] = 3.0

    program = imported(main)
    assert conditions(program) == [
        "select(lt(3, k), eq(j, 1), 0)",
        "select(lt(3, k), eq(eq(j, 1), 0), 0)",
        "eq(lt(3, k), 0)",
    ]
    assert [launch.grid[0].value for launch in program.launches] == [1, 2, 3]


def test_a_boolean_is_a_condition(imported):
    @T.prim_func
    def main(x: vector(), flag: T.bool, other: T.bool):
        if flag and other:
            with T.Kernel(1, threads=32):
                x[0] = 1.0
        if not flag:
            with T.Kernel(2, threads=32):
                x[0] = 2.0

    program = imported(main)
    assert conditions(program) == ["select(flag, other, 0)", "eq(flag, 0)"]
    assert [param.dtype.name for param in program.signature.scalars] == ["bool", "bool"]
    assert [(symbol.min, symbol.max) for symbol in program.signature.symbols()[1:]] == [(0, 1), (0, 1)]


def test_an_assertion_under_a_condition_holds_only_there(imported):
    @T.prim_func
    def main(x: vector(), k: T.int32):
        if k > 3:
            T.Assert(k % 2 == 0, "k is even")
            with T.Kernel(1, threads=32):
                x[0] = 1.0

    (check,) = imported(main).signature.checks
    assert format_expr(check.condition) == "select(lt(3, k), eq((k % 2), 0), 1)"
    assert check.message == "k is even"


def test_a_loop_is_unrolled_with_its_variable_as_an_operand(imported):
    @T.prim_func
    def main(x: vector()):
        for step in range(3):
            with T.Kernel(1 + step, threads=32):
                x[0] = T.cast(step, "float32")

    program = imported(main)
    assert [launch.grid[0].value for launch in program.launches] == [1, 2, 3]
    assert texts(launch.args[-1] for launch in program.launches) == [
        "cast(int32, 0)", "cast(int32, 1)", "cast(int32, 2)"
    ]  # fmt: skip


def test_a_loop_of_few_iterations_that_a_call_counts_has_a_condition_on_each(imported):
    @T.prim_func
    def main(x: vector(), k: T.int32):
        for step in T.serial(T.min(k, 3)):
            with T.Kernel(1, threads=32):
                x[0] = T.cast(step, "float32")

    assert conditions(imported(main)) == [f"lt({step}, minimum(k, 3))" for step in range(3)]
    assert MOST_ITERATIONS >= 3


def test_operands_are_of_the_kernels_types(imported):
    n = T.dynamic("n", "int64")

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), flag: T.bool, u: T.uint8):
        with T.Kernel(T.ceildiv(n, T.int64(32)), threads=32) as block:
            if flag:
                x[block] = T.cast(u, "float32")

    (launch,) = imported(main).launches
    x, flag, n_given, u = launch.args
    assert (x.name, flag.name, u.name) == ("x", "flag", "u")
    assert (flag.dtype.name, n_given.to.name, u.dtype.name) == ("bool", "int64", "uint8")
    assert texts(launch.grid) == ["((n + 31) // 32)", "1", "1"]


def test_a_workspace_is_one_memory_for_all_kernels_that_are_given_it(imported):
    n = T.dynamic("n")

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32")):
        between = T.alloc_global((n, 4), "float16")
        with T.Kernel(n, threads=32) as row:
            between[row, 0] = T.cast(x[row], "float16")
        with T.Kernel(n, threads=32) as row:
            y[row] = T.cast(between[row, 0], "float32")

    program = imported(main)
    (workspace,) = program.workspaces
    assert (workspace.name, workspace.dtype.name, texts(workspace.shape)) == (
        "between",
        "float16",
        ["(n * 4)"],
    )
    given = [[arg for arg in launch.args if isinstance(arg, Workspace)] for launch in program.launches]
    assert given == [[workspace], [workspace]]


def test_a_window_is_on_every_launch_between_its_beginning_and_its_end(imported):
    @T.prim_func
    def main(x: T.Tensor((256,), "float32"), y: T.Tensor((256,), "float32")):
        with T.Kernel(2, threads=128) as block:
            T.annotate_l2_hit_ratio({x: 0.5})
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i]
        with T.Kernel(2, threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i] + y[block * 128 + i]

    program = imported(main)
    assert [(launch.window.memory.name, launch.window.hit_ratio) for launch in program.launches] == [
        ("x", 0.5)
    ] * 2
    assert program.launches[0].window.nbytes is None


def test_attributes_are_on_the_launches_whose_kernels_ask_for_them(imported):
    @T.prim_func
    def main(x: T.Tensor((256,), "float32"), y: T.Tensor((256,), "float32")):
        with T.Kernel(2, threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i]
            T.pdl_trigger()
        with T.Kernel(2, threads=128) as block:
            T.pdl_sync()
            for i in T.Parallel(128):
                y[block * 128 + i] = y[block * 128 + i] + 1.0
        with T.Kernel(2, threads=128) as block:
            for i in T.Parallel(128):
                y[block * 128 + i] = x[block * 128 + i]
            T.sync_grid()
            x[block] = y[block + 1]

    launches = imported(main).launches
    assert [launch.pdl for launch in launches] == [False, True, False]
    assert [launch.cooperative for launch in launches] == [False, False, True]
    assert [launch.cluster for launch in launches] == [None, None, None]


def test_a_cluster_is_what_the_call_gives(imported):
    @T.prim_func
    def main(y: T.Tensor((256,), "float32")):
        with T.ClusterKernel(4, cluster_dims=(2, 1, 1), threads=64) as block:
            y[block] = 3.0

    (launch,) = imported(main).launches
    assert (launch.cluster, launch.grid[0].value) == ((2, 1, 1), 4)


def test_assumptions_and_assertions_of_the_authors_are_checks_each_once(imported):
    n = T.dynamic("n")

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), k: T.int32):
        T.assume(n % 4 == 0)
        T.assume(n % 4 == 0)
        T.Assert(k < n, "k is an index")
        with T.Kernel(n // 4, threads=32) as block:
            x[block] = T.cast(k, "float32")

    checks = imported(main).signature.checks
    assert [format_expr(check.condition) for check in checks] == ["eq((n % 4), 0)", "lt(k, n)"]
    assert [check.message for check in checks] == ["Assume: n % 4 == 0", "k is an index"]


def test_that_a_number_fits_a_narrower_type_is_a_check(imported):
    """Its cast would refuse a call that makes it, and no call makes one of what is never computed."""
    n = T.dynamic("n", "int64")

    @T.prim_func
    def main(x: T.Tensor((n,), "float32")):
        T.assume(T.cast(n, "int32") >= 0)
        with T.Kernel(4, threads=32) as block:
            x[block] = 0.0

    (check,) = imported(main).signature.checks
    assert format_expr(check.condition) == "le(0, cast(int32, n))"
