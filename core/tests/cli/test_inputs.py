"""Random arguments fit the signature that they are made for."""

from __future__ import annotations

import operator

import numpy as np
import pytest
import torch

from trunnion.cli.inputs import Making, parse_sizes, symbol_values
from trunnion.cli.inputs import random_inputs as made_inputs
from trunnion.errors import ArgumentValueError
from trunnion.model.dtypes import DTYPES
from trunnion.model.expr import Symbol, ceildiv, maximum, select, symbols
from trunnion.model.params import PointerParam, ScalarParam, Signature, StructParam, TensorParam

M, N = symbols("m n")


def random_inputs(signature: Signature, values: dict[Symbol, int], device: str, **fields: object) -> tuple:
    return made_inputs(signature, Making(values=values, device=device, **fields))


def test_sizes_are_read() -> None:
    assert parse_sizes(["m=128", "a=b=0"]) == {"m": 128, "a=b": 0}


@pytest.mark.parametrize("text", ["m", "m=", "=4", "m=1.5", "", "m:4"])
def test_malformed_sizes_are_refused(text: str) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        parse_sizes([text])
    assert caught.value.argument == "--size"


def test_symbols_get_what_is_given_and_else_something_within_bounds() -> None:
    k = Symbol("k", min=300, max=320, multiple_of=64)
    low = Symbol("low", max=7)
    signature = Signature((TensorParam("a", "float32", (M, k, low)),))
    assert symbol_values(signature, {"m": 5}) == {M: 5, k: 320, low: 7}


def test_an_unknown_symbol_is_refused_with_those_there_are() -> None:
    with pytest.raises(ArgumentValueError) as caught:
        symbol_values(Signature((TensorParam("a", "float32", (M,)),)), {"x": 1})
    assert caught.value.got == "'x'"
    assert "'m'" in caught.value.expected


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")  # torch's own word on one row
@pytest.mark.parametrize("name", sorted(DTYPES))
def test_every_dtype_gets_a_tensor(name: str) -> None:
    signature = Signature((TensorParam("a", name, (M, 3)),))
    (a,) = random_inputs(signature, {M: 5}, "cpu")
    assert a.dtype == getattr(torch, name)
    assert a.shape == (5, 3)
    (again,) = random_inputs(signature, {M: 5}, "cpu")
    assert torch.equal(a.view(torch.uint8), again.view(torch.uint8))


def test_shapes_and_strides_are_computed() -> None:
    extents = (ceildiv(M, 4), maximum(N, 2), select(M - N, 3, 4))
    contiguous = TensorParam("a", "float32", extents)
    strided = TensorParam("b", "int64", (M, N), strides=(1, M.cast("int32") + 3))
    a, b = random_inputs(Signature((contiguous, strided)), {M: 9, N: 1}, "cpu")
    assert a.shape == (3, 2, 3)
    assert a.is_contiguous()
    assert (b.shape, b.stride()) == ((9, 1), (1, 12))


def test_empty_tensors_are_made() -> None:
    strided = TensorParam("a", "float32", (M, N), strides=(N, 1))
    (a,) = random_inputs(Signature((strided,)), {M: 0, N: 4}, "cpu")
    assert a.shape == (0, 4)


def test_scalars_follow_their_symbol_or_their_type() -> None:
    params = (
        ScalarParam("n", "int32", N),
        ScalarParam("alpha", "float16"),
        ScalarParam("flag", "bool"),
        ScalarParam("count", "uint8"),
        ScalarParam("z", "complex64"),
        StructParam("s", 12, 4),
    )
    assert random_inputs(Signature(params), {N: 7}, "cpu") == (7, 1.0, True, 1, 1 + 0j, bytes(12))


def test_a_boolean_under_a_symbol_is_no_integer() -> None:
    flag = Symbol("flag", max=1)
    given = random_inputs(Signature((ScalarParam("f", DTYPES["bool"], flag),)), {flag: 1}, "cpu")
    assert given == (True,)
    assert type(given[0]) is bool


def test_equal_seeds_make_equal_inputs() -> None:
    signature = Signature((TensorParam("a", "float32", (M,)),))
    first, again, other = (random_inputs(signature, {M: 64}, "cpu", seed=seed)[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_what_is_given_is_not_made() -> None:
    params = (
        TensorParam("a", "float32", (M,)),
        TensorParam("b", "bfloat16", (M,), nullable=True),
        TensorParam("c", "bfloat16", (M,)),
        TensorParam("d", "float32", (M, N), strides=(1, M)),
        ScalarParam("k", "float32"),
        PointerParam("p"),
        StructParam("s", 4, 4),
    )
    given = {
        "a": np.arange(6, dtype=np.float32)[::2],
        "b": None,
        "c": np.array([0x3F80, 0x4000, 0xC000], dtype=np.uint16),
        "d": np.arange(6, dtype=np.float32).reshape(3, 2),
        "k": 2.5,
        "p": 0x1000,
        "s": b"1234",
    }
    a, b, c, d, *rest = random_inputs(Signature(params), {M: 3, N: 2}, "cpu", given=given)
    assert a.tolist() == [0, 2, 4]
    assert a.is_contiguous()
    assert b is None
    assert (c.dtype, c.tolist()) == (torch.bfloat16, [1, 2, -2])
    assert (d.stride(), d.tolist()) == ((1, 3), [[0, 1], [2, 3], [4, 5]])
    assert rest == [2.5, 0x1000, b"1234"]


def test_what_does_not_fit_is_passed_on_for_the_call_to_refuse() -> None:
    params = (TensorParam("a", "float32", (M,)), TensorParam("b", "float32", (M, N), strides=(1, M)))
    given = {"a": np.zeros((2, 2)), "b": np.zeros((7, 7), dtype=np.float32)}
    a, b = random_inputs(Signature(params), {M: 3, N: 2}, "cpu", given=given)
    assert (a.dtype, a.shape) == (torch.float64, (2, 2))
    assert b.shape == (7, 7)


def test_an_array_cannot_fill_elements_that_overlap() -> None:
    signature = Signature((TensorParam("a", "float32", (M, N), strides=(0, 1)),))
    with pytest.raises(ArgumentValueError, match="overlap"):
        random_inputs(signature, {M: 3, N: 2}, "cpu", given={"a": np.zeros((3, 2), dtype=np.float32)})


def test_an_address_is_made_up_on_a_simulated_device_alone() -> None:
    signature = Signature((PointerParam("p", alignment=4096), PointerParam("q", nullable=True)))
    p, q = random_inputs(signature, {}, "cpu", simulated=True)
    assert operator.index(p) % 4096 == 0
    assert operator.index(p) != operator.index(q) != 0
    assert random_inputs(Signature(signature.params[1:]), {}, "cpu") == (None,)
    with pytest.raises(ArgumentValueError, match="cannot be made up"):
        random_inputs(signature, {}, "cpu")


@pytest.mark.parametrize("extent", [M - 5, M // (M - 3)])
def test_sizes_that_make_no_shape_are_refused(extent: object) -> None:
    signature = Signature((TensorParam("a", "float32", (M,)), TensorParam("b", "float32", (extent,))))
    with pytest.raises(ArgumentValueError, match="--size"):
        random_inputs(signature, {M: 3}, "cpu")


@pytest.mark.parametrize("extent", [1 << M, M >> (M - 300)])
def test_sizes_that_shift_too_far_are_refused(extent: object) -> None:
    signature = Signature((TensorParam("a", "float32", (M,)), TensorParam("b", "float32", (extent,))))
    with pytest.raises(ArgumentValueError, match=r"a shape shifts by .* bits, expected .* 0 to 63") as caught:
        random_inputs(signature, symbol_values(signature, {}), "cpu")
    assert caught.value.argument == "--size"


S, T = symbols("s t")


@pytest.mark.parametrize(
    ("strides", "expected"),
    [((S, T), (5, 1)), ((S, 1), (5, 1)), ((1, S), (1, 3)), ((100, S), (100, 1)), ((S, 2), (9, 2))],
)
def test_strides_that_nobody_chose_are_the_least_without_overlap(strides: tuple, expected: tuple) -> None:
    signature = Signature((TensorParam("a", "float32", (M, N), strides=strides),))
    values = symbol_values(signature, {"m": 3, "n": 5})
    (a,) = random_inputs(signature, values, "cpu", asked=("m", "n"))
    assert a.stride() == expected


def test_strides_that_nobody_chose_stay_within_bounds() -> None:
    pitch = Symbol("pitch", min=2, multiple_of=8)
    tensors = (
        TensorParam("a", "float32", (M, N), strides=(pitch, 1)),
        TensorParam("b", "float32", (M, M), strides=(pitch, 1)),
    )
    assert symbol_values(Signature(tensors), {"m": 3, "n": 5})[pitch] == 8
    assert symbol_values(Signature(tensors), {"m": 12, "n": 5})[pitch] == 16


def test_sizes_that_nobody_chose_make_no_overlap() -> None:
    low = Symbol("low", max=4)
    signature = Signature((TensorParam("a", "float32", (M, N), strides=(low, 1)),))
    sizes = {"m": 3, "n": 5}
    with pytest.raises(ArgumentValueError, match="overlap") as caught:
        random_inputs(signature, symbol_values(signature, sizes), "cpu", asked=sizes)
    assert "'low'" in caught.value.expected
    sizes |= {"low": 2}
    (a,) = random_inputs(signature, symbol_values(signature, sizes), "cpu", asked=sizes)
    assert a.stride() == (2, 1), "asked for"


def test_an_array_cannot_fill_elements_that_overlap_in_part() -> None:
    signature = Signature((TensorParam("a", "float32", (M, N), strides=(S, 1)),))
    given = {"a": np.arange(6, dtype=np.float32).reshape(3, 2)}
    with pytest.raises(ArgumentValueError, match="overlap"):
        random_inputs(signature, {M: 3, N: 2, S: 1}, "cpu", given=given)
    (a,) = random_inputs(signature, {M: 3, N: 2, S: 7}, "cpu", given=given)
    assert (a.stride(), a.tolist()) == ((7, 1), given["a"].tolist())


def test_a_symbol_without_a_greatest_value_is_told_the_least() -> None:
    signature = Signature((TensorParam("a", "float32", (Symbol("n", min=8, multiple_of=8),)),))
    with pytest.raises(ArgumentValueError, match="at least 8, a multiple of 8") as caught:
        symbol_values(signature, {"n": 4})
    assert "9223372036854775807" not in str(caught.value)


def test_a_size_that_is_given_twice_is_refused() -> None:
    with pytest.raises(ArgumentValueError, match="twice"):
        parse_sizes(["n=3", "n=5"])
