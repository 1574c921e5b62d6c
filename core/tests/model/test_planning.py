from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import ProgramError, TensorMapError, UnboundSymbolError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Const, Expr, Slot, Symbol, ceildiv, lt, symbols
from trunnion.model.plan import (
    ConditionCheck,
    ExprArgument,
    MapArgument,
    PointerArgument,
    ScalarArgument,
    Source,
    ValueCheck,
)
from trunnion.model.tensormap.fields import Im2colFields, TiledFields
from trunnion.testing.arithmetic import evaluate

if TYPE_CHECKING:
    from trunnion.model.tensormap import Im2colTensorMap

CODE = DeviceCode("cuda", "//")
N, M, K = symbols("n m k")


def builder() -> ProgramBuilder:
    return ProgramBuilder("p", CODE)


def slot(index: int) -> Slot:
    return Slot(index, 0, N.max)


def test_symbols_bind_from_shapes_then_strides_then_scalars() -> None:
    p = builder()
    p.scalar("s", "int64", K)
    p.input("a", "int8", (N + 1, 3), strides=(M, K))
    p.input("b", "int8", (N, N))
    p.output("c", "int8", (K,))
    p.launch("k", (), 1, 1)
    plan = p.build().plan()
    assert [(b.slot, b.symbol, b.source) for b in plan.bindings] == [
        (0, "n", Source("shape", 1, 0)),
        (1, "m", Source("stride", 0, 0)),
        (2, "k", Source("stride", 0, 1)),
    ]
    assert [b.candidates for b in plan.bindings] == [(), (), (Source("stride", 0, 1), Source("scalar", 0))]
    assert plan.checks == (
        ValueCheck(Source("shape", 0, 0), slot(0) + 1),
        ValueCheck(Source("shape", 0, 1), Const(3)),
        ValueCheck(Source("shape", 1, 1), slot(0)),
        ValueCheck(Source("stride", 0, 1), slot(2)),  # it may not be what bound k
        ValueCheck(Source("scalar", 0), slot(2)),
    )
    assert [t.position for t in plan.tensors] == [1, 2, 0]
    assert [t.output for t in plan.tensors] == [False, False, True]
    assert plan.results == (2,)
    assert plan.scalars[0].position == 0
    assert plan.tensors[2].shape == (slot(2),)


def test_an_author_s_own_checks_come_last_and_bounds_are_kept() -> None:
    p = builder()
    n = Symbol("n", min=2, max=9, multiple_of=2)
    p.input("a", "int8", (n, n))
    p.check(lt(n, 5), "small")
    p.launch("k", (), 1, 1)
    plan = p.build().plan()
    assert plan.checks[-1] == ConditionCheck(lt(Slot(0, 2, 9), 5), "small")
    (binding,) = plan.bindings
    assert (binding.min, binding.max, binding.multiple_of) == (2, 9, 2)


def unbound(
    *shapes: tuple[Any, ...], out: tuple[Any, ...] = (), condition: Expr | None = None, strides: Any = None
) -> UnboundSymbolError:
    p = builder()
    for index, shape in enumerate(shapes):
        p.input(f"t{index}", "int8", shape, strides=strides)
    if out:
        p.output("o", "int8", out)
    if condition is not None:
        p.check(condition, "m")
    p.launch("k", (), 1, 1)
    with pytest.raises(UnboundSymbolError) as caught:
        p.build()
    return caught.value


def test_an_unbound_symbol_lists_where_it_stands_in_vain() -> None:
    error = unbound((3, N + 1), (2 * N, N + M), out=(N,), condition=lt(N, 5), strides=(N * 4, 1))
    assert error.symbol == "n"
    assert error.candidates == (
        "dimension 1 of 't0' is (n + 1)",
        "dimension 0 of 't1' is (2 * n)",
        "dimension 1 of 't1' is (n + m)",
        "stride 0 of 't0' is (n * 4)",
        "stride 0 of 't1' is (n * 4)",
        "dimension 0 of output 'o' is n",
        "check 0 is lt(n, 5)",
    )
    text = str(error)
    assert "'n' has no value" in text
    assert "bare" in text
    assert "dimension 1 of 't0' is (n + 1)" in text


def test_outputs_never_bind() -> None:
    assert unbound((3,), out=(N,)).candidates == ("dimension 0 of output 'o' is n",)


def test_very_long_expressions_are_cut_in_candidates() -> None:
    wide = N + 1
    for _ in range(9):
        wide = wide + wide
    assert len(str(unbound((wide,)))) < 1000


def maps(*pairs: dict[str, Any]) -> Any:
    p = builder()
    a = p.input("a", "float16", (N, 64), alignment=16)
    b = p.input("b", "float16", (N, 64), alignment=16)
    for fields in pairs:
        tensor = b if fields.pop("other", False) else a
        p.launch("k", (tensor.tiled(fields.pop("box", (8, 64)), **fields),), 1, 1)
    return p.build().plan()


@pytest.mark.parametrize(
    "same",
    [
        {},
        {"label": "x"},
        {"element_strides": (1, 1)},
        {"dtype": "float16"},
        {"shape": (N, 64), "strides": (64, 1)},
        {"element_offset": 0},
        {"swizzle": "NONE"},
    ],
)
def test_maps_that_say_the_same_are_one(same: dict[str, Any]) -> None:
    plan = maps({"label": "one"}, same)
    assert len(plan.encodes) == 1
    assert plan.encodes[0].readers == (0, 1)
    assert [launch.args for launch in plan.launches] == [(MapArgument(0),)] * 2


@pytest.mark.parametrize(
    "different",
    [
        {"other": True},
        {"box": (16, 64)},
        {"element_strides": (2, 1)},
        {"dtype": "bfloat16"},
        {"shape": (N, 32), "strides": (64, 1)},
        {"shape": (N, 64), "strides": (128, 1)},
        {"element_offset": 8},
        {"element_offset": 8 * M},
        {"swizzle": "128B"},
        {"l2_promotion": "L2_64B"},
        {"oob_fill": "NAN_REQUEST_ZERO_FMA"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_maps_that_differ_anywhere_are_two_though_named_alike(different: dict[str, Any]) -> None:
    p = builder()
    a = p.input("a", "float16", (N, 64))
    b = p.input("b", "float16", (N, 64))
    p.input("m", "int8", (M,))
    box = different.pop("box", (8, 64))
    tensor = b if different.pop("other", False) else a
    args = (a.tiled((8, 64), label="same"), tensor.tiled(box, label="same", **different))
    p.launch("k", args, 1, 1)
    plan = p.build().plan()
    assert len(plan.encodes) == 2
    assert plan.launches[0].args == (MapArgument(0), MapArgument(1))
    assert [encode.readers for encode in plan.encodes] == [(0,), (0,)]


def test_a_map_is_turned_into_the_driver_s_order_and_bytes() -> None:
    p = builder()
    a = p.input("a", "float16", (N, M, 64))
    p.launch("k", (a.tiled((1, 8, 64), element_offset=N, element_strides=(1, 2, 1)),), 1, 1)
    (encode,) = p.build().plan().encodes
    n, m = slot(0), slot(1)
    assert encode.dims == (Const(64), m, n)
    assert encode.strides == (Const(128), m_bytes(m))
    assert encode.innermost_stride == Const(1)
    assert isinstance(encode.fields, TiledFields)
    assert encode.fields == encode.fields.constant
    assert (encode.fields.box, encode.fields.element_strides) == ((64, 8, 1), (1, 2, 1))
    assert encode.offset_bytes == n * 2


def images_map(tensor: Any, **changes: Any) -> Im2colTensorMap:
    fields = {
        "pixel_box_lower_corner": (-1, -2),
        "pixel_box_upper_corner": (3, 4),
        "channels_per_pixel": 32,
        "pixels_per_column": 128,
    }
    return tensor.im2col(**{**fields, **changes})


def test_an_im2col_map_is_turned_into_the_driver_s_order() -> None:
    p = builder()
    images = p.input("images", "float16", (N, 16, 24, 64))
    same = images_map(images, label="same")
    p.launch("k", (images_map(images), same, images_map(images, pixel_box_lower_corner=(-2, -1))), 1, 1)
    plan = p.build().plan()
    encode, other = plan.encodes
    assert isinstance(encode.fields, Im2colFields)
    assert (encode.fields.lower, encode.fields.upper) == ((-2, -1), (4, 3))
    assert (encode.fields.channels_per_pixel, encode.fields.pixels_per_column) == (32, 128)
    assert encode.dims == (Const(64), Const(24), Const(16), slot(0))
    assert encode.strides == (Const(128), Const(24 * 128), Const(16 * 24 * 128))
    assert encode.limit_bytes is None
    assert other.fields != encode.fields
    assert plan.launches[0].args == (MapArgument(0), MapArgument(0), MapArgument(1))


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"pixel_box_lower_corner": (0,)}, "pixel_box_lower_corner"),
        ({"pixel_box_upper_corner": (0, 0, 0)}, "pixel_box_upper_corner"),
        ({"channels_per_pixel": 1.0}, "channels_per_pixel"),
        ({"pixels_per_column": None}, "pixels_per_column"),
        ({"element_strides": (1, 1)}, "element_strides"),
        ({"dtype": "TFLOAT33"}, "dtype"),
        ({"box_dim": (1,)}, ""),
    ],
)
def test_a_wrong_field_of_an_im2col_map_is_named(changes: dict[str, Any], where: str) -> None:
    images = builder().input("images", "float16", (N, 16, 24, 64))
    with pytest.raises(ProgramError) as caught:
        images_map(images, **changes)
    assert caught.value.field.startswith("tensor map")
    assert caught.value.field.endswith(where)


def test_a_map_that_may_reach_beyond_its_memory_has_a_limit() -> None:
    p = builder()
    a = p.input("a", "float32", (64, 64))
    w = p.workspace("w", "float32", (N, 64))
    p.launch("k", (a.tiled((8, 32), dtype="TFLOAT32"), a.tiled((8, 32), element_offset=64)), 1, 1)
    p.launch("l", (w.tiled((8, 32), shape=(N, 32), strides=(64, 1)), w.tiled((8, 32))), 1, 1)
    p.scalar("n", "int32", N)
    limits = [encode.limit_bytes for encode in p.build().plan().encodes]
    assert limits[0] is None
    assert limits[1] == Const(64 * 64 * 4)
    assert limits[2] is not None
    assert limits[3] is None
    assert [encode.fields.data_type for encode in p.build().plan().encodes] == [11, 7, 7, 7]


def m_bytes(m: Expr) -> Expr:
    return 64 * m * 2


def test_kernels_are_listed_once_with_their_parameters() -> None:
    p = builder()
    a = p.input("a", "float16", (N, 64))
    s = p.scalar("s", "int8")
    p.launch("k", (a, s, N.cast("uint16"), N, 7, a.tiled((8, 64))), 1, 1)
    p.launch("other", (), 1, 1)
    p.launch("k", (a, s, N.cast("uint16"), 1, N, a.tiled((16, 64))), 1, 1)
    plan = p.build().plan()
    assert [kernel.name for kernel in plan.kernels] == ["k", "other"]
    sizes = [(q.size, q.alignment) for q in plan.kernels[0].parameters]
    assert sizes == [(8, 8), (1, 1), (2, 2), (8, 8), (8, 8), (128, 64)]
    assert [q.description for q in plan.kernels[0].parameters] == [
        "a pointer to float16 (8 bytes)",
        "int8 (1 byte)",
        "uint16 (2 bytes)",
        "int64 (8 bytes)",
        "int64 (8 bytes)",
        "a tensor map (128 bytes)",
    ]
    assert [launch.kernel for launch in plan.launches] == [0, 1, 0]
    args = plan.launches[0].args
    assert isinstance(args[0], PointerArgument)
    assert isinstance(args[1], ScalarArgument)
    assert isinstance(args[2], ExprArgument)
    assert args[2].dtype.name == "uint16"


def test_one_kernel_may_be_given_pointers_to_different_types() -> None:
    """A kernel with a ``void*`` does not care; only sizes and alignments reach the device."""
    p = builder()
    a, b = p.input("a", "float16", (N,)), p.input("b", "int64", (N,))
    p.launch("zero", (a,), 1, 1)
    p.launch("zero", (b,), 1, 1)
    assert len(p.build().plan().kernels) == 1


@pytest.mark.parametrize("args", [(), (N, N), (N.cast("int32"),)])
def test_one_kernel_is_given_the_same_sizes_each_time(args: tuple[Any, ...]) -> None:
    p = builder()
    p.input("a", "int8", (N,))
    p.launch("k", (N,), 1, 1)
    p.launch("k", args, 1, 1)
    with pytest.raises(ProgramError, match="earlier launch") as caught:
        p.build().plan()
    assert caught.value.field == "launches[1].args"


def test_alignment_defaults_to_the_element() -> None:
    p = builder()
    p.input("a", "float32", (4,))
    p.input("b", "float32", (4,), alignment=64)
    p.launch("k", (), ceildiv(7, 2), 1)
    plan = p.build().plan()
    assert [tensor.alignment for tensor in plan.tensors] == [4, 64]
    assert plan.launches[0].grid == (Const(4), Const(1), Const(1))


@pytest.mark.parametrize(("word", "steps"), [("16U4_ALIGN8B", (65, 63, 1)), ("16U6_ALIGN16B", (129, 43))])
def test_a_stride_of_packed_elements_is_whole_bytes(word: str, steps: tuple[int, ...]) -> None:
    p = builder()
    memory = p.input("a", "uint8", (64, 256))
    step = p.scalar("s", "int32", Symbol("s", min=0)).symbol
    for wrong in steps:
        with pytest.raises(TensorMapError, match="each stride"):
            memory.tiled((1, 128), dtype=word, shape=(2, 128), strides=(wrong, 1))
    bits = {"16U4_ALIGN8B": 4, "16U6_ALIGN16B": 6}[word]
    assert step is not None
    (stride,) = memory.tiled((1, 128), dtype=word, shape=(2, 128), strides=(step, 1)).byte_strides()
    told = [evaluate(stride, {"s": value}, lambda _: 0) for value in (*steps, 128)]
    assert all(one % 16 for one in told[:-1])
    assert told[-1] == 128 * bits // 8
