"""c = a + b over any number of elements, in CuTeDSL: each tensor carries its length."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trunnion.examples import load
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv
from trunnion_cutedsl.examples.text import device_code

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall

__all__ = ["EXAMPLE"]

_THREADS = 256


def _program() -> KernelProgram:
    p = ProgramBuilder("cutedsl_vector_add", device_code("vector_add"))
    n = Symbol("n", max=2**31 - 1)
    a, b = p.input("a", "float32", (n,)), p.input("b", "float32", (n,))
    c = p.output("c", "float32", (n,))
    p.launch("vector_add", args=(a.view(), b.view(), c.view()), grid=ceildiv(n, _THREADS), block=_THREADS)
    return p.build()


def _body(call: KernelCall) -> None:
    """Do what ``vector_add`` does, with what the launch delivered."""
    views = [call.view(ordinal, (None,), (1,)) for ordinal in range(3)]
    length = min(views[2].shape[0], call.grid[0] * call.block[0])
    a, b, c = (call.memory.view(view.address, "float32", (length,)) for view in views)
    c.copy_(a + b)


EXAMPLE = replace(
    load("vector_add"),  # the same numbers: its inputs, edges, reference and tolerance
    name="cutedsl_vector_add",
    summary="c = a + b of any length, in CuTeDSL",
    program=_program(),
    bodies={"vector_add": _body},
)
