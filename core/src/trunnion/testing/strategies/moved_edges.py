"""Calls at both ends of the memory in which a launch is given an address that is moved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.workspace import Workspace
from trunnion.testing.strategies.calls import CallSpec, TensorSpec
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.limits import Series
from trunnion.testing.strategies.programs import CODE

if TYPE_CHECKING:
    from trunnion.model.passed_memory import PassedMemory

__all__ = ["moved_edges"]

_ONES: Final = (Const(1), Const(1), Const(1))
_MOST_CALLS: Final = 16
_FAR: Final = (2**31, 2**32, 2**59, 2**60, 2**61, 2**63 - 1, -(2**63), -(2**60), -(2**32), -1)
"""Offsets that some narrower type, or bytes counted in 64 bits, take for another one."""


@st.composite
def moved_edges(draw: st.DrawFn, *, workspace: bool, nullable: bool) -> Series:
    """Draw offsets around 0 and around the end of an input, an output or a workspace, and such as wrap.

    Parameters
    ----------
    draw
        Hypothesis's.
    workspace
        Whether the memory may be a workspace.
    nullable
        Whether the input may be one that calls leave out; none of these does.
    """
    start, n = Symbol("start", min=choose(draw, (-(2**63), 0))), Symbol("n", min=0)
    kind = choose(draw, ("uint8", "float16", "float64", "complex128", "float4_e2m1fn_x2"))
    shown, made = (TensorParam(name, dtype(kind), (n,)) for name in "ab")
    shown = replace(shown, nullable=nullable and draw(st.booleans()))
    memory: PassedMemory = shown
    form = choose(draw, ("input", "input", "output", *(["workspace"] if workspace else [])))
    if form == "output":
        memory = made
    elif form == "workspace":
        memory = Workspace("w", dtype(kind), (n, Const(2)))
    launch = KernelLaunch("k", (memory.at(start), memory), _ONES, _ONES)
    signature = Signature(
        (shown, ScalarParam("start", dtype("int64"), start)), (made,) if form == "output" else ()
    )
    calls = []
    for _ in range(draw(st.integers(1, _MOST_CALLS))):
        count = choose(draw, (0, 1, 5))
        end = count * 2 if form == "workspace" else count
        offset = choose(draw, (end, end + 1, end, end + 1, 0, end - 1, *_FAR))
        given = TensorSpec(dtype=kind, shape=(count,), strides=(1,), offset=choose(draw, (0, 1)))
        calls.append(CallSpec(args=(given, offset)))
    return Series(KernelProgram("p", signature, (CODE,), (launch,)), tuple(calls))
