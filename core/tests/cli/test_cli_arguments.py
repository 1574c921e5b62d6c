"""Arguments that are named on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from trunnion.cli.cli_arguments import given_arguments, given_options, given_sizes
from trunnion.errors import ArgumentValueError, ProgramError
from trunnion.model.expr import Symbol, symbols
from trunnion.model.params import PointerParam, ScalarParam, Signature, StructParam, TensorParam

if TYPE_CHECKING:
    from pathlib import Path

M, N = symbols("m n")
EVEN = Symbol("even", max=8, multiple_of=2)
SIGNATURE = Signature(
    (
        TensorParam("x", "float32", (M, N)),
        TensorParam("y", "float32", (N, EVEN), nullable=True),
        ScalarParam("count", "int32", M),
        ScalarParam("alpha", "float32"),
        ScalarParam("flag", "bool"),
        ScalarParam("z", "complex64"),
        PointerParam("p", nullable=True),
        PointerParam("q"),
        StructParam("s", 4, 4),
        ScalarParam("a=b", "int64"),
    )
)


def given(*texts: str, archive: str = "") -> dict[str, Any]:
    return given_arguments(texts, archive, SIGNATURE)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("y=none", "y", None),
        ("count=-7", "count", -7),
        ("count=0x10", "count", 16),
        ("alpha=1e-3", "alpha", 1e-3),
        ("alpha=-inf", "alpha", float("-inf")),
        ("flag=true", "flag", True),
        ("flag=0", "flag", False),
        ("z=1+2j", "z", 1 + 2j),
        ("p=none", "p", None),
        ("p=0", "p", 0),
        ("q=0x7F0000000000", "q", 0x7F0000000000),
        ("s=hex:00 01 02 ff", "s", b"\x00\x01\x02\xff"),
        ("s=hex:", "s", b""),
        ("a=b=5", "a=b", 5),
    ],
)
def test_values_are_read_as_their_parameter_says(text: str, name: str, value: object) -> None:
    found = given(text)
    assert found == {name: value}
    assert type(found[name]) is type(value)


@pytest.mark.parametrize(
    ("texts", "argument"),
    [
        (["nonsense"], "--arg"),
        (["nonsense=1"], "--arg"),
        (["=1"], "--arg"),
        ([""], "--arg"),
        (["alpha=1", "alpha=2"], "--arg"),
        (["x=none"], "x"),
        (["q=none"], "q"),
        (["q=1.5"], "q"),
        (["count=1.5"], "count"),
        (["count=" + "9" * 5000], "count"),
        (["count=1_000"], "count"),
        (["alpha=fast"], "alpha"),
        (["flag=2"], "flag"),
        (["z=i"], "z"),
        (["s=00"], "s"),
        (["s=hex:0"], "s"),
        (["\x1b[31m=1"], "--arg"),
    ],
)
def test_what_cannot_be_read_names_the_argument(texts: list[str], argument: str) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        given(*texts)
    assert caught.value.argument == argument
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_tensor_comes_from_its_file(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", array)
    assert np.array_equal(given(f"x={tmp_path / 'x.npy'}")["x"], array)
    with pytest.raises(ProgramError, match="cannot read"):
        given("x=nowhere.npy")


def test_an_archive_holds_tensors_and_numbers_by_name(tmp_path: Path) -> None:
    path = tmp_path / "all.npz"
    np.savez(path, x=np.zeros((2, 3), dtype=np.float32), alpha=np.float64(0.5), count=np.array([3]))
    found = given("flag=1", archive=str(path))
    assert found["x"].shape == (2, 3)
    assert (found["alpha"], found["count"], found["flag"]) == (0.5, 3, True)


@pytest.mark.parametrize("arrays", [{"nonsense": 1}, {"q": 1}, {"s": 1}, {"alpha": [1, 2]}])
def test_an_archive_holds_nothing_else(tmp_path: Path, arrays: dict[str, object]) -> None:
    np.savez(tmp_path / "all.npz", **{name: np.array(value) for name, value in arrays.items()})
    with pytest.raises(ArgumentValueError):
        given(archive=str(tmp_path / "all.npz"))


def test_given_arguments_bind_symbols_as_a_call_would() -> None:
    x, y = np.zeros((5, 7)), np.zeros((9, 4))
    assert given_sizes(SIGNATURE, {"x": x, "y": y, "count": 6}) == {"m": 5, "n": 7, "even": 4}
    assert given_sizes(SIGNATURE, {"y": None, "count": 6}) == {"m": 6}
    assert given_sizes(SIGNATURE, {"y": np.zeros((9, 3))}) == {"n": 9}, "odd: the call says so"
    assert given_sizes(SIGNATURE, {"x": np.zeros(5)}) == {}


S, T = symbols("s t")
STRIDED = Signature(
    (
        ScalarParam("pitch", "int64", S),
        TensorParam("x", "float32", (M, N), strides=(S, T)),
        TensorParam("y", "float32", (N, M), strides=(T, S), nullable=True),
    )
)


def test_given_arrays_bind_symbols_among_strides() -> None:
    x = np.zeros((5, 7), dtype=np.float32)
    assert given_sizes(STRIDED, {"x": x}) == {"m": 5, "n": 7, "s": 7, "t": 1}
    assert given_sizes(STRIDED, {"x": np.asfortranarray(x)}) == {"m": 5, "n": 7, "s": 1, "t": 5}
    assert given_sizes(STRIDED, {"x": x, "pitch": 9})["s"] == 7, "strides before scalars, as in a call"


def test_a_stride_that_nothing_is_reached_by_binds_last() -> None:
    x, y = np.zeros((1, 7), dtype=np.float32), np.zeros((7, 2), dtype=np.float32)
    assert given_sizes(STRIDED, {"x": x, "y": y}) == {"m": 1, "n": 7, "t": 1, "s": 1}
    assert given_sizes(STRIDED, {"x": x, "pitch": 9})["s"] == 9
    assert given_sizes(STRIDED, {"x": x})["s"] == 7


def test_the_symbol_of_a_bool_is_a_number() -> None:
    """As in a call, and in the document: 1 and not true."""
    (size,) = given_sizes(Signature((ScalarParam("flag", "bool", S),)), {"flag": True}).values()
    assert (size, type(size)) == (1, int)


@pytest.mark.parametrize("text", ["alpha=1e400", "alpha=-1e999", "z=1e400", "z=1+1e400j"])
def test_a_finite_number_that_cannot_be_held_is_refused(text: str) -> None:
    with pytest.raises(ArgumentValueError, match="a number of type"):
        given(text)


def test_options_are_of_plugins_and_their_values_json_or_texts() -> None:
    texts = ("a.x=true", "a.y=32", "b.z=c++17", 'b.w=["A=1", "B"]', "b.v=", 'b.u="7"')
    assert given_options(texts) == {
        "a": {"x": True, "y": 32},
        "b": {"z": "c++17", "w": ["A=1", "B"], "v": "", "u": "7"},
    }
    assert given_options(()) == {}


@pytest.mark.parametrize("texts", [("x",), ("a.x",), ("a=1.5",), (".x=1",), ("a.=1",), ("a.x=1", "a.x=2")])
def test_an_option_of_another_form_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(ArgumentValueError, match="--option"):
        given_options(texts)
