"""A program costs as much as it is long: what is counted at a size and at twice the size, and what is refused."""

from __future__ import annotations

import itertools
import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from trunnion import DeviceCode, KernelProgram, ProgramBuilder, Symbol, le, real
from trunnion.errors import ProgramError
from trunnion.model.limits import MOST_MEMBERS, MOST_NODES, MOST_TEXT_BYTES
from trunnion.model.serial import reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.model.plan import LaunchPlan

n = Symbol("n")


def calls(work: Callable[[], object]) -> int:
    """Return how many functions a piece of work calls, ours and C's: unlike a time, that is the same every time."""
    counted = itertools.count()
    before = sys.getprofile()
    sys.setprofile(lambda _frame, event, _argument: next(counted) if "call" in event else None)
    try:
        work()
    finally:
        sys.setprofile(before)
    return next(counted)


def launches(count: int) -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (n, 64))
    for index in range(count):
        p.launch(f"k{index}", args=(x, n), grid=1, block=1, when=n)
    return p.build()


def readers(count: int) -> KernelProgram:
    """Return a program that gives one workspace, one map and one window to every launch."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (n, 64))
    w = p.workspace("w", "float32", (n,))
    for _ in range(count):
        args = (x, w, w.view(), x.tiled(box_dim=(8, 8)))
        p.launch("k", args=args, grid=1, block=1, window=w.window())
    return p.build()


def workspaces(count: int) -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.input("x", "float32", (n,))
    for index in range(0, count, 10):
        args = tuple(p.workspace(f"w{index + i}", "float32", (n,)) for i in range(10))
        p.launch("k", args=args, grid=1, block=1)
    return p.build()


def params(count: int) -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    tensors = [p.input(f"x{i}", "float32", (n, Symbol(f"n{i}")), nullable=True) for i in range(count)]
    scalars = [p.scalar(f"s{i}", "int64", Symbol(f"n{i}")) for i in range(count)]
    others = [p.pointer(f"p{i}") for i in range(count)] + [p.struct(f"b{i}", 8, 8) for i in range(count)]
    for i in range(count):
        p.check(le(Symbol(f"n{i}"), 5), "few")
        p.output(f"y{i}", "float32", (n,))
    p.launch("k", args=(*tensors, *scalars, *others), grid=1, block=1)
    return p.build()


def maps(count: int) -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (n, 64))
    for index in range(0, count, 10):
        args = tuple(x.tiled(box_dim=(8, 8), element_offset=16 * (index + i)) for i in range(10))
        p.launch("k", args=args, grid=1, block=1)
    return p.build()


def parts(count: int) -> KernelProgram:
    pairs = tuple((f"h{i}", "//") for i in range(count))
    words = tuple(f"-o{i}" for i in range(count))
    code = [
        DeviceCode("cuda", f"// {i}", includes=pairs[i : i + 1], options=words[i : i + 1])
        for i in range(count)
    ]
    code.append(DeviceCode("cuda", "// last", includes=pairs, options=words, defines=pairs))
    p = ProgramBuilder("p", code)
    p.input("x", "float32", (n,))
    for part in code:
        p.launch("k", args=(n,), grid=1, block=1, code=part)
    return p.build()


MAKERS = (launches, readers, workspaces, params, maps, parts)


def hashing(plan: LaunchPlan) -> Callable[[], object]:
    return lambda: plan.hash


WORK: dict[str, Callable[[KernelProgram], Callable[[], object]]] = {
    "write": lambda program: program.to_json,
    "read": lambda program: partial(KernelProgram.from_json, program.to_json()),
    "plan": lambda program: program.plan,
    "hash": lambda program: hashing(program.plan()),
}


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_twice_the_program_is_twice_the_work(make: Callable[[int], KernelProgram], work: str) -> None:
    small, large = (calls(WORK[work](make(count))) for count in (100, 200))
    assert large < 2.2 * small


def test_a_field_that_stands_twice_is_found_in_one_pass() -> None:
    compared = itertools.count()

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            next(compared)
            return str.__eq__(self, other)

    names = [f"f{i}" for i in range(2000)]
    with pytest.raises(ProgramError, match="'f1999' twice"):
        reading._unique([(Name(name), 0) for name in (*names, names[-1])])
    assert next(compared) < 20_000


def test_workspaces_of_one_name_are_found_in_one_pass() -> None:
    def refused(count: int) -> Callable[[], object]:
        document = json.loads(workspaces(count).to_json())
        for index, space in enumerate(document["workspaces"]):
            space |= {"name": "w", "shape": [f"{index + 1}"]}
        text = json.dumps(document)

        def read() -> None:
            with pytest.raises(ProgramError, match="two workspaces are called 'w'") as caught:
                KernelProgram.from_json(text)
            assert caught.value.field == "workspaces"

        return read

    small, large = (calls(refused(count)) for count in (100, 200))
    assert large < 2.2 * small


def tree(**fields: Any) -> str:
    return json.dumps({**json.loads(launches(1).to_json()), **fields})


def test_a_long_text_is_refused_before_it_is_read() -> None:
    text = " " * (MOST_TEXT_BYTES + 1)
    with pytest.raises(
        ProgramError, match=f"got {len(text)} bytes of JSON, expected at most {MOST_TEXT_BYTES}"
    ):
        KernelProgram.from_json(text)


def test_what_is_too_long_to_be_read_is_not_written() -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "x" * MOST_TEXT_BYTES))
    p.launch("k", args=(), grid=1, block=1)
    program = p.build()
    with pytest.raises(ProgramError, match=f"bytes of JSON, expected at most {MOST_TEXT_BYTES}"):
        program.to_json()


def many_symbols() -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    for start in range(0, MOST_MEMBERS, 64):
        p.input(f"x{start}", "float32", tuple(Symbol(f"n{i}") for i in range(start, start + 64)))
    p.input("y", "float32", (n,))
    p.launch("k", args=(1,), grid=1, block=1)
    return p.build()


def many_workspaces() -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    for start in range(0, MOST_MEMBERS + 1, 4096):
        args = tuple(p.workspace(f"w{i}", "float32", (1,)) for i in range(start, start + 4096))
        p.launch("k", args=args, grid=1, block=1)
    return p.build()


@pytest.mark.parametrize(("name", "make"), [("symbols", many_symbols), ("workspaces", many_workspaces)])
def test_a_list_that_is_too_long_to_be_read_is_not_written(
    name: str, make: Callable[[], KernelProgram]
) -> None:
    """No field of a program holds it: what the author gave does, all together."""
    program = make()
    with pytest.raises(ProgramError, match=f"{name}: got [0-9]+ {name}, expected at most {MOST_MEMBERS}"):
        program.to_json()


def test_an_expression_whose_text_is_too_long_to_be_read_is_not_written() -> None:
    long = Symbol("n" * (1 << 18))
    for extent, value in (
        (long + long + long + long, 1),
        (1, (real(long) + long + long + long).cast("float32")),
    ):
        p = ProgramBuilder("p", DeviceCode("cuda", "//"))
        p.input("x", "float32", (long,))
        p.launch("k", args=(value,), grid=extent, block=1)
        program = p.build()
        with pytest.raises(ProgramError, match="an expression of at most 1048576 characters"):
            program.to_json()


@pytest.mark.parametrize("name", ["symbols", "params", "outputs", "checks", "workspaces", "code", "launches"])
def test_a_long_list_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(ProgramError, match=f"{name}: got {MOST_MEMBERS + 1} members, expected at most"):
        KernelProgram.from_json(tree(**{name: [{}] * (MOST_MEMBERS + 1)}))


@pytest.mark.parametrize("name", ["options", "includes", "defines"])
def test_a_long_list_of_a_part_is_refused_by_its_name(name: str) -> None:
    part = json.loads(launches(1).to_json())["code"][0]
    text = tree(code=[{**part, name: [["a", "b"]] * (MOST_MEMBERS + 1)}])
    with pytest.raises(ProgramError, match=rf"code\[0\].{name}: got {MOST_MEMBERS + 1} members"):
        KernelProgram.from_json(text)


def test_what_never_ends_is_refused() -> None:
    with pytest.raises(ProgramError, match=f"args: got more than {MOST_MEMBERS} members"):
        ProgramBuilder("p", DeviceCode("cuda", "//")).launch("k", args=itertools.repeat(1), grid=1, block=1)


def test_many_launches_of_much_are_refused() -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.input("x", "float32", (n,))
    extent = n
    for _ in range(10):
        extent = extent + extent
    w = p.workspace("w", "float32", (extent,))
    for _ in range(MOST_NODES // extent.nodes + 1):
        p.launch("k", args=(w,), grid=1, block=1)
    with pytest.raises(ProgramError, match=f"nodes of expressions in all, expected at most {MOST_NODES}"):
        p.build()


@pytest.mark.parametrize("depth", [500, 900, 5000, 100_000])
@pytest.mark.parametrize("ends", ["[]", ('{"a":', "}"), ("[0.0,", "]")], ids=["list", "object", "pair"])
def test_a_deep_document_is_refused(ends: tuple[str, str] | str, depth: int) -> None:
    inner = f"{ends[0] * depth}1.0{ends[1] * depth}"
    output = {
        "kind": "tensor", "name": "y", "dtype": "float32", "shape": ["n"], "strides": None,
        "access": "write", "alignment": None, "nullable": False, "fill": 0,
    }  # fmt: skip
    text = tree(outputs=[output]).replace('"fill": 0', f'"fill": {inner}')
    with pytest.raises(ProgramError):
        KernelProgram.from_json(text)


@pytest.mark.parametrize("text", [b"{}", None, 3, ["{}"], bytearray(b"{}")])
def test_only_a_text_is_read(text: Any) -> None:
    with pytest.raises(ProgramError, match="expected the text of a program"):
        KernelProgram.from_json(text)


def test_of_very_many_unknown_fields_some_are_named() -> None:
    with pytest.raises(ProgramError, match=r"and 49988 more\Z") as caught:
        KernelProgram.from_json(tree(**{f"unknown{i}": 0 for i in range(50_000)}))
    assert len(str(caught.value)) < 1000
