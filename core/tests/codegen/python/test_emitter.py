"""The text itself; what it does is seen in ``test_program.py``."""

from __future__ import annotations

import ast
import io
import os
import tokenize
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunnion.codegen.python.emitter import VERSION, emit_launcher
from trunnion.examples import load
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ceildiv, lt
from trunnion.model.program import KernelProgram

GOLDEN = Path(__file__).parent / "golden" / "vector_add.py.txt"
MARK = "zqxj"


def named(name: str) -> KernelProgram:
    """Return a program that says one name wherever it can say one."""
    p = ProgramBuilder(name, DeviceCode("cuda", "//", name=name))
    n = Symbol(name, max=10**6)
    x = p.input(f"x{name}", "float16", (n, 64), alignment=16)
    s = p.scalar(f"s{name}", "bfloat16")
    y = p.output(f"y{name}", "float16", (n + 1, 64))
    p.check(lt(n, 5000), name)
    p.launch(
        name.replace("\0", "0"),
        (x.tiled((8, 64), label=name), y, s, n),
        ceildiv(n, 8),
        32,
        dynamic_smem_bytes=n,
    )
    return p.build()


@settings(max_examples=150)
@given(
    st.text(st.characters(exclude_categories=()))
    | st.sampled_from(("'", '"""', "\\", "\n", "\r", "\0", "{", "#", "\u2028", "\ud800", "import os"))
)
def test_a_name_stands_only_inside_of_string_literals(name: str) -> None:
    text = emit_launcher(named(MARK + name).plan())
    ast.parse(text)
    assert text.isascii()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        assert token.type == tokenize.STRING or MARK not in token.string


def test_names_change_nothing_but_literals() -> None:
    def skeleton(name: str) -> list[str]:
        text = emit_launcher(named(name).plan())
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        return [token.string for token in tokens if token.type != tokenize.STRING]

    assert skeleton("a") == skeleton("'; import os; '\n\0{}")


def test_equal_plans_have_the_same_text() -> None:
    assert emit_launcher(named("a").plan()) == emit_launcher(named("a").plan())
    again = KernelProgram.from_json(named("a").to_json())
    assert emit_launcher(again.plan()) == emit_launcher(named("a").plan())


def test_the_head_says_what_wrote_it() -> None:
    plan = load("vector_add").program.plan()
    first = emit_launcher(plan).splitlines()[0]
    assert first == f'"""Launcher of plan {plan.hash}; emitter {VERSION}, dialect facade/4."""'


def test_the_launcher_of_vector_add_is_the_golden_one() -> None:
    """Set TRUNNION_REFRESH_GOLDEN=1 to write the file anew, and read the difference."""
    text = emit_launcher(load("vector_add").program.plan())
    if os.environ.get("TRUNNION_REFRESH_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text, encoding="ascii")
    assert text == GOLDEN.read_text(encoding="ascii")


@pytest.mark.parametrize("example", ["vector_add", "hopper_gemm"])
def test_no_tensor_library_and_no_driver_is_named(example: str) -> None:
    text = emit_launcher(load(example).program.plan())
    roots = {
        node.module.split(".")[0] for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)
    }
    assert roots == {"struct", "trunnion"}
