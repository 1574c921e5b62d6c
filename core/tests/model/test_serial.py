from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunnion.errors import ExprError, ProgramError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Binary, Const, Expr, Op, Select, Symbol, folded
from trunnion.model.expr_tree import walk
from trunnion.model.float_expr import real
from trunnion.model.program import KernelProgram
from trunnion.model.serial import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator


def paths(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(tree, (dict, list)):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from paths(value, (*path, key))


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def changed(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    result = copy.deepcopy(tree)
    at(result, path[:-1])[path[-1]] = value
    return result


def load(tree: Any) -> KernelProgram:
    return KernelProgram.from_json(json.dumps(tree))


def test_the_round_trip_is_exact(program: KernelProgram) -> None:
    text = program.to_json()
    again = KernelProgram.from_json(text)
    assert again == program
    assert hash(again) == hash(program)
    assert again.to_json() == text
    assert again.plan().hash == program.plan().hash
    assert text.isascii()


def test_labels_and_the_order_of_everything_survive(program: KernelProgram) -> None:
    again = KernelProgram.from_json(program.to_json())
    assert [a.label for a in again.launches[0].args[:2]] == ["A", "B"]
    assert again.code == program.code


def made(kind: Any, *parts: Any) -> Expr:
    try:
        return kind(*parts)
    except ExprError:  # fails in every call
        return parts[-1]


N = Symbol("n", max=1 << 20)
DIRECT = st.recursive(
    st.just(N) | st.sampled_from((0, 1, 2, -1)).map(Const),
    lambda inner: (
        st.builds(made, st.just(Binary), st.sampled_from(Op), inner, inner)
        | st.builds(made, st.just(Select), inner, inner, inner)
    ),
    max_leaves=6,
)


@given(DIRECT)
def test_a_tool_s_own_expression_survives_or_is_refused(expr: Expr) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.launch("k", (p.input("x", "float32", (N,)), expr), 1, 1)
    if all(folded(node) is None for node in walk(expr)):
        program = p.build()
        again = KernelProgram.from_json(program.to_json())
        assert again == program
        assert again.plan().hash == program.plan().hash
    else:
        with pytest.raises(ProgramError, match="fold at once") as caught:
            p.build()
        assert caught.value.field == "launches[0].args[1]"


@pytest.mark.parametrize(
    "field", ["shape", "strides", "output", "workspace", "check", "grid", "map", "float"]
)
def test_an_expression_that_json_would_fold_is_refused_wherever_it_stands(field: str) -> None:
    def at(place: str) -> Expr:
        return Binary(Op.ADD, N, Const(0)) if place == field else N

    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (N, at("shape")), strides=(at("strides"), 1))
    w = p.workspace("w", "float32", (at("workspace"), 4))
    tiled = x.tiled((8, 8), shape=(at("map"), 64), strides=(64, 1))
    p.check(at("check"), "n")
    outputs = p.output("y", "float32", (at("output"),))
    p.launch("k", (outputs, w, tiled, real(at("float")) * 2.0), at("grid"), 1)
    with pytest.raises(ProgramError, match=r"got n \+ 0, expected n: .* fold at once"):
        p.build()


@given(st.text(min_size=1))
def test_any_name_survives(make_program: Any, name: str) -> None:
    program = make_program(name=name)
    assert KernelProgram.from_json(program.to_json()) == program


def test_a_pair_of_surrogates_survives(make_program: Any) -> None:
    program = make_program(name="\ud83d\ude00")
    assert KernelProgram.from_json(program.to_json()) == program


JUNK = (
    None,
    True,
    -1,
    10**30,
    1.5,
    "",
    "junk",
    "\ud800",
    "n +",
    [],
    [None],
    {},
    {"x": 1},
    "(" * 2000,
    "9" * 30,
)


def test_every_node_may_be_replaced_by_anything(tree: dict[str, Any]) -> None:
    """Only a `ProgramError`, or a program that reads back as itself."""
    refused = 0
    for path in paths(tree):
        for junk in JUNK:
            try:
                program = load(changed(tree, path, junk))
            except ProgramError as error:
                refused += 1
                assert str(error)  # noqa: PT017 - to be refused is one of two right ends
            else:
                assert KernelProgram.from_json(program.to_json()) == program, (path, junk)
    assert refused > 1000


@settings(max_examples=200)
@given(st.data())
def test_several_changes_at_once(tree: dict[str, Any], data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        every = list(paths(tree))
        value = data.draw(st.sampled_from([at(tree, path) for path in every]) | st.sampled_from(JUNK))
        tree = changed(tree, data.draw(st.sampled_from(every)), copy.deepcopy(value))
    try:
        program = load(tree)
    except ProgramError:
        return
    assert KernelProgram.from_json(program.to_json()) == program


def test_every_field_is_needed(tree: dict[str, Any]) -> None:
    for path in paths(tree):
        if path and isinstance(path[-1], str):
            less = copy.deepcopy(tree)
            del at(less, path[:-1])[path[-1]]
            with pytest.raises(ProgramError):
                load(less)


def test_an_unknown_field_is_refused_wherever_it_stands(tree: dict[str, Any]) -> None:
    for path in paths(tree):
        if isinstance(at(tree, path), dict):
            more = copy.deepcopy(tree)
            at(more, path)["surprise"] = 1
            with pytest.raises(ProgramError, match="surprise"):
                load(more)


def test_a_field_given_twice_is_refused(program: KernelProgram) -> None:
    text = program.to_json()
    for line in ('"schema": "trunnion.program/2"', '"kernel": "second"', '"pdl": true'):
        assert line in text
        with pytest.raises(ProgramError, match="twice"):
            KernelProgram.from_json(text.replace(line, f"{line}, {line}", 1))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "1",
        "NaN",
        '{"schema": NaN}',
        "[" * 100_000,
        '{"a":' * 100_000,
        "1" * 5000,
        b"\xff",
        5,
        None,
    ],
    ids=lambda text: repr(text)[:9],
)
def test_what_is_no_program_at_all(text: Any) -> None:
    with pytest.raises(ProgramError):
        KernelProgram.from_json(text)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999", "1.0", "1e2", "-0.0"])
def test_no_number_but_an_integer(program: KernelProgram, constant: str) -> None:
    text = program.to_json()
    assert '"alignment": 16' in text
    with pytest.raises(ProgramError):
        KernelProgram.from_json(text.replace('"alignment": 16', f'"alignment": {constant}', 1))


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999", "[0.5, NaN]"])
def test_no_number_but_json_s(tree: dict[str, Any], constant: str) -> None:
    text = json.dumps(changed(tree, ("outputs", 0, "fill"), "here")).replace('"here"', constant)
    with pytest.raises(ProgramError, match="expected a finite number") as caught:
        KernelProgram.from_json(text)
    assert caught.value.field == "outputs[0].fill"


@pytest.mark.parametrize("version", ["trunnion.program/3", "trunnion.program", "", "x" * 10_000])
def test_another_schema_is_refused(tree: dict[str, Any], version: str) -> None:
    with pytest.raises(ProgramError, match=SCHEMA):
        load({**tree, "schema": version})


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("symbols", 0, "min"), 1.5, "symbols[0].min"),
        (("symbols", 0, "max"), -1, "symbols[0]"),
        (("symbols", 1, "name"), "m", "symbols[1]"),
        (("params", 0, "shape", 1), "n +", "params[0].shape[1]"),
        (("params", 0, "shape", 1), "nobody", "params[0].shape[1]"),
        (("params", 0, "dtype"), "float17", "params[0]"),
        (("params", 2, "symbol"), "nobody", "params[2].symbol"),
        (("params", 0, "kind"), "pointer", "params[0]"),
        (("outputs", 0, "strides"), ["1", "1"], "outputs[0]"),
        (("outputs", 0), {"kind": "scalar", "name": "z", "dtype": "int8", "symbol": None}, "outputs[0]"),
        (("checks", 0, "condition"), "1 //", "checks[0].condition"),
        (("code", 0, "includes", 0), ["a.h", None], "code[0].includes[0]"),
        (("code", 0, "defines", 0), ["A", 1], "code[0].defines[0]"),
        (("code", 1, "base64"), "é", "code[1].base64"),
        (("code", 1, "base64"), "a", "code[1].base64"),
        (("code", 0, "language"), "cubin", "code[0]"),
        (("launches", 0, "args", 2), {"output": 9}, "launches[0].args[2]"),
        (("launches", 0, "args", 2), {"param": -1}, "launches[0].args[2]"),
        (("launches", 0, "args", 0, "map", "kind"), "im2col", "launches[0].args[0].map"),
        (("launches", 0, "args", 0, "map", "swizzle"), "96B", "launches[0].args[0].map"),
        (("launches", 0, "args", 0, "map", "box_dim"), [8, 10**9], "launches[0].args[0].map"),
        (("launches", 0, "args", 0, "map", "tensor"), {"param": 2}, "launches[0].args[0].map"),
        (("launches", 1, "grid"), [], "launches[1].grid"),
        (("launches", 1, "grid"), ["1"], "launches[1].grid"),
        (("launches", 1, "block"), ["1", "1", "1", "1"], "launches[1].block"),
        (("launches", 1, "cluster"), 1, "launches[1].cluster"),
        (("launches", 1, "cluster"), "1", "launches[1].cluster"),
        (("launches", 1, "cluster"), [1, 1], "launches[1].cluster"),
        (("launches", 1, "cluster"), ["m", "1"], "launches[1].cluster"),
        (("launches", 1, "preferred_cluster"), 2, "launches[1].preferred_cluster"),
        (("launches", 1, "preferred_cluster"), [2, 1], "launches[1].preferred_cluster"),
        (("launches", 1, "grid", 0), "m m", "launches[1].grid[0]"),
        (("launches", 1, "dynamic_smem_bytes"), "m m", "launches[1].dynamic_smem_bytes"),
        (("launches", 1, "cluster"), ["0", "1", "1"], "launches[1].cluster[0]"),
        (("launches",), [], "launches"),
        (("name",), "", "name"),
    ],
    ids=lambda part: ".".join(map(str, part)) if isinstance(part, tuple) else "",
)
def test_the_wrong_field_is_named(
    tree: dict[str, Any], path: tuple[Any, ...], value: object, field: str
) -> None:
    with pytest.raises(ProgramError) as caught:
        load(changed(tree, path, value))
    assert caught.value.field.startswith(field), caught.value


def test_a_place_in_a_table_without_members_is_told_so() -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.launch("k", (), 1, 32)
    document = json.loads(p.build().to_json())
    with pytest.raises(ProgramError, match="got workspace 0, where the program has none"):
        load(changed(document, ("launches", 0, "args"), [{"workspace": 0}]))


def test_a_symbol_that_stands_nowhere_is_refused(tree: dict[str, Any]) -> None:
    """It would be lost: the program has none of its symbols but those of its signature."""
    idle = {**tree["symbols"][0], "name": "idle"}
    for symbols in ([idle, *tree["symbols"]], [*tree["symbols"], idle]):
        with pytest.raises(ProgramError, match="symbols: 'idle' stands nowhere in the signature"):
            load({**tree, "symbols": symbols})


def test_what_a_call_decides_is_text_and_a_document_without_is_as_it_was() -> None:
    n = Symbol("n")

    def made(**fields: Any) -> KernelProgram:
        p = ProgramBuilder("p", DeviceCode("cuda", "//"))
        p.scalar("n", "int32", symbol=n)
        p.launch("k", (), n * 4, 32, **fields)
        return p.build()

    for fields, cluster, pdl in (
        ({}, None, False),
        ({"cluster": 2, "pdl": True}, [2, 1, 1], True),
        ({"cluster": (2, n), "pdl": n % 2}, ["2", "n", "1"], "(n % 2)"),
    ):
        program = made(**fields)
        launch = json.loads(program.to_json())["launches"][0]
        assert (launch["cluster"], launch["pdl"]) == (cluster, pdl)
        assert KernelProgram.from_json(program.to_json()) == program
    for field, value in (("cluster", ["2", 1, "1"]), ("cluster", []), ("pdl", ["n"]), ("cluster", [["n"]])):
        document = json.loads(made(cluster=n, pdl=n).to_json())
        document["launches"][0][field] = value
        with pytest.raises(ProgramError, match=rf"launches\[0\]\.{field}"):
            KernelProgram.from_json(json.dumps(document))
