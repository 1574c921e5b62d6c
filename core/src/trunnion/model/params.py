"""What a caller passes: tensors and scalars, and the signature that they form together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.model.dtypes import DType, dtype
from trunnion.model.expr import Expr, Symbol, as_expr
from trunnion.model.expr_tree import symbols_of
from trunnion.model.fields import instance, instances, integer, members, place, text
from trunnion.model.tensormap import TiledTensorMap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

__all__ = ["Check", "Param", "ScalarParam", "Signature", "TensorParam"]

_MAX_RANK = 64  # DLPack and torch both stop here
_ACCESS = ("read", "write", "read_write")


_MAX_ALIGNMENT = 1 << 40


def exprs(values: object, field: str) -> tuple[Expr, ...]:
    """Return a sequence of expressions and integers as expressions.

    Raises
    ------
    ProgramError
        If it is something else; the member's place is named.
    """
    result = []
    for axis, value in enumerate(members(values, field)):
        with place(f"{field}[{axis}]"):
            result.append(as_expr(value))  # type: ignore[arg-type]  # which checks it
            tuple(symbols_of(result[-1]))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class TensorParam:
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text(self.name, "name"))
        with place(f"tensor {shorten(self.name)}"):
            self._normalise()

    def _normalise(self) -> None:
        with place("dtype"):
            object.__setattr__(self, "dtype", dtype(self.dtype))
        object.__setattr__(self, "shape", exprs(self.shape, "shape"))
        if len(self.shape) > _MAX_RANK:
            raise ProgramError(
                f"got {len(self.shape)} dimensions, expected at most {_MAX_RANK}", field="shape"
            )
        if self.strides is not None:
            strides = exprs(self.strides, "strides")
            object.__setattr__(self, "strides", strides)
            if len(strides) != len(self.shape):
                raise ProgramError(
                    f"got {len(strides)} strides for {len(self.shape)} dimensions", field="strides"
                )
        for axis, extent in enumerate(self.shape):
            if extent.bounds.high < 0:
                raise ProgramError("the extent is negative in every call", field=f"shape[{axis}]")
        access = text(self.access, "access")
        object.__setattr__(self, "access", access)
        if access not in _ACCESS:
            raise ProgramError(f"got {shorten(access)}, expected one of {', '.join(_ACCESS)}", field="access")
        if self.alignment is not None:
            alignment = integer(self.alignment, "alignment", 1, _MAX_ALIGNMENT)
            if alignment & (alignment - 1):
                raise ProgramError(f"got {alignment}, expected a power of two", field="alignment")

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def tiled(self, box_dim: Sequence[int], **fields: Any) -> TiledTensorMap:
        """Return a tiled tensor map over this tensor; the fields are those of `TiledTensorMap`.

        Parameters
        ----------
        box_dim
            Elements of the box along each dimension, outermost first.
        **fields
            Further fields of the map.

        Raises
        ------
        ProgramError
            If a field is wrong or unknown; it is named.
        """
        unknown = sorted(fields.keys() - TiledTensorMap.__match_args__)
        if unknown:
            raise ProgramError(f"got unknown fields {', '.join(unknown)}", field="tensor map")
        return TiledTensorMap(self, box_dim, **fields)  # type: ignore[arg-type]  # the constructor normalises


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A number of a signature. As a kernel's argument it travels by value, in its own type."""

    name: str
    """What people call it; any text."""

    dtype: DType
    """The type in which it travels. What it cannot hold is refused; floats are rounded once, to nearest even."""

    symbol: Symbol | None = None
    """The symbol that stands for its value in expressions; for integers only."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text(self.name, "name"))
        with place(f"scalar {shorten(self.name)}"):
            with place("dtype"):
                object.__setattr__(self, "dtype", dtype(self.dtype))
            if not self.dtype.struct_code:
                raise ProgramError(f"dtype {self.dtype} cannot travel as a scalar", field="dtype")
            if self.symbol is not None:
                instance(self.symbol, Symbol, "symbol")
            if self.symbol is not None and not self.dtype.is_integer:
                raise ProgramError(
                    f"got dtype {self.dtype}, expected an integer type under a symbol", field="symbol"
                )


Param = TensorParam | ScalarParam
"""Anything that a caller passes."""


@dataclass(frozen=True, slots=True)
class Check:
    """A condition of the author's own, checked at every call after all symbols have their values."""

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

    A symbol gets its value, at each call, from its first bare occurrence in `params`: shapes first, then strides,
    then scalars, each in the order of the parameters. Every other occurrence is checked against that value. Outputs
    never give a symbol its value.
    """

    params: tuple[Param, ...] = ()
    """What the caller passes, in order."""

    outputs: tuple[TensorParam, ...] = ()
    """Tensors that the launcher allocates, or that the caller gives under ``out=``; returned in this order."""

    checks: tuple[Check, ...] = ()
    """Conditions of the author's own."""

    def __post_init__(self) -> None:
        for name, kind in (
            ("params", (TensorParam, ScalarParam)),
            ("outputs", TensorParam),
            ("checks", Check),
        ):
            object.__setattr__(self, name, instances(getattr(self, name), kind, name))
        for index, output in enumerate(self.outputs):
            if output.strides is not None:
                raise ProgramError(
                    "got strides, expected none: the launcher allocates outputs, contiguous and row-major",
                    field=f"outputs[{index}].strides",
                )
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

    @property
    def tensors(self) -> tuple[TensorParam, ...]:
        """The tensors among `params`, in order."""
        return tuple(param for param in self.params if isinstance(param, TensorParam))

    @property
    def scalars(self) -> tuple[ScalarParam, ...]:
        """The scalars among `params`, in order."""
        return tuple(param for param in self.params if isinstance(param, ScalarParam))

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
