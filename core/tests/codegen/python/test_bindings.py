"""Tensors that a call may leave out: whose symbols count, and what may not read them."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from trunnion.errors import ArgumentTypeError, ArgumentValueError, DeviceRequirementError, UnboundSymbolError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, symbols
from trunnion.model.program import DeviceCode

CODE = DeviceCode("cuda", "//")


def bias() -> Any:
    """Two tensors that may be left out, and whose rows are as many."""
    p = ProgramBuilder("p", CODE)
    n, s = symbols("n s")
    a = p.input("a", "float32", (n, 4), strides=(s, 1), nullable=True)
    b = p.input("b", "float32", (n, 4), strides=(s, 1), nullable=True)
    p.launch("k", (a, b, n, s), n + 1, 32)
    return p.build()


def received(r: Any) -> list[int]:
    return [int(struct.unpack("<Q", raw)[0]) for raw in r.facade.launched[-1].parameters]


def test_an_absent_tensor_is_a_null_pointer_and_binds_nothing(rig: Any, tensor: Any) -> None:
    r = rig(bias())
    a, b = tensor("float32", 3, 4, strides=(8, 1)), tensor("float32", 3, 4, strides=(8, 1))
    for given in ((a, b), (a, None), (None, b)):
        r.program.entry(*given)
        addresses = [0 if one is None else one.address for one in given]
        assert received(r) == [*addresses, 3, 8]
        assert r.facade.launched[-1].shape[0] == 4


def test_of_strides_the_first_live_one_counts_else_the_first_that_is_there(rig: Any, tensor: Any) -> None:
    r = rig(bias())
    row, rows = tensor("float32", 1, 4, strides=(99, 1)), tensor("float32", 1, 4, strides=(77, 1))
    r.program.entry(row, rows)
    assert received(r)[3] == 99
    r.program.entry(None, rows)
    assert received(r)[3] == 77


def test_what_is_there_is_still_checked(rig: Any, tensor: Any) -> None:
    r = rig(bias())
    good = tensor("float32", 3, 4, strides=(8, 1))
    for bad, error in (
        (tensor("float32", 2, 4, strides=(8, 1)), ArgumentValueError),
        (tensor("float32", 3, 4, strides=(9, 1)), ArgumentValueError),
        (tensor("float32", 3, 4, strides=(8, 1), address=2), ArgumentValueError),
        (tensor("float32", 3, 4, strides=(8, 1), address=0), ArgumentTypeError),
        (tensor("float16", 3, 4, strides=(8, 1)), ArgumentTypeError),
        (tensor("float32", 3, 4, strides=(8, 1), ordinal=1), ArgumentValueError),
        (3, ArgumentTypeError),
    ):
        with pytest.raises(error) as caught:
            r.program.entry(good, bad)
        assert caught.value.argument == "b"
    assert r.facade.launched == []


def test_a_symbol_without_any_tensor_lists_where_it_stands(rig: Any) -> None:
    r = rig(bias())
    with pytest.raises(DeviceRequirementError):
        r.program.entry(None, None)
    with pytest.raises(UnboundSymbolError) as caught:
        r.program.call((None, None), device=0)
    assert caught.value.symbol == "n"
    assert [text.partition(",")[0] for text in caught.value.candidates] == [
        "dimension 0 of 'a'",
        "dimension 0 of 'b'",
    ]


def test_a_scalar_binds_what_an_absent_tensor_would(rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,), nullable=True)
    p.scalar("n", "int32", symbol=n)
    p.launch("k", (x, n), n, 32)
    r = rig(p.build())
    r.program.call((None, 7), device=1)
    assert received(r) == [0, 7]
    r.program.entry(tensor("float32", 5), 5)
    with pytest.raises(ArgumentValueError, match="'n'"):
        r.program.entry(tensor("float32", 5), 7)


@pytest.mark.parametrize("reader", ["map", "window"])
def test_a_map_or_a_window_over_an_absent_tensor_is_refused_unless_it_is_skipped(
    rig: Any, tensor: Any, reader: str
) -> None:
    p = ProgramBuilder("p", CODE)
    n, m = symbols("n m")
    x = p.input("x", "float32", (n, 64), nullable=True)
    p.scalar("n", "int32", symbol=n)
    p.scalar("m", "int32", symbol=m)
    if reader == "map":
        p.launch("k", (x.tiled((8, 32)),), m, 32)
    else:
        p.launch("k", (x,), m, 32, window=x.window())
    r = rig(p.build())
    r.program.call((None, 8, 0), device=0)
    assert r.facade.launched == []
    with pytest.raises(ArgumentTypeError) as caught:
        r.program.call((None, 8, 1), device=0)
    assert caught.value.argument == "x"
    r.program.entry(tensor("float32", 8, 64), 8, 1)
    assert len(r.facade.launched) == 1


def test_a_window_over_an_absent_tensor_is_refused_as_that_where_the_tensor_would_be_empty_too(
    rig: Any,
) -> None:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,), nullable=True)
    p.scalar("n", "int32", symbol=n)
    p.launch("k", (x,), 1, 32, window=x.window(nbytes=4))
    r = rig(p.build())
    with pytest.raises(ArgumentTypeError) as caught:
        r.program.call((None, 0), device=0)
    assert caught.value.argument == "x"


def test_nothing_is_recalled_of_tensors_that_may_be_absent(rig: Any, tensor: Any) -> None:
    r = rig(bias())
    a = tensor("float32", 3, 4, strides=(8, 1))
    for _ in range(4):
        r.program.entry(a, a)
        r.program.entry(None, a)
    assert r.runtime.guarded_with == []
    assert len(r.facade.launched) == 8


def test_a_value_that_is_not_allowed_is_blamed_on_the_argument_that_gave_it(rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("p", CODE)
    n, s = Symbol("n", max=8), Symbol("s", multiple_of=4)
    a = p.input("a", "float32", (n, 4), strides=(s, 1), nullable=True)
    b = p.input("b", "float32", (n, 4), strides=(s, 1), nullable=True)
    p.launch("k", (a, b, n, s), n, 32)
    r = rig(p.build())
    wide, odd = tensor("float32", 9, 4, strides=(8, 1)), tensor("float32", 2, 4, strides=(7, 1))
    for args, name, place in (
        ((wide, None), "a", "extent along dimension 0"),
        ((None, wide), "b", "extent along dimension 0"),
        ((odd, None), "a", "stride along dimension 0"),
        ((None, odd), "b", "stride along dimension 0"),
    ):
        with pytest.raises(ArgumentValueError, match=place) as caught:
            r.program.entry(*args)
        assert caught.value.argument == name


@pytest.mark.parametrize(
    ("bounds", "got", "expected"),
    [
        ({"min": 8, "multiple_of": 8}, 4, "at least 8, a multiple of 8"),
        ({"max": 7}, 8, "0 to 7"),
        ({"min": -(2**63), "max": 7}, 8, "at most 7"),
        ({"min": 2, "max": 7}, 1, "2 to 7"),
    ],
)
def test_a_bound_that_nobody_set_is_not_mentioned(rig: Any, bounds: Any, got: int, expected: str) -> None:
    p = ProgramBuilder("p", CODE)
    n = Symbol("n", **bounds)
    p.launch("k", (p.scalar("s", "int32", n),), 1, 32)
    with pytest.raises(ArgumentValueError) as caught:
        rig(p.build()).program.call((got,), device=0)
    assert caught.value.expected == expected


def test_a_scalar_in_the_place_of_an_absent_tensor_is_held_to_the_symbols_bounds(rig: Any) -> None:
    p = ProgramBuilder("p", CODE)
    n = Symbol("n")
    t = p.input("t", "float32", (n,), nullable=True)
    p.scalar("s", "int32", symbol=n)
    p.launch("k", (t, 100 // (n + 1)), 1, 1)
    r = rig(p.build())
    r.program.call((None, 4), device=0)
    assert received(r) == [0, 20]
    with pytest.raises(ArgumentValueError) as caught:
        r.program.call((None, -1), device=0)
    assert (caught.value.argument, caught.value.expected) == ("s", "at least 0")
