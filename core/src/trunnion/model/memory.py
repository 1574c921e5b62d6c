"""`Memory`: what tensors and workspaces have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.errors import ProgramError
from trunnion.model.expr import Expr, OutsideExpr, as_expr, minimum, select
from trunnion.model.expr_tree import symbols_of
from trunnion.model.fields import in_one_dimension, integer, members, place

if TYPE_CHECKING:
    from trunnion.model.dtypes import DType

__all__ = ["MAX_RANK", "Memory", "exprs", "power_of_two"]

MAX_RANK = 64
"""The most dimensions of a tensor; DLPack and torch both stop here."""

_MOST_SUMMED = 49  # the plans of these stay as they are; of one more the sum is too deep an expression


def exprs(values: object, field: str) -> tuple[Expr, ...]:
    """Return a sequence of expressions and integers as expressions over symbols.

    Raises
    ------
    ProgramError
        If it is something else; the member's place is named.
    """
    result = []
    wanted = f"a sequence, {in_one_dimension(values, 'n')}"
    for axis, value in enumerate(members(values, field, wanted)):
        with place(f"{field}[{axis}]"):
            result.append(as_expr(value))  # type: ignore[arg-type]  # which checks it
            tuple(symbols_of(result[-1]))
    return tuple(result)


def power_of_two(value: object, field: str, greatest: int) -> int:
    """Return a power of two.

    Raises
    ------
    ProgramError
        If it is none, or greater than ``greatest``.
    """
    number = integer(value, field, 1, greatest)
    if number & (number - 1):
        raise ProgramError(f"got {number}, expected a power of two", field=field)
    return number


class Memory(OutsideExpr):
    """Device memory of a call: a tensor of the signature, or a workspace.

    As a kernel's argument it is the pointer to its first element.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # declared, not given: each subclass documents its own fields
        name: str
        dtype: DType
        shape: tuple[Expr, ...]

        @property
        def alignment(self) -> int | None: ...  # noqa: D102 - each subclass says what its own is

    def __hash__(self) -> int:
        """Return the hash of the name: equal memory has equal names, and that of all fields asks each expression."""
        return hash(self.name)

    def _instead(self) -> str:
        return "its extents are the symbols of its shape; its address is moved by at: x.at(offset)"

    def steps(self) -> tuple[Expr, ...]:
        """Return elements between neighbours along each dimension, outermost first."""
        result: list[Expr] = []
        step = as_expr(1)
        for extent in reversed(self.shape):
            result.append(step)
            step = step * extent
        return tuple(reversed(result))

    def reach(self) -> tuple[Expr, Expr]:
        """Return the least extent, and elements between the first element and the last one if there are any."""
        least = as_expr(1)
        for extent in self.shape:
            least = minimum(least, extent)
        return least, self._last()

    def _last(self) -> Expr:
        steps = self.steps()
        if len(self.shape) > _MOST_SUMMED and getattr(self, "strides", None) is None:
            return steps[0] * self.shape[0] - 1  # of products of so many extents a sum would be too deep
        last = as_expr(0)
        for extent, step in zip(self.shape, steps, strict=True):
            last = last + (extent - 1) * step
        return last

    def span(self) -> Expr:
        """Return elements from the first one to the last one's end; 0 if there are none."""
        least, last = self.reach()
        return select(least, last + 1, 0)

    def span_bytes(self) -> Expr:
        """Return bytes from the first element to the last one's end; 0 if there are none."""
        least, last = self.reach()
        return select(least, (last + 1) * self.dtype.itemsize, 0)

    def check_shape(self) -> None:
        """Refuse a shape that no call can have.

        Raises
        ------
        ProgramError
            If it has too many dimensions, or an extent that is negative in every call.
        """
        if len(self.shape) > MAX_RANK:
            raise ProgramError(
                f"got {len(self.shape)} dimensions, expected at most {MAX_RANK}", field="shape"
            )
        for axis, extent in enumerate(self.shape):
            if extent.bounds.high < 0:
                raise ProgramError("the extent is negative in every call", field=f"shape[{axis}]")
