"""Structs with views in them whose extents fill no whole word: C leaves four bytes behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Expr, Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.struct import Array, Struct
from trunnion.testing.strategies.calls import CallSpec, Scenario, TensorSpec, row_major
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.programs import CODE

if TYPE_CHECKING:
    from trunnion.model.launch import Argument

__all__ = ["struct_views"]

_VARYING: Final = (
    (True,),
    (True, False),
    (False, True),
    (True, True, True),
    (True, False, False),
    (False, True, False),
    (True, True, False, True),
)
"""Which extents a call decides: an odd number of them."""

_ONES: Final = (Const(1), Const(1), Const(1))


@st.composite
def struct_views(draw: st.DrawFn, *, strided: bool) -> Scenario:
    """Draw a struct of a view, twice in an array too, between smaller fields, and a call.

    Parameters
    ----------
    draw
        Hypothesis's.
    strided
        Whether a tensor may name its strides, and lie with gaps.
    """
    varying = choose(draw, _VARYING)
    shape = tuple(choose(draw, (3, 1, 5, 7)) for _ in varying)
    extents: tuple[Expr, ...] = tuple(
        Symbol(f"n{axis}") if varies else Const(extent)
        for axis, (varies, extent) in enumerate(zip(varying, shape, strict=True))
    )
    steps: tuple[Expr, ...] | None = None
    strides = row_major(shape)
    if strided and draw(st.booleans()):
        strides = tuple(step * 3 for step in row_major(tuple(extent + 2 for extent in shape)))
        steps = tuple(Symbol(f"s{axis}") for axis in range(len(shape)))
    x = TensorParam("x", dtype("int16"), extents, strides=steps)
    b, i = ScalarParam("b", dtype("int8")), ScalarParam("i", dtype("int32"))
    fields: list[tuple[str, Argument | Array]] = [("b", b), ("x", x.view()), ("i", i)]
    fields += [("both", Array((x.view(), x.view()))), ("end", b)]
    fields = [one for one in fields if one[0] == "x" or draw(st.booleans())]
    launch = KernelLaunch("k", (b, Struct(tuple(fields)), i), _ONES, _ONES)
    program = KernelProgram("p", Signature((x, b, i)), (CODE,), (launch,))
    given = TensorSpec(dtype="int16", shape=shape, strides=strides)
    return Scenario(program, CallSpec(args=(given, -2, 1 << 20)))
