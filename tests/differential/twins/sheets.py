"""Programs that compute many expressions, one in each call.

A C++ launcher takes a while to build and no time to call, so a program holds many expressions, and a selector among its
arguments says which one counts: the others stand in branches that are not chosen, and may have no value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, lt, select
from trunnion.testing.strategies import CallSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from trunnion.model.expr import Expr
    from trunnion.model.program import KernelProgram

__all__ = ["Sheet", "Variable"]

_WHICH = Symbol("which")


@dataclass(frozen=True)
class Variable:
    """A symbol, and the type of the scalar that gives it its value."""

    symbol: Symbol
    dtype: str


@dataclass(frozen=True)
class Sheet:
    """Expressions over variables."""

    variables: tuple[Variable, ...]
    expressions: tuple[Expr, ...]

    def program(self) -> KernelProgram:
        """Return a program of scalars, the first of which selects an expression, with a parameter that is its value."""
        builder = ProgramBuilder("sheet", DeviceCode("cuda", "//"))
        builder.scalar("which", "int32", symbol=_WHICH)
        for variable in self.variables:
            builder.scalar(f"of_{variable.symbol.name}", variable.dtype, symbol=variable.symbol)
        builder.launch("k", (_selected(self.expressions, 0),), 1, 1)
        return builder.build()

    def calls(self, rows: Iterable[Sequence[int]]) -> Iterator[CallSpec]:
        """Yield a call for each row of values and each expression."""
        for row in rows:
            for index in range(len(self.expressions)):
                yield CallSpec(args=(index, *row), device=0)


def _selected(expressions: Sequence[Expr], first: int) -> Expr:
    """Return the selected one of ``expressions``, numbered from ``first``: a balanced tree, since depth has a limit."""
    if len(expressions) == 1:
        return expressions[0]
    half = len(expressions) // 2
    middle = first + half
    return select(
        lt(_WHICH, middle), _selected(expressions[:half], first), _selected(expressions[half:], middle)
    )
