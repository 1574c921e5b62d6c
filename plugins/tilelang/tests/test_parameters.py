"""Parameters: what a signature says of the tensors, numbers and addresses of a kernel in TileLang's language."""

import pytest
import tilelang.language as T

from trunnion import PointerParam, ScalarParam, TensorParam
from trunnion.errors import UnboundSymbolError
from trunnion.model.expr_text import format_expr
from trunnion_tilelang import UnsupportedStatementError


def shape(param):
    return [format_expr(extent) for extent in param.shape]


def strides(param):
    return param.strides and [format_expr(stride) for stride in param.strides]


def of(program):
    return {param.name: param for param in (*program.signature.params, *program.signature.outputs)}


def increment(x_type, y_type):
    @T.prim_func
    def main(x: x_type, y: y_type):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                y[0, i] = x[0, i]

    return main


def test_a_strided_tensor_has_its_strides_and_a_contiguous_one_none(imported):
    n, s = T.dynamic("n"), T.dynamic("s", "int64")
    program = imported(
        increment(T.StridedTensor((n, 64), (s, 2), "float32"), T.Tensor((n, n + 3), "float32"))
    )
    params = of(program)
    assert (shape(params["x"]), strides(params["x"])) == (["n", "64"], ["s", "2"])
    assert (shape(params["y"]), strides(params["y"])) == (["n", "(n + 3)"], None)


def test_a_layout_that_tilelang_writes_otherwise_than_its_shape_is_still_contiguous(imported):
    n = T.dynamic("n")

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), y: T.Tensor((n, n + 3, 4), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                y[0, 0, i] = x[i]

    assert strides(of(imported(main))["y"]) is None


def test_symbols_of_one_name_are_told_apart_by_identity(imported):
    first, second = T.dynamic("n"), T.dynamic("n")
    program = imported(increment(T.Tensor((first, 64), "float32"), T.Tensor((second, 64), "float32")))
    params = of(program)
    assert (shape(params["x"]), shape(params["y"])) == (["n", "64"], ["n_1", "64"])
    assert len(program.signature.symbols()) == 2


def test_a_symbol_has_the_range_of_its_type(imported):
    n, m = T.dynamic("n"), T.dynamic("m", "int64")
    program = imported(increment(T.Tensor((n, 64), "float32"), T.Tensor((m, 64), "float32")))
    first, second = program.signature.symbols()
    assert (first.min, first.max) == (0, 2**31 - 1)
    assert (second.min, second.max) == (0, 2**63 - 1)


def test_a_variable_of_compound_extents_only_is_computed_from_the_first(imported):
    n = T.dynamic("n")
    program = imported(
        increment(T.Tensor((n * 2 + 1, 64), "float32"), T.Tensor((n, 64), "float32")), out_idx=1
    )
    params = of(program)
    assert shape(params["x"]) == ['"x.shape[0]"', "64"]
    assert shape(params["y"]) == ['(("x.shape[0]" - 1) // 2)', "64"]
    conditions = [format_expr(check.condition) for check in program.signature.checks]
    assert 'eq("x.shape[0]", (((("x.shape[0]" - 1) // 2) * 2) + 1))' in conditions


def test_a_variable_is_taken_from_an_input_where_the_first_tensor_is_an_output(imported):
    n = T.dynamic("n")
    program = imported(increment(T.Tensor((n, 64), "float32"), T.Tensor((n, 64), "float32")), out_idx=[0])
    assert [param.name for param in program.signature.params] == ["y"]
    assert program.plan().bindings[0].symbol == "n"


def test_a_variable_that_stands_in_outputs_only_has_no_value(imported):
    n = T.dynamic("n")
    with pytest.raises(UnboundSymbolError) as caught:
        imported(increment(T.Tensor((4, 64), "float32"), T.Tensor((n, 64), "float32")), out_idx=1)
    assert caught.value.symbol == "n"


@pytest.mark.parametrize(
    ("spelling", "dtype", "last"),
    [
        ("float4_e2m1fn", "float4_e2m1fn_x2", 32),
        ("int4", "int8", 32),
        ("float8_e4m3", "float8_e4m3fn", 64),
        ("float8_e5m2", "float8_e5m2", 64),
        ("bool", "bool", 64),
        ("bfloat16", "bfloat16", 64),
        (T.tfloat32, "float32", 64),
    ],
)
def test_elements_are_stored_as_torch_stores_them(imported, spelling, dtype, last):
    n = T.dynamic("n")

    @T.prim_func
    def main(x: T.Tensor((n, 64), spelling), y: T.Tensor((n, 64), spelling)):
        with T.Kernel(n, threads=32) as row:
            tile = T.alloc_shared((1, 64), spelling)
            T.copy(x[row, 0], tile)
            T.copy(tile, y[row, 0])

    param = of(imported(main))["x"]
    assert (param.dtype.name, shape(param), strides(param)) == (dtype, ["n", str(last)], None)


def test_a_symbolic_extent_of_packed_elements_is_twice_the_stored_one(imported):
    n = T.dynamic("n")

    @T.prim_func
    def main(x: T.Tensor((4, n), "int4"), y: T.Tensor((4, n), "float32")):
        with T.Kernel(4, threads=32) as row:
            for i in T.Parallel(32):
                y[row, i] = T.cast(x[row, i], "float32")

    program = imported(main)
    params = of(program)
    assert (shape(params["x"]), shape(params["y"])) == (["4", "(n // 2)"], ["4", "n"])
    assert "eq(((n // 2) * 2), n)" in [format_expr(check.condition) for check in program.signature.checks]


def test_only_a_tensor_that_no_kernel_needs_may_be_none(imported):
    n = T.dynamic("n")

    @T.prim_func
    def main(x: T.Tensor((n,), "float32"), bias: T.Tensor((n + 1,), "float32"), y: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                y[i] = x[i]

    params = of(imported(main, out_idx=2))
    assert [name for name, param in params.items() if param.nullable] == ["bias"]
    assert shape(params["bias"]) == ["(n + 1)"]


def test_scalars_keep_their_types_and_addresses_are_tensors_under_the_authors_name(imported):
    @T.prim_func
    def main(
        source: T.ptr,
        flag: T.bool,
        a: T.float16,
        b: T.float64,
        c: T.int8,
        d: T.uint64,
        y: T.Tensor((32,), "float32"),
    ):
        x = T.make_tensor(source, (32,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                y[i] = T.if_then_else(flag, x[i], T.cast(a, "float32")) + T.cast(b, "float32") + c + d

    program = imported(main)
    params = of(program)
    assert {name: param.dtype.name for name, param in params.items() if isinstance(param, ScalarParam)} == {
        "flag": "bool", "a": "float16", "b": "float64", "c": "int8", "d": "uint64"
    }  # fmt: skip
    assert isinstance(params["source"], TensorParam)
    (launch,) = program.launches
    assert [arg.name for arg in launch.args] == ["source", "y", "a", "b", "c", "d", "flag"]
    assert not any(isinstance(param, PointerParam) for param in params.values())


def test_a_parameter_that_nothing_reads_is_taken_all_the_same(imported):
    @T.prim_func
    def main(
        p: T.handle,
        k: T.int32,
        y: T.Tensor((32,), "float32"),
        a: T.float16,
        flag: T.bool,
        z: T.Tensor((4,), "int8"),
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                y[i] = 1.0

    signature = imported(main, out_idx=2).signature
    assert [(type(param), param.name) for param in signature.params] == [
        (PointerParam, "p"), (ScalarParam, "k"), (ScalarParam, "a"), (ScalarParam, "flag"), (TensorParam, "z")
    ]  # fmt: skip
    assert [param.dtype.name for param in signature.scalars] == ["int32", "float16", "bool"]
    allocating = main.with_attr("tilelang_out_idx", [2]).with_attr("tilelang_callee_allocated_outputs", 1)
    assert imported(allocating).signature == signature


def test_a_number_that_is_only_handed_on_has_no_symbol_and_so_its_types_whole_range(imported):
    @T.prim_func
    def main(wide: T.uint64, k: T.int32, y: T.Tensor((32,), "uint64")):
        with T.Kernel(k, threads=32):
            for i in T.Parallel(32):
                y[i] = wide

    params = of(imported(main))
    assert params["wide"].symbol is None
    assert params["k"].symbol.name == "k"


def test_a_tensor_is_read_only_if_every_kernel_only_reads_it(imported):
    params = of(imported(increment(T.Tensor((4, 64), "float32"), T.Tensor((4, 64), "float32"))))
    assert (params["x"].access, params["y"].access) == ("read", "read_write")


@pytest.mark.parametrize(
    ("extents", "dtype", "alignment"),
    [
        ((1,), "float32", 4),
        ((64,), "float32", 16),
        ((3, 5), "float16", 2),
        ((3, 6), "float16", 4),
        ((8, 8), "int8", 8),
    ],
)
def test_the_alignment_is_that_of_the_widest_access_that_rows_allow(imported, extents, dtype, alignment):
    @T.prim_func
    def main(x: T.Tensor(extents, dtype)):
        with T.Kernel(1, threads=32):
            if len(extents) == 1:
                x[0] = T.cast(1, dtype)
            else:
                x[0, 0] = T.cast(1, dtype)

    assert of(imported(main))["x"].alignment == alignment


def test_a_strided_output_is_refused(imported):
    s = T.dynamic("s")
    function = increment(T.Tensor((4, 64), "float32"), T.StridedTensor((4, 64), (s, 1), "float32"))
    with pytest.raises(UnsupportedStatementError) as caught:
        imported(function, out_idx=1)
    assert caught.value.function == "main"
    assert "strides" in caught.value.reason


def test_a_variable_without_a_name_gets_one(imported):
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        n, m = T.int32(), T.int32()
        x, y = T.match_buffer(a, (n, 4), "float32"), T.match_buffer(b, (m, 4), "float32")
        with T.Kernel(1, threads=32):
            x[0, 0] = y[0, 0]

    params = of(imported(main))
    assert [shape(param) for param in params.values()] == [["unnamed", "4"], ["unnamed_1", "4"]]
