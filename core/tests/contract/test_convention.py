"""How people write a call: positions, names, and the words beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.contract.convention import Convention
from trunnion.errors import ArgumentTypeError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol

if TYPE_CHECKING:
    import inspect

    from trunnion.model.params import Signature


def every_kind() -> Signature:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n")
    p.input("a", "float32", (n, 4))
    p.input("b", "int8", (n + 1,), nullable=True)
    p.scalar("k", "uint64")
    p.pointer("where", nullable=True)
    p.struct("packed", 24, 8)
    y = p.output("y", "float16", (n,))
    p.launch("k", (y,), 1, 32)
    return p.build().signature


def test_the_signature_says_what_each_argument_must_be() -> None:
    signature = every_kind()
    assert str(Convention.of(signature).signature(signature)) == (
        "(a: 'float32[n, 4]', b: 'int8[(n + 1)] | None', k: 'uint64', where: 'address | None', packed: '24 bytes', *, "
        "out=None, stream=None, device=None) -> 'float16[n]'"
    )


@pytest.mark.parametrize(
    ("names", "keywords"),
    [
        (["a", "b"], ("a", "b")),
        (["a", "out", "b"], (None, None, "b")),
        (["stream", "device", "out"], (None, None, None)),
        (["a", "two words", "b"], (None, None, "b")),
        (["lambda", "a"], (None, "a")),
        (["a", "\ufb01", "b"], (None, None, "b")),  # which Python's parser makes "fi"
        (["\U0001d628\U0001d636\U0001d635"], (None,)),
        (["__debug__", "a"], (None, "a")),
        (["self", "args", "named", "call"], ("self", "args", "named", "call")),
        ([], ()),
    ],
)
def test_what_cannot_be_named_goes_by_position_and_so_does_what_stands_before(
    names: list[str], keywords: tuple[str | None, ...]
) -> None:
    assert Convention(names, 1).keywords == keywords


def signature_of(names: list[str]) -> inspect.Signature:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    scalars = [p.scalar(name, "int32") for name in names]
    p.launch("k", tuple(scalars), 1, 32)
    signature = p.build().signature
    return Convention.of(signature).signature(signature)


def test_python_s_own_binding_agrees() -> None:
    names = ["a", "out", "two words", "b", "c"]
    told, convention = signature_of(names), Convention(names, 0)
    for given, named in (((1, 2, 3, 4, 5), {}), ((1, 2, 3), {"c": 5, "b": 4}), ((1, 2, 3, 4), {"c": 5})):
        bound = told.bind(*given, **named)
        assert tuple(bound.arguments.values()) == convention.arguments(given, named) == (1, 2, 3, 4, 5)
    for given, named in (((1, 2), {"b": 4, "c": 5}), ((1, 2, 3, 4), {"b": 4, "c": 5}), ((1, 2, 3), {"c": 5})):
        with pytest.raises(TypeError):
            told.bind(*given, **named)
        with pytest.raises(ArgumentTypeError):
            convention.arguments(given, named)


@pytest.mark.parametrize(
    ("given", "named", "argument", "got", "expected"),
    [
        ((1,), {"nobody": 2}, "nobody", "it by name", "one of 'b', 'c', 'out', 'stream', 'device'"),
        (
            (1,),
            {"strem": 2},
            "strem",
            "it by name",
            "one of 'b', 'c', 'out', 'stream', 'device'; did you mean 'stream'?",
        ),
        ((1,), {"out of": 2}, "out of", "it by name", "it by position"),
        ((1, 2), {"b": 2, "c": 3}, "b", "it twice, by position and by name", "it once"),
        ((1,), {"c": 3}, "b", "nothing", "3 arguments, by position or name"),
    ],
)
def test_a_wrong_name_is_told(
    given: tuple[Any, ...], named: dict[str, Any], argument: str, got: str, expected: str
) -> None:
    with pytest.raises(ArgumentTypeError) as refused:
        Convention(["out of", "b", "c"], 0).arguments(given, named)
    error = refused.value
    assert (error.argument, error.got) == (argument, got)
    assert error.expected.startswith(expected)


def test_words_become_plain() -> None:
    convention = Convention(["a"], 1)
    assert convention.words(None, None, None) == (None, None, None)
    destination = object()
    assert convention.words(destination, 3, "cuda:1") == ((destination,), 3, 1)
    assert convention.words([destination], None, 2) == ((destination,), None, 2)
    assert Convention(["a"], 1, "cpu").words(None, None, "cpu") == (None, None, 0)
    with pytest.raises(ArgumentTypeError, match="a sequence of 2 tensors"):
        Convention(["a"], 2).words(destination, None, None)
    with pytest.raises(ArgumentTypeError, match="a sequence of 0 tensors"):
        Convention(["a"], 0).words(destination, None, None)


def test_what_is_made_over_a_call_takes_what_people_write() -> None:
    def call(args: Any, **words: Any) -> Any:
        return args, words

    entry = Convention(["a", "call"], 1).over(call)
    nothing = {"out": None, "stream": None, "device": None}
    assert entry(1, 2) == ((1, 2), nothing)
    assert entry(1, call=2, stream=7) == ((1, 2), nothing | {"stream": 7})
    assert entry(1) == ((1,), nothing)  # how many there must be says the call


@pytest.mark.parametrize(
    "names", [["two words", "argument0"], ["argument1", "two words"], ["argument1_", "out", "argument1"]]
)
def test_a_stand_in_is_no_argument_s_name(names: list[str]) -> None:
    told = list(signature_of(names).parameters)
    assert len(set(told)) == len(told) == len(names) + 3
