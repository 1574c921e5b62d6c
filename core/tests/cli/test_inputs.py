"""Random arguments fit the signature that they are made for."""

from __future__ import annotations

import pytest
import torch

from trunnion.cli.inputs import parse_sizes, random_inputs, symbol_values
from trunnion.errors import ArgumentValueError
from trunnion.model.dtypes import DTYPES
from trunnion.model.expr import Symbol, ceildiv, maximum, select, symbols
from trunnion.model.params import ScalarParam, Signature, TensorParam

M, N = symbols("m n")


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
    )
    assert random_inputs(Signature(params), {N: 7}, "cpu") == (7, 1.0, True, 1)


@pytest.mark.parametrize("extent", [M - 5, M // (M - 3)])
def test_sizes_that_make_no_shape_are_refused(extent: object) -> None:
    signature = Signature((TensorParam("a", "float32", (M,)), TensorParam("b", "float32", (extent,))))
    with pytest.raises(ArgumentValueError, match="--size"):
        random_inputs(signature, {M: 3}, "cpu")
