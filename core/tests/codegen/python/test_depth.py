"""Expressions as deep as a program may have them are text that CPython takes, and the value that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trunnion.codegen.python.emitter import emit_launcher
from trunnion.errors import ExprError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, binary, eq, select
from trunnion.model.op import Op
from trunnion.model.program import DeviceCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.model.expr import Expr

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


@pytest.mark.parametrize("form", FORMS)
def test_the_deepest_expressions_compile_wherever_they_stand(form: str) -> None:
    expr: Expr = N
    while expr.depth + 2 <= MOST:
        expr = FORMS[form](expr, N)
    with pytest.raises(ExprError, match=f"at most {MOST}"):
        FORMS[form](FORMS[form](expr, N), N)
    p = ProgramBuilder("deep", DeviceCode("cuda", "//"))
    p.scalar("n", "int64", N)
    p.check(expr, "deep")
    p.launch("k", (expr,), grid=(expr, expr), block=expr, dynamic_smem_bytes=expr, when=expr)
    compile(emit_launcher(p.build().plan()), "<launcher>", "exec")
