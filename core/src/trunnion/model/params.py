"""What a caller passes: tensors, numbers, addresses and bytes, and the signature that they form together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, UnboundSymbolError, shorten
from trunnion.messages import one_of
from trunnion.model.dtypes import DType, Kind, dtype
from trunnion.model.expr import Expr, OutsideExpr, Symbol, as_expr
from trunnion.model.expr_text import format_expr
from trunnion.model.expr_tree import facts_of, symbols_of
from trunnion.model.fields import flag, instance, instances, integer, place, text
from trunnion.model.memory import exprs, power_of_two
from trunnion.model.passed_memory import PassedMemory
from trunnion.model.scalars import scalar_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Check", "Param", "PointerParam", "ScalarParam", "Signature", "StructParam", "TensorParam"]

_MAX_SHOWN = 80  # characters of an expression in a message
_ACCESS = ("read", "write", "read_write")
_ACCESS_ALIASES = {"r": "read", "w": "write", "rw": "read_write"}
_MAX_ALIGNMENT = 1 << 40
_MAX_STRUCT = (
    32764  # the most bytes of parameters that a kernel can have (CUDA C++ Programming Guide, 12.1 on)
)
_MAX_STRUCT_ALIGNMENT = 128


@dataclass(frozen=True, slots=True)
class TensorParam(PassedMemory):
    """A tensor of a signature. As a kernel's argument it is the pointer to its first element."""

    name: str
    """What people call it; any text. It is shown in messages and never becomes an identifier."""

    dtype: DType
    """The element type; checked at every call."""

    shape: tuple[Expr, ...]
    """Elements along each dimension, outermost first: symbols or expressions."""

    strides: tuple[Expr, ...] | None = None
    """Elements between neighbours along each dimension; None: contiguous, row-major. Extents of 1 do not care.

    An output has none: it is contiguous.
    """

    access: str = "read"
    """What kernels do with it: ``"read"``, ``"write"`` or ``"read_write"``."""

    alignment: int | None = None
    """Bytes that the first element's address is a multiple of: a power of two; None: the element's own size."""

    nullable: bool = False
    """Whether the caller may pass None: the kernel is given a null pointer. Not for outputs."""

    fill: float | complex | None = field(default=None, compare=False)
    """What every element of an output is before the first launch, under ``out=`` too; None: left as it is."""

    fill_data: bytes | None = field(init=False, repr=False)
    """One element's bytes under `fill`, least first: by them tensors are equal, so 0.0 is not -0.0, and NaN is NaN."""

    __hash__ = PassedMemory.__hash__

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text(self.name, "name"))
        with place(f"tensor {shorten(self.name)}"):
            self._normalise()

    def _normalise(self) -> None:
        with place("dtype"):
            object.__setattr__(self, "dtype", dtype(self.dtype))
        object.__setattr__(self, "shape", exprs(self.shape, "shape"))
        self.check_shape()
        _refuse_facts(self.shape, "shape")
        if self.strides is not None:
            strides = exprs(self.strides, "strides")
            object.__setattr__(self, "strides", strides)
            if len(strides) != len(self.shape):
                raise ProgramError(
                    f"got {len(strides)} strides for {len(self.shape)} dimensions", field="strides"
                )
            _refuse_facts(strides, "strides")
        access = text(self.access, "access")
        object.__setattr__(self, "access", access)
        if access not in _ACCESS:
            raise ProgramError(
                f"got {shorten(access)}, {one_of(access, _ACCESS, _ACCESS_ALIASES)}", field="access"
            )
        if self.alignment is not None:
            power_of_two(self.alignment, "alignment", _MAX_ALIGNMENT)
        flag(self.nullable, "nullable")
        filled = None if self.fill is None else scalar_bytes(self.fill, self.dtype, "fill")
        object.__setattr__(self, "fill_data", filled)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def steps(self) -> tuple[Expr, ...]:
        """Return `strides` with its default filled in."""
        return PassedMemory.steps(self) if self.strides is None else self.strides


def _refuse_facts(numbers: tuple[Expr, ...], field: str) -> None:
    """Refuse a tensor whose layout a device decides: its caller, and whoever traces the call, goes by it before.

    Raises
    ------
    ProgramError
        If there is a fact of the device in it.
    """
    for axis, number in enumerate(numbers):
        for fact in facts_of(number):
            raise ProgramError(
                f"got {fact.spelled}, expected symbols and numbers: the layout of a tensor is known before the device "
                "is; give it a symbol, and compare that in a check, or use a workspace",
                field=f"{field}[{axis}]",
            )


@dataclass(frozen=True, slots=True)
class ScalarParam(OutsideExpr):
    """A number of a signature. As a kernel's argument it travels by value, in its own type."""

    name: str
    """What people call it; any text."""

    dtype: DType
    """The type in which it travels. What it cannot hold is refused; floats are rounded once, to nearest even.

    A complex number travels as its real part and its imaginary part.
    """

    symbol: Symbol | None = None
    """The symbol that stands for its value in expressions; for integers and booleans only, of which True is 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text(self.name, "name"))
        with place(f"scalar {shorten(self.name)}"):
            with place("dtype"):
                object.__setattr__(self, "dtype", dtype(self.dtype))
            if not self.dtype.struct_code:
                raise ProgramError(f"dtype {self.dtype} cannot travel as a scalar", field="dtype")
            if self.symbol is not None:
                instance(self.symbol, Symbol, "symbol")
            if self.symbol is not None and not (self.dtype.is_integer or self.dtype.kind is Kind.BOOL):
                raise ProgramError(
                    f"got dtype {self.dtype}, expected an integer type or bool under a symbol", field="symbol"
                )

    def _instead(self) -> str:
        if self.symbol is not None:
            return f"write its symbol, {self.symbol}"
        if self.dtype.is_integer or self.dtype.kind is Kind.BOOL:
            return f"give it a symbol: scalar({shorten(self.name)}, '{self.dtype}', symbol=n), and write n"
        return "expressions are of integers: compute with it in the kernel"


@dataclass(frozen=True, slots=True)
class PointerParam(OutsideExpr):
    """An address of a signature, which the caller passes as a number. As a kernel's argument it is that pointer.

    Nothing is known of the memory behind it, so nothing of it is checked: pass tensors where there are tensors.
    """

    name: str
    """What people call it; any text."""

    nullable: bool = False
    """Whether the caller may pass None, for a null pointer; 0 is refused otherwise."""

    alignment: int = 1
    """Bytes that the address is a multiple of: a power of two."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text(self.name, "name"))
        with place(f"pointer {shorten(self.name)}"):
            flag(self.nullable, "nullable")
            power_of_two(self.alignment, "alignment", _MAX_ALIGNMENT)


@dataclass(frozen=True, slots=True)
class StructParam(OutsideExpr):
    """A struct of a signature: bytes that reach the kernel by value.

    The caller passes an object with the buffer protocol: ``bytes``, a ``ctypes.Structure``, a NumPy record.
    """

    name: str
    """What people call it; any text."""

    nbytes: int
    """``sizeof`` of the struct, trailing padding included: a multiple of `alignment`."""

    alignment: int
    """``alignof`` of the struct, in bytes: a power of two."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text(self.name, "name"))
        with place(f"struct {shorten(self.name)}"):
            integer(self.nbytes, "nbytes", 1, _MAX_STRUCT)
            power_of_two(self.alignment, "alignment", _MAX_STRUCT_ALIGNMENT)
            if self.nbytes % self.alignment:
                raise ProgramError(
                    f"got {self.nbytes} bytes, expected a multiple of the alignment {self.alignment}",
                    field="nbytes",
                )


Param = TensorParam | ScalarParam | PointerParam | StructParam
"""Anything that a caller passes."""


@dataclass(frozen=True, slots=True)
class Check:
    """A condition of the author's own, checked at every call after all symbols have their values.

    One over facts of the device is checked once these are known, after the arguments were.
    """

    condition: Expr
    """Any value but 0 lets the call pass."""

    message: str
    """What the caller is told otherwise: what is expected."""

    def __post_init__(self) -> None:
        with place("condition"):
            object.__setattr__(self, "condition", as_expr(self.condition))
            tuple(symbols_of(self.condition))
        object.__setattr__(self, "message", text(self.message, "message"))


@dataclass(frozen=True, slots=True)
class Signature:
    """What a program takes and gives back.

    A symbol gets its value, at each call, from its first bare occurrence in `params` that is there: shapes first, then
    strides, then scalars, each in the order of the parameters; of a tensor that the caller leaves out, nothing is
    there. Every other occurrence is checked against that value. Outputs never give a symbol its value: one that stands
    nowhere else is refused.
    """

    params: tuple[Param, ...] = ()
    """What the caller passes, in order."""

    outputs: tuple[TensorParam, ...] = ()
    """Tensors that the launcher allocates, or that the caller gives under ``out=``; returned in this order."""

    checks: tuple[Check, ...] = ()
    """Conditions of the author's own."""

    def __post_init__(self) -> None:
        for name, kind in (
            ("params", (TensorParam, ScalarParam, PointerParam, StructParam)),
            ("outputs", TensorParam),
            ("checks", Check),
        ):
            object.__setattr__(self, name, instances(getattr(self, name), kind, name))
        self._check_roles()
        seen: set[str] = set()
        for param in (*self.params, *self.outputs):
            if param.name in seen:
                raise ProgramError(f"two parameters are called {shorten(param.name)}", field="signature")
            seen.add(param.name)
        known: dict[str, Symbol] = {}
        for symbol in self._symbols():
            if known.setdefault(symbol.name, symbol) != symbol:
                raise ProgramError(
                    f"symbol {shorten(symbol.name)} is declared twice with different bounds",
                    field="signature",
                )

        self._check_bound()

    def _check_bound(self) -> None:
        """Refuse a symbol that no call could give a value.

        Raises
        ------
        UnboundSymbolError
            If no input has it as a bare dimension, stride or scalar.
        """
        bare: set[Expr | None] = {scalar.symbol for scalar in self.scalars}
        bare |= {one for tensor in self.tensors for one in (*tensor.shape, *(tensor.strides or ()))}
        for symbol in self.symbols():
            if symbol not in bare:
                raise UnboundSymbolError(symbol.name, self._mentions(symbol))

    def _mentions(self, symbol: Symbol) -> Iterator[str]:
        """Say where a symbol stands that nothing binds: inside of expressions, in outputs, in checks."""
        places = [
            (f"{word} {axis} of {owner}{shorten(tensor.name)}", expr)
            for word, owner, tensors in (
                ("dimension", "", self.tensors),
                ("stride", "", self.tensors),
                ("dimension", "output ", self.outputs),
            )
            for tensor in tensors
            for axis, expr in enumerate(tensor.shape if word == "dimension" else tensor.strides or ())
        ]
        places += [(f"check {index}", check.condition) for index, check in enumerate(self.checks)]
        for where, expr in places:
            if symbol in symbols_of(expr):
                shown = format_expr(expr)
                yield f"{where} is {shown if len(shown) <= _MAX_SHOWN else shown[:_MAX_SHOWN] + '...'}"

    def _check_roles(self) -> None:
        """Refuse what means nothing for an output, or for an input."""
        for index, output in enumerate(self.outputs):
            if output.strides is not None:
                raise ProgramError(
                    "got strides, expected none: the launcher allocates outputs, contiguous and row-major",
                    field=f"outputs[{index}].strides",
                )
            if output.nullable:
                raise ProgramError("an output is always there", field=f"outputs[{index}].nullable")
        for index, param in enumerate(self.params):
            if isinstance(param, TensorParam) and param.fill is not None:
                raise ProgramError("only an output can be filled", field=f"params[{index}].fill")

    @property
    def tensors(self) -> tuple[TensorParam, ...]:
        """The tensors among `params`, in order."""
        return tuple(param for param in self.params if isinstance(param, TensorParam))

    @property
    def scalars(self) -> tuple[ScalarParam, ...]:
        """The scalars among `params`, in order."""
        return tuple(param for param in self.params if isinstance(param, ScalarParam))

    @property
    def pointers(self) -> tuple[PointerParam, ...]:
        """The addresses among `params`, in order."""
        return tuple(param for param in self.params if isinstance(param, PointerParam))

    @property
    def structs(self) -> tuple[StructParam, ...]:
        """The structs among `params`, in order."""
        return tuple(param for param in self.params if isinstance(param, StructParam))

    def symbols(self) -> tuple[Symbol, ...]:
        """Return every symbol, in the order of its first occurrence."""
        return tuple(dict.fromkeys(self._symbols()))

    def _symbols(self) -> Iterator[Symbol]:
        for tensor in (*self.tensors, *self.outputs):
            for expr in (*tensor.shape, *(tensor.strides or ())):
                yield from symbols_of(expr)
        for scalar in self.scalars:
            if scalar.symbol is not None:
                yield scalar.symbol
        for check in self.checks:
            yield from symbols_of(check.condition)
