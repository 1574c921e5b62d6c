"""Integer expressions of a host function as trunnion's.

Trunnion computes in 64 signed bits and checks each step, where the host function computes in each type's own width and
lets the hardware wrap. So a value is either the one that the author meant or an error at the call: an unsigned
operation whose result leaves its type is refused there, and a cast that would cut bits off is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.errors import ProgramError
from trunnion.messages import describe, shorten, type_name
from trunnion.model.dtypes import DTYPES
from trunnion.model.expr import (
    Const,
    Expr,
    Op,
    as_expr,
    binary,
    eq,
    lt,
    maximum,
    minimum,
    ne,
    select,
)  # fmt: skip
from trunnion.model.interval import INT64, Interval
from trunnion_tilelang.errors import Refusal
from trunnion_tilelang.nodes import Binary, Call, Cast, Float, Int, Load, Node, Not, Select, Str, Unknown, Var

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Arithmetic", "integer_range"]


def _may_be_negative(*values: Expr) -> bool:
    return any(value.bounds.low < 0 for value in values)


def _truncated(left: Expr, right: Expr) -> Expr:
    """Return a quotient without its fraction, as C has it: floor division rounds a negative one down."""
    if not _may_be_negative(left, right):
        return left // right
    quotient = _magnitude(left) // _magnitude(right)
    return select(eq(lt(left, 0), lt(right, 0)), quotient, 0 - quotient)


def _magnitude(value: Expr) -> Expr:
    return select(lt(value, 0), 0 - value, value) if _may_be_negative(value) else value


_LOGIC: Mapping[str, Callable[[Expr, Expr], Expr]] = {
    "and": lambda a, b: select(a, _cast(b, "bool"), 0),
    "or": lambda a, b: select(a, 1, _cast(b, "bool")),
}
_COMPARISONS = {"eq": Op.EQ, "ne": Op.NE, "lt": Op.LT, "le": Op.LE, "gt": Op.GT, "ge": Op.GE}
_OPERATIONS: Mapping[str, Callable[[Expr, Expr], Expr]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b,
    "div": _truncated,
    "mod": lambda a, b: a - b * _truncated(a, b) if _may_be_negative(a, b) else a % b,
    "min": minimum,
    "max": maximum,
}


def _shifted(value: Expr, count: Expr, scaled: Callable[[Expr, int], Expr], otherwise: Op) -> Expr:
    """Return a shift; by a constant it is a factor, of which `trunnion_tilelang.polynomial` knows more."""
    if isinstance(count, Const) and 0 <= count.value <= _WIDEST_FACTOR:
        return scaled(value, 1 << count.value)
    return binary(otherwise, value, count)


def _masked(left: Expr, right: Expr) -> Expr:
    """Return the common bits; those below a power of two are a remainder, of which the same holds."""
    for value, mask in ((left, right), (right, left)):
        if isinstance(mask, Const) and 0 <= mask.value < INT64.high and not (mask.value + 1) & mask.value:
            return value % (mask.value + 1)
    return left & right


_WIDEST_FACTOR = 62
_BITS: Mapping[str, Callable[[Expr, Expr], Expr]] = {
    "shift_left": lambda a, b: _shifted(a, b, lambda value, factor: value * factor, Op.SHL),
    "shift_right": lambda a, b: _shifted(a, b, lambda value, factor: value // factor, Op.SHR),
    "bitwise_and": _masked,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
}


def integer_range(dtype: str) -> Interval:
    """Return the values of an integer type of TVM's, as far as 64 signed bits reach.

    Raises
    ------
    Refusal
        If it is no integer type.
    """
    if dtype == "bool":
        return Interval(0, 1)
    row = DTYPES.get(dtype)
    if row is None or not row.is_integer:
        raise Refusal(f"a value of type {dtype} is no integer: a program computes with integers only")
    return Interval(*row.integer_range).clipped(INT64)


class Arithmetic:
    """Translates expressions, given what variables stand for.

    Parameters
    ----------
    values
        The integer variables' values by key; it may grow.
    load
        Returns the value of an element of a buffer that the host function may read.
    is_null
        Returns whether a pointer is null, as 0 or 1.
    """

    def __init__(
        self, values: Mapping[int, Expr], load: Callable[[Load], Expr], is_null: Callable[[Node], Expr]
    ) -> None:
        self._values, self._load, self._is_null = values, load, is_null

    def expr(self, node: Node) -> Expr:
        """Return the value of an expression.

        Raises
        ------
        Refusal
            If a program cannot say it.
        """
        try:
            return self._expr(node)
        except ProgramError as error:  # a division by zero, for example
            raise Refusal(str(error)) from error

    def _expr(self, node: Node) -> Expr:
        translate = _TRANSLATORS.get(type(node))
        if translate is None:
            raise Refusal(f"{_describe(node)} is no integer: a program computes with integers only")
        return translate(self, node)

    def integer(self, node: Int) -> Expr:
        """Return a constant."""
        return as_expr(node.value)

    def negation(self, node: Not) -> Expr:
        """Return 1 if a condition does not hold, else 0."""
        return eq(self._expr(node.operand), 0)

    def conversion(self, node: Cast) -> Expr:
        """Return a value as another type."""
        return _cast(self._expr(node.operand), node.dtype)

    def element(self, node: Load) -> Expr:
        """Return an extent or a stride."""
        return self._load(node)

    def variable(self, var: Var) -> Expr:
        """Return what a variable stands for."""
        value = self._values.get(var.key)
        if value is None:
            what = f"{shorten(var.name)} of type {var.dtype}"
            raise Refusal(f"the variable {what} has no value that a program's expressions can use")
        return value

    def select(self, node: Select) -> Expr:
        """Return one of two values."""
        test = self._expr(node.condition)
        if isinstance(test, Const):  # the other side may be something that only exists where it is chosen
            return self._expr(node.then if test.value else node.otherwise)
        return select(test, self._expr(node.then), self._expr(node.otherwise))

    def binary(self, node: Binary) -> Expr:
        """Return an operation on two values."""
        left, right = self._expr(node.left), self._expr(node.right)
        if node.op in _LOGIC:
            return _LOGIC[node.op](left, right)
        if node.op in _COMPARISONS:
            return binary(_COMPARISONS[node.op], left, right)
        return _unwrapped(_OPERATIONS[node.op](left, right), node.dtype)

    def call(self, node: Call) -> Expr:
        """Return what an intrinsic computes."""
        match node.op, node.args:
            case (
                ("shift_left" | "shift_right" | "bitwise_and" | "bitwise_or" | "bitwise_xor"),
                (left, right),
            ):
                return _unwrapped(_BITS[node.op](self._expr(left), self._expr(right)), node.dtype)
            case "isnullptr", (pointer,):
                return self._is_null(pointer)
            case "likely", (value,):
                return self._expr(value)
        raise Refusal(f"the intrinsic {node.op} has no meaning in a program's expressions")


_TRANSLATORS: Mapping[type[Node], Callable[[Arithmetic, Any], Expr]] = {
    Int: Arithmetic.integer,
    Var: Arithmetic.variable,
    Binary: Arithmetic.binary,
    Not: Arithmetic.negation,
    Cast: Arithmetic.conversion,
    Select: Arithmetic.select,
    Load: Arithmetic.element,
    Call: Arithmetic.call,
}


def _cast(value: Expr, dtype: str) -> Expr:
    """Return a value as an integer type of TVM's; nothing is written where nothing can be cut off."""
    if dtype == "bool":
        return value if value.bounds.within(Interval(0, 1)) else ne(value, 0)
    return value if value.bounds.within(integer_range(dtype)) else value.cast(dtype)


def _unwrapped(value: Expr, dtype: str) -> Expr:
    """Return what an operation computes, an error at the call where the hardware would wrap an unsigned result."""
    return _cast(value, dtype) if dtype.startswith("uint") else value


def _describe(node: Node) -> str:
    match node:
        case Float(value=value):
            return f"the constant {value:g}"
        case Str(value=value):
            return f"the text {describe(value)}"
        case Unknown(kind=kind):
            return f"an expression of the kind {kind}"
    return type_name(node)
