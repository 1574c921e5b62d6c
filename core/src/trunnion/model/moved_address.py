"""`MovedAddress`: the address of an element of memory that is not the first one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.model.expr import OutsideExpr, as_expr
from trunnion.model.expr_tree import symbols_of
from trunnion.model.fields import instance, place
from trunnion.model.memory import Memory

if TYPE_CHECKING:
    from trunnion.model.expr import Expr

__all__ = ["MovedAddress"]


@dataclass(frozen=True, slots=True)
class MovedAddress(OutsideExpr):
    """The address of memory, moved by some elements. As a kernel's argument it is a pointer.

    The call refuses an offset below 0 or beyond the elements that the memory spans: the end is the last place. Of a
    tensor that the call leaves out it is a null pointer, whatever the offset. What the memory promises of its alignment
    is said of its first element.
    """

    memory: Memory
    """The tensor or workspace."""

    offset: Expr
    """Elements between the memory's first one and the one that is meant.

    An element of a packed type is the pair that lies in one byte, as in torch, so that every offset is of whole bytes.
    """

    def __post_init__(self) -> None:
        with place("at"):
            instance(self.memory, Memory, "memory")
            with place("offset"):
                object.__setattr__(self, "offset", as_expr(self.offset))
                tuple(symbols_of(self.offset))
                self._check_bounds()

    def _check_bounds(self) -> None:
        """Refuse an offset that no call allows; each call checks its own."""
        bounds, limit = self.offset.bounds, self.memory.span().bounds.high
        if bounds.high < 0 or bounds.low > limit:
            raise ProgramError(
                f"got {bounds} elements in every call, expected 0 to {limit} for {shorten(self.memory.name)}"
            )

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The offset, and what the memory's span follows from."""
        return (self.offset, *self.memory.shape, *self.memory.steps())

    def _instead(self) -> str:
        return "add to its offset: x.at(offset + n)"
