"""Integer expressions over symbols: extents, strides, grids, conditions and integer kernel arguments.

Floor semantics everywhere, as in Python. Every intermediate value is a signed 64-bit integer: where interval analysis
over the symbols' bounds cannot prove that a value fits, it is checked at each call. The bits of a value are those of
two's complement; a shift moves them by 0 to 63, and by any other number is an error as a division by zero is. ``==``
compares structure, and an expression has no truth value; use `eq`, `lt`, … to compare values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from trunnion.errors import ExprError, shorten
from trunnion.messages import describe, spelled
from trunnion.model.dtypes import DType, Kind, dtype, item_advice
from trunnion.model.fields import instance, integer, place, text
from trunnion.model.interval import INT64, INT64_MAX, SHIFTS, Interval
from trunnion.model.op import Op
from trunnion.plain import is_a

if TYPE_CHECKING:
    from trunnion.model.float_expr import FloatExpr, FloatLike

__all__ = [
    "Binary", "Cast", "Const", "Expr", "ExprLike", "NonInteger", "Op", "OutsideExpr", "Select", "Slot", "Symbol",
    "as_expr", "binary", "ceildiv", "eq", "folded", "gcd", "ge", "gt", "integer_error", "le", "lt", "maximum",
    "minimum", "ne", "select", "set_size", "symbols",
]  # fmt: skip

_MAX_DEPTH = 100
_MAX_NODES = 4096
EXPRESSION = "an integer, a symbol or an expression"
"""What is allowed where an expression stands, in words."""

_BETWEEN_NAMES = re.compile(r"\s*,\s*|\s+")


@dataclass(frozen=True, slots=True)
class Expr:
    """An integer expression; see the module's text. Made by operators and the functions of this module."""

    bounds: Interval = field(init=False, compare=False, repr=False)
    """Every value that the expression can take, given its symbols' bounds."""

    depth: int = field(init=False, compare=False, repr=False)
    """The height of the tree; a leaf has 1."""

    nodes: int = field(init=False, compare=False, repr=False)
    """The number of nodes, shared ones counted each time."""

    # What is no expression of integers answers itself, by its own reflected operator: a float one makes another.

    def __add__(self, other: ExprLike) -> Expr:
        return NotImplemented if is_a(other, NonInteger) else binary(Op.ADD, self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return binary(Op.ADD, other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return NotImplemented if is_a(other, NonInteger) else binary(Op.SUB, self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return binary(Op.SUB, other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return NotImplemented if is_a(other, NonInteger) else binary(Op.MUL, self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return binary(Op.MUL, other, self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return binary(Op.FLOORDIV, self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return binary(Op.FLOORDIV, other, self)

    def __mod__(self, other: ExprLike) -> Expr:
        return binary(Op.MOD, self, other)

    def __rmod__(self, other: ExprLike) -> Expr:
        return binary(Op.MOD, other, self)

    def __and__(self, other: ExprLike) -> Expr:
        return binary(Op.AND, self, other)

    def __rand__(self, other: ExprLike) -> Expr:
        return binary(Op.AND, other, self)

    def __or__(self, other: ExprLike) -> Expr:
        return binary(Op.OR, self, other)

    def __ror__(self, other: ExprLike) -> Expr:
        return binary(Op.OR, other, self)

    def __xor__(self, other: ExprLike) -> Expr:
        return binary(Op.XOR, self, other)

    def __rxor__(self, other: ExprLike) -> Expr:
        return binary(Op.XOR, other, self)

    def __lshift__(self, other: ExprLike) -> Expr:
        return binary(Op.SHL, self, other)

    def __rlshift__(self, other: ExprLike) -> Expr:
        return binary(Op.SHL, other, self)

    def __rshift__(self, other: ExprLike) -> Expr:
        return binary(Op.SHR, self, other)

    def __rrshift__(self, other: ExprLike) -> Expr:
        return binary(Op.SHR, other, self)

    def __neg__(self) -> Expr:
        return binary(Op.SUB, 0, self)

    def __invert__(self) -> NoReturn:
        raise ExprError(
            "every bit is turned by -1 - a, and a condition by 1 - c, not by ~", field="expression"
        )

    def __lt__(self, other: object) -> NoReturn:
        raise ExprError(
            "values are compared by lt(a, b), not by a < b; min and max are minimum(a, b) and maximum(a, b)",
            field="expression",
        )

    def __le__(self, other: object) -> NoReturn:
        raise ExprError("values are compared by le(a, b), not by a <= b", field="expression")

    def __gt__(self, other: object) -> NoReturn:
        raise ExprError("values are compared by gt(a, b), not by a > b", field="expression")

    def __ge__(self, other: object) -> NoReturn:
        raise ExprError("values are compared by ge(a, b), not by a >= b", field="expression")

    def __truediv__(self, other: FloatLike) -> FloatExpr:
        from trunnion.model.float_expr import FloatOp, float_binary  # noqa: PLC0415 - it reads this module

        return float_binary(FloatOp.DIV, self, other)

    def __rtruediv__(self, other: FloatLike) -> FloatExpr:
        from trunnion.model.float_expr import FloatOp, float_binary  # noqa: PLC0415 - it reads this module

        return float_binary(FloatOp.DIV, other, self)

    def __pow__(self, other: object) -> NoReturn:
        raise ExprError("a power is written a * a, and one of two 1 << a, not a ** b", field="expression")

    def __rpow__(self, other: object) -> NoReturn:
        self.__pow__(other)

    def __bool__(self) -> NoReturn:
        raise ExprError(
            "an expression has no truth value before a call; use eq(), lt(), select() to build one"
        )

    def __str__(self) -> str:
        """Return the text as its author would write it; a plan's slot, which no author writes, is its number."""
        from trunnion.model.expr_text import format_expr  # noqa: PLC0415 - it reads this module

        return format_expr(self, ())

    def cast(self, to: DType | str) -> Expr:
        """Return this value as an integer of type ``to``; out of its range is an error at the call.

        Parameters
        ----------
        to
            An integer type.

        Raises
        ------
        ExprError
            If ``to`` is not an integer type, or the value is constant and out of range.
        """
        return Cast(self, dtype(to))


class NonInteger:
    """What kernels take and expressions of integers do not."""

    __slots__ = ()

    def _described(self) -> str:
        """Return what it is, for a message."""
        return describe(self)

    def _instead(self) -> str:
        """Return what to write instead."""
        return "compute with it in the kernel"


class OutsideExpr(NonInteger):
    """What no arithmetic takes: it says what to write instead."""

    __slots__ = ()

    def _refuse(self, other: object = None) -> NoReturn:  # noqa: ARG002 - the other operand is not at fault
        as_expr(self)  # type: ignore[arg-type]  # which refuses it
        raise NotImplementedError

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __invert__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __getitem__ = _refuse
    __iter__: None = None  # no sequence either, which an item by its number would make it

    def cast(self, to: DType | str) -> NoReturn:  # noqa: ARG002 - whatever the type
        """Refuse a cast, which is an expression's.

        Raises
        ------
        ExprError
            Always; it says what to write instead.
        """
        self._refuse()


ExprLike = Expr | int
"""Where an expression is wanted, an integer will do."""


@dataclass(frozen=True, slots=True)
class Const(Expr):
    """A number."""

    value: int
    """The value: a signed 64-bit integer."""

    def __post_init__(self) -> None:
        _check_int64(self.value, "value")
        _seal(self, Interval(self.value, self.value))


@dataclass(frozen=True, slots=True)
class Symbol(Expr):
    """A number that each call gives, by the extent, stride or scalar that the symbol stands for."""

    name: str
    """What people call it. It is shown in messages and never becomes an identifier."""

    min: int = field(default=0, kw_only=True)
    """The least value that a call may give it."""

    max: int = field(default=INT64_MAX, kw_only=True)
    """The greatest value that a call may give it."""

    multiple_of: int = field(default=1, kw_only=True)
    """A call may give it only multiples of this."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text(self.name, "symbol.name"))
        with place(f"symbol {shorten(self.name)}"):
            for name in ("min", "max"):
                _check_int64(getattr(self, name), name)
            integer(self.multiple_of, "multiple_of", 1, INT64_MAX)
            if self.min > self.max:
                raise ExprError(f"got min={self.min}, max={self.max}, expected min <= max", field="min")
            if -(-self.min // self.multiple_of) * self.multiple_of > self.max:
                raise ExprError(
                    f"no multiple of {self.multiple_of} lies in {self.min} to {self.max}", field="min"
                )
        _seal(self, Interval(self.min, self.max))


@dataclass(frozen=True, slots=True)
class Slot(Expr):
    """A symbol's value by its position in a `LaunchPlan`; programs never contain one."""

    index: int
    """The position in the plan's list of bindings."""

    low: int
    """The least value, taken over from the symbol."""

    high: int
    """The greatest value, taken over from the symbol."""

    def __post_init__(self) -> None:
        _seal(self, Interval(self.low, self.high))


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """An operation on two values. A comparison gives 1 or 0. A program has none that `binary` would fold."""

    op: Op
    """The operation."""

    left: Expr
    """The left operand."""

    right: Expr
    """The right operand."""

    exact: Interval = field(init=False, compare=False, repr=False)
    """The bounds before they are cut to 64 bits: outside of them lies what a call must check."""

    def __post_init__(self) -> None:
        instance(self.op, Op, "op")
        _check_operands(left=self.left, right=self.right)
        exact = self.op.bounds(self.left.bounds, self.right.bounds)
        object.__setattr__(self, "exact", exact)
        if self.op.divides and self.right.bounds == Interval(0, 0):
            raise ExprError("division by zero, whatever the call")
        if self.op.shifts and self.right.bounds.clipped(SHIFTS).low not in self.right.bounds:
            raise ExprError(f"a shift by {self.right.bounds}, whatever the call, expected {SHIFTS}")
        if exact.low > INT64.high or exact.high < INT64.low:
            raise ExprError("the value fits 64 signed bits in no call")
        _seal(self, exact.clipped(INT64), self.left, self.right)

    @property
    def may_overflow(self) -> bool:
        """Whether some call within the symbols' bounds could leave 64 bits."""
        return not self.exact.within(INT64)

    @property
    def may_divide_by_zero(self) -> bool:
        """Whether some call within the symbols' bounds could divide by zero."""
        return self.op.divides and 0 in self.right.bounds

    @property
    def may_shift_too_far(self) -> bool:
        """Whether some call within the symbols' bounds could shift by less than 0 or more than 63 bits."""
        return self.op.shifts and not self.right.bounds.within(SHIFTS)


@dataclass(frozen=True, slots=True)
class Select(Expr):
    """One of two values; only the chosen one is computed. A program has none that `select` would fold."""

    condition: Expr
    """Any value but 0 chooses `then`."""

    then: Expr
    """The value if the condition holds."""

    otherwise: Expr
    """The value if it does not."""

    def __post_init__(self) -> None:
        _check_operands(condition=self.condition, then=self.then, otherwise=self.otherwise)
        bounds = self.then.bounds.joined(self.otherwise.bounds)
        _seal(self, bounds, self.condition, self.then, self.otherwise)


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """A value as an integer of another width; out of range is an error, never a wrap."""

    operand: Expr
    """The value."""

    to: DType
    """The integer type."""

    def __post_init__(self) -> None:
        _check_operands(operand=self.operand)
        if not instance(self.to, DType, "to").is_integer:
            advice = f"; write real(n).cast('{self.to}')" if self.to.kind is Kind.FLOAT else ""
            raise ExprError(f"got a cast to {self.to}, expected an integer type{advice}")
        allowed, got = self.range, self.operand.bounds
        if got.low > allowed.high or got.high < allowed.low:
            raise ExprError(f"a value in [{got.low}, {got.high}] never fits {self.to}")
        _seal(self, got.clipped(allowed), self.operand)

    @property
    def range(self) -> Interval:
        """The values that the type can hold, as far as 64 signed bits reach."""
        return Interval(*self.to.integer_range).clipped(INT64)

    @property
    def may_be_out_of_range(self) -> bool:
        """Whether some call within the symbols' bounds could leave the type's range."""
        return not self.operand.bounds.within(self.range)


def _check_int64(value: object, field: str, expected: str = "an integer") -> None:
    if type(value) is not int:
        raise integer_error(value, field, expected)
    if value not in INT64:
        raise ExprError(f"got {describe(value)}, which does not fit 64 signed bits", field=field)


def integer_error(value: object, field: str = "", expected: str = EXPRESSION) -> ExprError:
    """Return the error of what stands where an integer must, with what to write instead."""
    got = value._described() if is_a(value, NonInteger) else describe(value)  # noqa: SLF001 - a class of this module's
    return ExprError(f"got {got}, expected {expected}{_advice(value)}", field=field)


def _advice(value: object) -> str:
    """Return what to write instead of what is no integer."""
    if type(value) is bool:
        return "; to compare values use eq(a, b), not =="
    if type(value) is float:
        whole = value.is_integer() and abs(value) <= INT64_MAX
        return (
            f"; write {int(value)}"
            if whole
            else "; write a fraction as a product and a quotient: n * 3 // 2, or a floating-point argument as "
            "real(n) * 1.5"
        )
    return f"; {value._instead()}" if is_a(value, NonInteger) else item_advice(value)  # noqa: SLF001 - a class of this module's


def _check_operands(**operands: object) -> None:
    for name, operand in operands.items():
        instance(operand, Expr, name)


def _seal(node: Expr, bounds: Interval, *children: Expr) -> None:
    set_size(node, *children)
    object.__setattr__(node, "bounds", bounds)


def set_size(node: Expr | FloatExpr, *children: Expr | FloatExpr) -> None:
    """Set the depth and the number of nodes of an expression, integer or floating-point, from its operands'.

    Raises
    ------
    ExprError
        If it is too deep or too large.
    """
    depth = 1 + max((child.depth for child in children), default=0)
    nodes = 1 + sum(child.nodes for child in children)
    if depth > _MAX_DEPTH or nodes > _MAX_NODES:
        got = f"an expression of depth {depth} with {nodes} nodes"
        raise ExprError(f"got {got}, expected at most {_MAX_DEPTH} and {_MAX_NODES}")
    object.__setattr__(node, "depth", depth)
    object.__setattr__(node, "nodes", nodes)


def as_expr(value: ExprLike) -> Expr:
    """Return ``value`` as an expression.

    Raises
    ------
    ExprError
        If it is neither an expression nor an integer (a bool is not an integer here).
    """
    if is_a(value, Expr):
        return value
    _check_int64(value, "", EXPRESSION)  # the field is the caller's to name
    return Const(value)


_NEUTRAL = {Op.ADD: Const(0), Op.SUB: Const(0), Op.MUL: Const(1), Op.FLOORDIV: Const(1)}


def binary(op: Op, left: ExprLike, right: ExprLike) -> Expr:
    """Return an operation on two values; constants are folded, and neutral elements dropped, at once."""
    a, b = as_expr(left), as_expr(right)
    found = _folded_binary(op, a, b)
    return Binary(op, a, b) if found is None else found


def _folded_binary(op: Op, a: Expr, b: Expr) -> Expr | None:
    if isinstance(a, Const) and isinstance(b, Const) and op.admits(b.value):
        return Const(op.compute(a.value, b.value))
    if b == _NEUTRAL.get(op):
        return a
    if a == _NEUTRAL.get(op) and op in (Op.ADD, Op.MUL):
        return b
    return None


def folded(node: Expr) -> Expr | None:
    """Return what `binary` and `select` give instead of such a node; None: they make just this one."""
    match node:
        case Binary(op, left, right):
            return _folded_binary(op, left, right)
        case Select(Const(value), then, otherwise):
            return then if value else otherwise
    return None


def ceildiv(numerator: ExprLike, denominator: ExprLike) -> Expr:
    """Return the quotient rounded up, as a grid needs it."""
    return binary(Op.CEILDIV, numerator, denominator)


def gcd(left: ExprLike, right: ExprLike) -> Expr:
    """Return the greatest common divisor, never negative; that of 0 and a number is the number's magnitude."""
    return binary(Op.GCD, left, right)


def minimum(left: ExprLike, right: ExprLike) -> Expr:
    """Return the smaller value."""
    return binary(Op.MIN, left, right)


def maximum(left: ExprLike, right: ExprLike) -> Expr:
    """Return the greater value."""
    return binary(Op.MAX, left, right)


def eq(left: ExprLike, right: ExprLike) -> Expr:
    """Return 1 if the values are equal, else 0."""
    return binary(Op.EQ, left, right)


def ne(left: ExprLike, right: ExprLike) -> Expr:
    """Return 1 if the values differ, else 0."""
    return binary(Op.NE, left, right)


def lt(left: ExprLike, right: ExprLike) -> Expr:
    """Return 1 if ``left`` is less, else 0."""
    return binary(Op.LT, left, right)


def le(left: ExprLike, right: ExprLike) -> Expr:
    """Return 1 if ``left`` is not greater, else 0."""
    return binary(Op.LE, left, right)


def gt(left: ExprLike, right: ExprLike) -> Expr:
    """Return 1 if ``left`` is greater, else 0."""
    return binary(Op.GT, left, right)


def ge(left: ExprLike, right: ExprLike) -> Expr:
    """Return 1 if ``left`` is not less, else 0."""
    return binary(Op.GE, left, right)


def select(condition: ExprLike, then: ExprLike, otherwise: ExprLike) -> Expr:
    """Return ``then`` if ``condition`` is not 0, else ``otherwise``; only the chosen one is computed."""
    test, one, other = as_expr(condition), as_expr(then), as_expr(otherwise)
    if isinstance(test, Const):
        return one if test.value else other
    return Select(test, one, other)


def symbols(names: str) -> tuple[Symbol, ...]:
    """Return one symbol for each of ``names``, with default bounds; between them stand spaces, commas or both.

    Raises
    ------
    ExprError
        If there is no name, or none between two commas.
    """
    words = _BETWEEN_NAMES.split((spelled(names) or "").strip().removesuffix(",").strip())
    if "" in words:
        raise ExprError(f"got {describe(names)}, expected one text of names, such as 'm n k' or 'm, n, k'")
    return tuple(Symbol(word) for word in words)
