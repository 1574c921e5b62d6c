"""Floating-point expressions over integer ones: numbers that a launch is given and that follow from a call's symbols.

IEEE 754 binary64: each operation rounds once, to nearest even, in the order in which it is written; nothing is
contracted, reordered or folded. An integer expression is computed by its own rules, and becomes the nearest double. In
between there may be infinities and NaN, as IEEE says: 1 / (1 / real(0)) is 0. The result must be finite and fit the
type in which it travels; each call judges that.

They stand among a launch's arguments alone: a grid, a shape or a check is of integers. A float scalar of the call is no
part of them, because symbols are integers; a kernel is given it as it is.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from trunnion.errors import ExprError
from trunnion.messages import describe
from trunnion.model.dtypes import DType, dtype, item_advice
from trunnion.model.expr import Const, Expr, NonInteger, OutsideExpr, as_expr, integer_error, set_size
from trunnion.model.fields import instance, place
from trunnion.model.scalars import FLOAT_FORMATS
from trunnion.plain import is_a

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "FloatBinary", "FloatCast", "FloatConst", "FloatExpr", "FloatLike", "FloatOp", "IntegerValue", "SquareRoot",
    "as_float", "float_binary", "integers_of", "over_integers", "real", "sqrt",
]  # fmt: skip


class FloatOp(enum.StrEnum):
    """An operation of IEEE 754 on two doubles; the value is its spelling in text."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"


@dataclass(frozen=True, slots=True)
class FloatExpr(NonInteger):
    """A floating-point expression; see the module's text. Made by operators, `real` and `sqrt`."""

    depth: int = field(init=False, compare=False, repr=False)
    """The height of the tree, that of the integer expressions in it included."""

    nodes: int = field(init=False, compare=False, repr=False)
    """The number of nodes, those of the integer expressions too."""

    def _described(self) -> str:
        return "a floating-point expression"

    def __add__(self, other: FloatLike) -> FloatExpr:
        return float_binary(FloatOp.ADD, self, other)

    def __radd__(self, other: FloatLike) -> FloatExpr:
        return float_binary(FloatOp.ADD, other, self)

    def __sub__(self, other: FloatLike) -> FloatExpr:
        return float_binary(FloatOp.SUB, self, other)

    def __rsub__(self, other: FloatLike) -> FloatExpr:
        return float_binary(FloatOp.SUB, other, self)

    def __mul__(self, other: FloatLike) -> FloatExpr:
        return float_binary(FloatOp.MUL, self, other)

    def __rmul__(self, other: FloatLike) -> FloatExpr:
        return float_binary(FloatOp.MUL, other, self)

    def __truediv__(self, other: FloatLike) -> FloatExpr:
        return float_binary(FloatOp.DIV, self, other)

    def __rtruediv__(self, other: FloatLike) -> FloatExpr:
        return float_binary(FloatOp.DIV, other, self)

    def __neg__(self) -> FloatExpr:
        return float_binary(FloatOp.MUL, -1, self)  # exact; 0 - x would lose the sign of zero

    def __pow__(self, other: object) -> NoReturn:
        raise ExprError("a power is written a * a, and a square root sqrt(a), not a ** b", field="expression")

    def __rpow__(self, other: object) -> NoReturn:
        self.__pow__(other)

    def _refuse(self, other: object = None) -> NoReturn:  # noqa: ARG002 - the other operand is not at fault
        raise integer_error(self)

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse

    def __bool__(self) -> NoReturn:
        raise ExprError("an expression has no truth value before a call")

    def __str__(self) -> str:
        """Return the text as its author would write it."""
        from trunnion.model.float_text import format_float  # noqa: PLC0415 - it reads this module

        return format_float(self, ())

    def cast(self, to: DType | str) -> FloatCast:
        """Return this value as an argument of type ``to``, to which it is rounded once; what does not fit is an error.

        Parameters
        ----------
        to
            A float type that a single number can have. Without a cast an argument travels as ``float64``.

        Raises
        ------
        ExprError
            If ``to`` is no such type.
        """
        return FloatCast(self, dtype(to))

    def _instead(self) -> str:
        return (
            "a float stands among a launch's arguments alone; integers are divided by a // b or ceildiv(a, b), "
            "not by a / b"
        )


FloatLike = FloatExpr | Expr | float
"""Where a floating-point expression is wanted, an integer one or a number will do."""


@dataclass(frozen=True, slots=True)
class FloatConst(FloatExpr):
    """A number. 0.0 is not -0.0."""

    value: float = field(compare=False)
    """The value: finite."""

    bits: str = field(init=False, repr=False)
    """The value in hexadecimal digits, which tells zeros apart."""

    def __post_init__(self) -> None:
        if type(self.value) is not float or not math.isfinite(self.value):
            raise ExprError(f"got {describe(self.value)}, expected a finite float", field="value")
        object.__setattr__(self, "bits", self.value.hex())
        set_size(self)


@dataclass(frozen=True, slots=True)
class IntegerValue(FloatExpr):
    """The double nearest to an integer expression, ties to even: beyond 2**53 it may be another number."""

    operand: Expr
    """The integer expression."""

    def __post_init__(self) -> None:
        set_size(self, instance(self.operand, Expr, "operand"))


@dataclass(frozen=True, slots=True)
class FloatBinary(FloatExpr):
    """An operation on two values."""

    op: FloatOp
    """The operation."""

    left: FloatExpr
    """The left operand."""

    right: FloatExpr
    """The right operand."""

    def __post_init__(self) -> None:
        instance(self.op, FloatOp, "op")
        set_size(self, instance(self.left, FloatExpr, "left"), instance(self.right, FloatExpr, "right"))


@dataclass(frozen=True, slots=True)
class SquareRoot(FloatExpr):
    """The square root, correctly rounded; of a number below 0 it is NaN, of -0.0 it is -0.0."""

    operand: FloatExpr
    """The value."""

    def __post_init__(self) -> None:
        set_size(self, instance(self.operand, FloatExpr, "operand"))


@dataclass(frozen=True, slots=True)
class FloatCast(OutsideExpr):
    """A floating-point expression as an argument of a launch: rounded once, from the double, to nearest even."""

    value: FloatExpr
    """The value."""

    to: DType
    """The type in which it travels: a float type that a single number can have."""

    def __post_init__(self) -> None:
        with place("cast"):
            instance(self.value, FloatExpr, "value")
            if instance(self.to, DType, "to").name not in FLOAT_FORMATS:
                raise ExprError(
                    f"got a cast to {self.to}, expected a float type: {', '.join(FLOAT_FORMATS)}", field="to"
                )

    def __str__(self) -> str:
        """Return the text, as that of an integer expression which is cast."""
        return f"cast({self.to}, {self.value})"

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.value.nodes

    def cast(self, to: DType | str) -> NoReturn:  # noqa: ARG002 - whatever the type
        """Refuse a second cast: each would round.

        Raises
        ------
        ExprError
            Always.
        """
        raise integer_error(self)

    def _instead(self) -> str:
        return "a cast comes last, because a result is rounded once: (a * b).cast(dtype)"


def as_float(value: FloatLike) -> FloatExpr:
    """Return ``value`` as a floating-point expression.

    Raises
    ------
    ExprError
        If it is neither an expression nor a finite number (a bool is no number here).
    """
    if is_a(value, FloatExpr):
        return value
    if type(value) is float:
        return FloatConst(value)
    if is_a(value, NonInteger) or not (is_a(value, Expr) or type(value) is int):
        advice = f"; {value._instead()}" if is_a(value, NonInteger) else item_advice(value)  # noqa: SLF001 - as expressions ask
        raise ExprError(f"got {describe(value)}, expected a number, a symbol or an expression{advice}")
    whole = as_expr(value)
    return FloatConst(float(whole.value)) if isinstance(whole, Const) else IntegerValue(whole)


def float_binary(op: FloatOp, left: FloatLike, right: FloatLike) -> FloatExpr:
    """Return an operation on two values, as it is written: nothing is folded."""
    return FloatBinary(op, as_float(left), as_float(right))


def real(value: FloatLike) -> FloatExpr:
    """Return an integer expression as a double, so that floats can stand beside it.

    Parameters
    ----------
    value
        An integer expression, or a number. Beyond 2**53 an integer is rounded to the nearest double, ties to even.

    Raises
    ------
    ExprError
        If it is neither.

    Examples
    --------
    >>> from trunnion import real, symbols
    >>> (n,) = symbols("n")
    >>> str(real(n + 1) * 0.5)
    '(real(n + 1) * 0.5)'
    """
    return as_float(value)


def sqrt(value: FloatLike) -> FloatExpr:
    """Return the square root of an expression in double precision, correctly rounded; below 0 it is NaN.

    Parameters
    ----------
    value
        A floating-point expression, an integer one, or a number.

    Raises
    ------
    ExprError
        If it is none.

    Examples
    --------
    >>> from trunnion import sqrt, symbols
    >>> (d,) = symbols("d")
    >>> str(1 / sqrt(d))
    '(1.0 / sqrt(d))'
    """
    return SquareRoot(as_float(value))


def integers_of(expr: FloatExpr) -> Iterator[Expr]:
    """Yield the integer expressions of a floating-point one, from left to right: so a call computes them."""
    match expr:
        case IntegerValue(operand):
            yield operand
        case FloatBinary(_, left, right):
            yield from integers_of(left)
            yield from integers_of(right)
        case SquareRoot(operand):
            yield from integers_of(operand)


def over_integers(expr: FloatExpr, change: Callable[[Expr], Expr]) -> FloatExpr:
    """Return the expression with each integer expression in it replaced by ``change`` of it."""
    match expr:
        case IntegerValue(operand):
            return IntegerValue(change(operand))
        case FloatBinary(op, left, right):
            return FloatBinary(op, over_integers(left, change), over_integers(right, change))
        case SquareRoot(operand):
            return SquareRoot(over_integers(operand, change))
    return expr
