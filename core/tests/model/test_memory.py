"""What tensors and workspaces have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import ExprError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Const, Expr, Symbol, maximum, minimum
from trunnion.model.memory import MAX_RANK
from trunnion.model.program import KernelProgram
from trunnion.model.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.model.memory import Memory


def symbols(name: str, rank: int) -> tuple[Symbol, ...]:
    return tuple(Symbol(f"{name}{i}") for i in range(rank))


MEMORY: dict[str, Callable[[ProgramBuilder], Any]] = {
    "a tensor": lambda p: p.input("x", "float32", symbols("n", MAX_RANK)),
    "one with strides": lambda p: p.input(
        "x", "float32", symbols("n", MAX_RANK), strides=symbols("s", MAX_RANK)
    ),
    "a workspace": lambda p: p.workspace("w", "float32", symbols("n", MAX_RANK)),
}


@pytest.mark.parametrize("memory", MEMORY)
def test_of_as_many_dimensions_as_there_may_be_the_end_is_known(memory: str) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.input("sizes", "float32", symbols("n", MAX_RANK))
    x = MEMORY[memory](p)
    p.launch("k", (x.at(1),), 1, 1, window=x.window())
    program = p.build()
    assert program.plan().hash == KernelProgram.from_json(program.to_json()).plan().hash


@pytest.mark.parametrize("rank", [0, 1, 2, 49, 50, 62])
def test_the_last_element_lies_before_the_end(rank: int) -> None:
    memory = Workspace("w", "uint8", (2,) * rank)  # type: ignore[arg-type]  # spellings
    assert memory.reach() == (Const(1), Const(2**rank - 1))
    assert memory.span() == Const(2**rank)


def deep(depth: int) -> Expr:
    m, n = Symbol("m"), Symbol("n")
    expr: Expr = n
    while expr.depth < depth:
        expr = minimum(expr - 1, m) if depth - expr.depth > 1 else maximum(expr, m)
    return expr


USES: dict[str, Callable[[Memory], dict[str, Any]]] = {
    "view.'x'.shape": lambda x: {"args": (x.view(),)},
    "at.offset": lambda x: {"args": (x.at(1),)},
    "window over 'x'.memory": lambda x: {"args": (), "window": x.window()},
    "tensor map 'over x'": lambda x: {"args": (x.tiled(box_dim=(8,), element_offset=16 * Symbol("n")),)},
}


@pytest.mark.parametrize("field", USES)
def test_memory_whose_extent_is_too_deep_for_what_follows_from_it_is_named(field: str) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    for name in ("m", "n"):
        p.scalar(name, "int64", Symbol(name))
    x = p.input("x", "float32", (deep(100),))

    def planned() -> None:
        p.launch("k", grid=1, block=1, **USES[field](x))
        p.build().plan()

    with pytest.raises(ExprError, match="depth 101") as caught:
        planned()
    assert caught.value.field.startswith(field)
