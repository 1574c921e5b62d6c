"""A foreign function, called with arrays on the host: it truly runs."""

from __future__ import annotations

import ctypes
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from foreign_signatures import AXPY, VECTOR, N, ramp

from trunnion import ceildiv, errors, le, symbols
from trunnion.model.params import Check, PointerParam, ScalarParam, Signature, StructParam, TensorParam

pytestmark = pytest.mark.tvm_ffi_abi

HALVES = Signature(
    params=(TensorParam("x", "float32", (N,)),),
    outputs=(TensorParam("low", "float32", (N // 2,)), TensorParam("high", "float32", (N // 2,))),
    checks=(Check(le(N, 100), "at most 100 elements"),),
)
NONE, INT64, BOOL, FLOAT, POINTER, SMALL_BYTES, BYTES = 0, 1, 2, 3, 4, 12, 66  # TVMFFITypeIndex


# Outputs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_an_output_is_allocated_and_returned(function, n):
    axpy = function("axpy", AXPY)
    for _ in range(4):  # the later ones recall what the earlier ones found out
        out = axpy(2.0, ramp(n), ramp(n))
        assert type(out) is torch.Tensor
        assert torch.equal(out, 3 * ramp(n))


def test_extents_may_change_from_call_to_call(function):
    axpy = function("axpy", AXPY)
    for n in (3, 3, 3, 4, 3, 3, 5, 0, 4):
        assert torch.equal(axpy(1.0, ramp(n), ramp(n, 7)), ramp(n) + ramp(n, 7))


def test_outputs_may_stand_anywhere(function):
    for places in ((0, 2), [0, -1], (-3, 2)):
        split = function("split", HALVES, result_idx=places)
        low, high = split(ramp(6))
        assert torch.equal(low, ramp(3))
        assert torch.equal(high, ramp(3, 3))
        assert split.result_idx == (0, 2)
    swapped = function("split", HALVES, result_idx=(2, 0))
    high, low = swapped(ramp(6))
    assert torch.equal(low, ramp(3))
    assert torch.equal(high, ramp(3, 3))


def test_one_place_may_be_a_number(function):
    signature = Signature((VECTOR, ScalarParam("by", "int32")), (TensorParam("out", "int64", (8,)),))
    kinds = function("kinds", signature, result_idx=0)
    assert kinds(ramp(), 5)[2:4].tolist() == [INT64, 5]


@pytest.mark.parametrize("form", [lambda t: t, lambda t: [t], lambda t: (t,)])
@pytest.mark.parametrize("make", [torch.zeros, lambda n: np.zeros(n, np.float32)])
def test_destinations_are_written_and_returned(function, form, make):
    out = make(5)
    assert function("axpy", AXPY)(2, ramp(), ramp(), out=form(out)) is out
    assert out.tolist() == (3 * ramp()).tolist()


def test_destinations_may_be_of_several_libraries(function):
    low, high = torch.zeros(2), np.zeros(2, np.float32)
    given = function("split", HALVES, result_idx=(0, 2))(ramp(4), out=(low, high))
    assert given[0] is low
    assert given[1] is high
    assert (low.tolist(), high.tolist()) == ([0, 1], [2, 3])


@pytest.mark.parametrize(
    ("out", "argument", "kind"),
    [
        (torch.zeros(4), "out", errors.ArgumentValueError),
        (torch.zeros(5, 1), "out", errors.ArgumentValueError),
        (torch.zeros(5, dtype=torch.float64), "out", errors.ArgumentTypeError),
        (torch.zeros(5, device="meta"), "out", errors.ArgumentValueError),
        (torch.zeros(10)[::2], "out", errors.ArgumentValueError),
        (np.zeros(10, np.float32)[::2], "out", errors.ArgumentValueError),
        (np.zeros(5), "out", errors.ArgumentTypeError),
        (3.0, "out", errors.ArgumentTypeError),
        ((), "out", errors.ArgumentTypeError),
        ((torch.zeros(5), torch.zeros(5)), "out", errors.ArgumentTypeError),
    ],
)
def test_a_destination_that_does_not_fit_is_refused(function, out, argument, kind):
    with pytest.raises(kind) as caught:
        function("axpy", AXPY)(2.0, ramp(), ramp(), out=out)
    assert caught.value.argument == argument


def test_destinations_share_no_memory(function):
    split = function("split", HALVES, result_idx=(0, 2))
    memory = np.zeros(4, np.float32)
    split(ramp(4), out=(torch.from_numpy(memory)[:2], memory[2:]))
    with pytest.raises(errors.ArgumentValueError) as caught:
        split(ramp(4), out=(torch.from_numpy(memory)[:2], memory[1:3]))
    assert caught.value.argument == "high"


def test_of_destinations_that_begin_together_the_second_is_named(function):
    uneven = replace(HALVES, outputs=(TensorParam("low", "float32", (N - 1,)), HALVES.outputs[1]))
    memory = torch.zeros(4)
    with pytest.raises(errors.ArgumentValueError) as caught:
        function("split", uneven, result_idx=(0, 2))(ramp(4), out=(memory[:3], memory[:2]))
    assert (caught.value.argument, caught.value.got) == ("high", "memory that 'low' also lies in")


@pytest.mark.parametrize(
    ("dtype", "fill", "shape"),
    [
        ("float32", 1.5, (7,)),
        ("int64", -3, ()),
        ("uint8", 200, (3, 5)),
        ("bfloat16", 1.0, (70000,)),
        ("complex128", 1 + 2j, (3,)),
        ("float32", 0.0, (0, 4)),
    ],
)
def test_an_output_with_a_fill_is_filled_before_the_call(function, dtype, fill, shape):
    signature = Signature(outputs=(TensorParam("y", dtype, shape, fill=fill),))
    nothing = function("nothing", signature)
    kind = getattr(torch, dtype)
    expected = torch.full(shape, fill, dtype=kind)
    assert torch.equal(nothing(device="cpu"), expected)
    given = torch.zeros(shape, dtype=kind)
    assert nothing(out=given, device="cpu") is given
    assert torch.equal(given, expected)


def test_a_call_without_a_tensor_needs_a_device(function):
    nothing = function("nothing", Signature(outputs=(TensorParam("y", "int8", (3,)),)))
    assert nothing(device=torch.device("cpu")).shape == (3,)
    with pytest.raises(errors.DeviceRequirementError):
        nothing()
    assert function("nothing", Signature())() is None


# Arguments ------------------------------------------------------------------------------------------------------------


def test_arguments_are_checked_before_the_function_is_called(function):
    refuse = function("refuse", AXPY)  # it would raise by itself
    for args, argument, kind in (
        ((2.0, ramp()), "", errors.ArgumentTypeError),
        ((2.0, ramp(), ramp(), ramp()), "", errors.ArgumentTypeError),
        (("2", ramp(), ramp()), "a", errors.ArgumentTypeError),
        ((1e39, ramp(), ramp()), "a", errors.ArgumentValueError),
        ((2.0, [1.0], ramp()), "x", errors.ArgumentTypeError),
        ((2.0, None, ramp()), "x", errors.ArgumentTypeError),
        ((2.0, ramp().double(), ramp()), "x", errors.ArgumentTypeError),
        ((2.0, ramp(6).view(2, 3), ramp()), "x", errors.ArgumentValueError),
        ((2.0, ramp(), ramp(4)), "y", errors.ArgumentValueError),
        ((2.0, ramp(10)[::2], ramp()), "x", errors.ArgumentValueError),
        ((2.0, ramp(), torch.zeros(5, device="meta")), "y", errors.ArgumentValueError),
        ((2.0, ramp().to_sparse(), ramp()), "x", errors.ArgumentTypeError),
        ((2.0, ramp(), torch._neg_view(ramp())), "y", errors.ArgumentTypeError),
    ):
        for _ in range(3):
            with pytest.raises(kind) as caught:
                refuse(*args)
            assert caught.value.argument == argument
            assert not hasattr(caught.value, "__notes__")


def test_what_was_recalled_does_not_hide_a_wrong_tensor(function):
    axpy = function("axpy", AXPY)
    good = ramp(), ramp()
    for n in (0, 0, 0, 5, 5, 5, 5):
        axpy(1.0, ramp(n), ramp(n))
    for named in ({"stream": 5}, {"device": "cuda:0"}):
        with pytest.raises(errors.ArgumentValueError) as caught:
            axpy(1.0, *good, **named)
        assert caught.value.argument in named
    shrunk = ramp()
    shrunk.untyped_storage().resize_(0)
    wrong = (ramp(4), ramp().double(), ramp(10)[::2], torch._neg_view(ramp()), None, 3, shrunk, np.ones(5))
    for tensor in wrong:
        with pytest.raises(errors.ArgumentError) as caught:
            axpy(1.0, ramp(), tensor)
        assert caught.value.argument == "y"
        assert torch.equal(axpy(1.0, *good), 2 * ramp())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([[1.0], [2.0]])
    with pytest.raises(errors.ArgumentError):
        axpy(1.0, nested, ramp())


def test_storage_and_alignment_are_checked(function):
    wide = Signature((TensorParam("x", "float32", (N,), alignment=64), VECTOR_Y), ())
    nothing = function("nothing", wide)
    base = torch.zeros(64)
    start = (-base.data_ptr() // 4) % 16
    nothing(base[start:][:4], ramp(4))
    with pytest.raises(errors.ArgumentValueError, match="64 bytes"):
        nothing(base[start + 1 :][:4], ramp(4))
    array = base.numpy()
    nothing(array[start:][:4], ramp(4))
    with pytest.raises(errors.ArgumentValueError, match="64 bytes"):
        nothing(array[start + 1 :][:4], ramp(4))
    short = torch.zeros(4)
    short.untyped_storage().resize_(8)
    with pytest.raises(errors.ArgumentValueError, match="storage"):
        nothing(base[start:][:4], short)


VECTOR_Y = TensorParam("y", "float32", (N,))


def test_strides_are_symbols_too(function):
    (s,) = symbols("s")
    signature = Signature(
        (TensorParam("x", "float32", (N, 3), strides=(s, 1)),), (TensorParam("out", "int64", (5,)),)
    )
    dims = function("dims", signature)
    assert dims.symbol_map == {"n": (0, 0, 0), "s": (1, 0, 0)}
    assert dims(torch.zeros(4, 7)[:, :3]).tolist() == [2, 4, 3, 7, 1]
    assert dims(np.zeros((4, 7), np.float32)[:, :3]).tolist() == [2, 4, 3, 7, 1]
    with pytest.raises(errors.ArgumentValueError, match="stride 2"):
        dims(torch.zeros(4, 7)[:, ::2][:, :3])


def test_an_author_s_checks_and_expressions_hold(function):
    split = function("split", HALVES, result_idx=(0, 2))
    with pytest.raises(errors.ArgumentValueError, match="at most 100 elements"):
        split(ramp(102))
    overflow = Signature((VECTOR, ScalarParam("k", "int64", symbols("k")[0])), (), ())
    k = symbols("k")[0]
    overflow = Signature(overflow.params, (TensorParam("y", "int8", (ceildiv(k * k, 8),)),))
    assert function("nothing", overflow)(ramp(), 4).shape == (2,)
    with pytest.raises(errors.ExprError, match="64 signed bits"):
        function("nothing", overflow)(ramp(), 1 << 40)


def test_every_sort_of_argument_travels_as_it_should(function):
    struct = StructParam("s", 4, 4)
    signature = Signature(
        (
            ScalarParam("b", "bool"),
            ScalarParam("i", "int8"),
            ScalarParam("u", "uint64"),
            ScalarParam("f", "float16"),
            ScalarParam("e", "float8_e4m3fn"),
            PointerParam("p"),
            PointerParam("q", nullable=True),
            TensorParam("t", "float32", (3,), nullable=True),
            ScalarParam("c", "complex64"),
            struct,
        ),
        (TensorParam("out", "int64", (20,)),),
    )
    kinds = function("kinds", signature, result_idx=0)
    args = (True, np.int8(-3), 2**64 - 2, 0.1, 1.7, 1 << 63, None, None, 1 + 2j, ctypes.c_int32(7))
    out = kinds(*args, device="cpu")
    pairs = list(zip(out[::2].tolist(), out[1::2].tolist(), strict=True))
    double = [ctypes.c_double.from_buffer(ctypes.c_int64(bits)).value for _, bits in pairs]
    assert pairs[0] == (BOOL, 1)
    assert pairs[1] == (INT64, -3)
    assert pairs[2] == (INT64, -2)
    assert (pairs[3][0], double[3]) == (FLOAT, 0.1)  # the function rounds it, once
    assert (pairs[4][0], double[4]) == (FLOAT, 1.7)
    assert pairs[5] == (POINTER, -(1 << 63))
    assert [kind for kind, _ in pairs[6:8]] == [NONE, NONE]
    assert pairs[8][0] == BYTES
    assert pairs[9] == (SMALL_BYTES, 7)


@pytest.mark.parametrize("bad", [-1, 2**64, 1.0, True, None, torch.tensor(3)])
def test_numbers_out_of_range_are_refused(function, bad):
    nothing = function("nothing", Signature((ScalarParam("u", "uint64"),)))
    with pytest.raises(errors.ArgumentError) as caught:
        nothing(bad)
    assert caught.value.argument == "u"


def test_a_tensor_that_may_be_absent_binds_nothing(function):
    signature = Signature(
        (TensorParam("x", "float32", (N,), nullable=True), VECTOR_Y), (TensorParam("z", "int8", (N,)),)
    )
    nothing = function("nothing", signature)
    assert nothing(None, ramp(3)).shape == (3,)
    assert nothing(ramp(3), ramp(3)).shape == (3,)
    with pytest.raises(errors.ArgumentValueError):
        nothing(ramp(4), ramp(3))
    alone = function("nothing", Signature(signature.params[:1], signature.outputs))
    with pytest.raises(errors.UnboundSymbolError) as caught:
        alone(None, device="cpu")
    assert caught.value.symbol == "n"
