"""Expressions as deep as a program may have them are text that CPython and C++ compilers take, wherever they stand."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import pytest

from trunnion.codegen.cpp import emitter as cpp_emitter
from trunnion.codegen.python import emitter as python_emitter
from trunnion.errors import ExprError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, binary, eq, select
from trunnion.model.float_expr import FloatOp, IntegerValue, float_binary, real, sqrt
from trunnion.model.op import Op
from trunnion.model.program import DeviceCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.model.expr import Expr
    from trunnion.model.float_expr import FloatExpr
    from trunnion.model.program import KernelProgram

N = Symbol("n", min=-(2**62), max=2**62)  # so that nothing is proven
MOST = 100
FORMS: dict[str, Callable[[Expr, Symbol], Expr]] = {
    **{f"left {op.name}": lambda e, s, op=op: binary(op, e, s) for op in Op},
    **{f"right {op.name}": lambda e, s, op=op: binary(op, s, e) for op in Op},
    "condition": lambda e, s: select(e, s, 2),
    "then": lambda e, s: select(s, e, 2),
    "otherwise": lambda e, s: select(s, 2, e),
    "cast": lambda e, _: e.cast("int16"),
    "cast of another": lambda e, s: (e * s).cast("int16"),
    "a comparison of a quotient": lambda e, s: eq(s // e, s),
}


FLOAT_FORMS: dict[str, Callable[[FloatExpr], FloatExpr]] = {
    **{f"left {op.name}": lambda e, op=op: float_binary(op, e, N) for op in FloatOp},
    **{f"right {op.name}": lambda e, op=op: float_binary(op, N, e) for op in FloatOp},
    "square root": sqrt,
}


MOST_BRACKETS = 256
"""What clang allows within each other; GCC has no limit."""


def deepest(form: str) -> KernelProgram:
    """Return a program with an expression that is as deep as possible, wherever one may stand."""
    expr: Expr = N
    while expr.depth + 2 <= MOST:
        expr = FORMS[form](expr, N)
    with pytest.raises(ExprError, match=f"at most {MOST}"):
        FORMS[form](FORMS[form](expr, N), N)
    p = ProgramBuilder("deep", DeviceCode("cuda", "//"))
    p.scalar("n", "int64", N)
    x = p.input("x", "float32", (N, expr), strides=(expr, 1))
    p.check(expr, "deep")
    p.launch("k", (expr, x), grid=(expr, expr), block=expr, dynamic_smem_bytes=expr, when=expr)
    return p.build()


def deepest_float(form: str) -> KernelProgram:
    """Return a program with a floating-point argument that is as deep as possible, of floats or of integers in it."""
    if form in FLOAT_FORMS:
        value = real(N)
        while value.depth < MOST:
            value = FLOAT_FORMS[form](value)
        with pytest.raises(ExprError, match=f"at most {MOST}"):
            FLOAT_FORMS[form](value)
    else:
        expr: Expr = N
        while expr.depth + 2 < MOST:
            expr = FORMS[form](expr, N)
        value = IntegerValue(expr)
    p = ProgramBuilder("deep", DeviceCode("cuda", "//"))
    p.scalar("n", "int64", N)
    p.launch("k", (value,), grid=1, block=1)
    return p.build()


PROGRAMS: dict[str, Callable[[], KernelProgram]] = {
    **{form: functools.partial(deepest, form) for form in FORMS},
    **{f"float of {form}": functools.partial(deepest_float, form) for form in (*FORMS, *FLOAT_FORMS)},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_deepest_expressions_compile_as_python(name: str) -> None:
    compile(python_emitter.emit_launcher(PROGRAMS[name]().plan()), "<launcher>", "exec")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_deepest_expressions_keep_within_the_brackets_of_cpp_compilers(name: str) -> None:
    depth = most = 0
    text = cpp_emitter.emit_launcher(PROGRAMS[name]().plan())
    for character in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        depth += (character in "({[") - (character in ")}]")
        most = max(most, depth)
    assert depth == 0
    assert 1 < most < MOST_BRACKETS
