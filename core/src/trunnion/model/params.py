"""What a caller passes: tensors and scalars, and the signature that they form together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.model.dtypes import DType, dtype
from trunnion.model.expr import Expr, ExprLike, Symbol, as_expr, walk
from trunnion.model.tensormap import TiledTensorMap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

__all__ = ["Check", "Param", "ScalarParam", "Signature", "TensorParam"]

_MAX_RANK = 64  # DLPack and torch both stop here
_ACCESS = ("read", "write", "read_write")


def _exprs(values: Sequence[ExprLike], field: str) -> tuple[Expr, ...]:
    if isinstance(values, (Expr, int, str)):
        raise ProgramError(f"got {type(values).__name__}, expected a sequence of extents", field=field)
    result = []
    for axis, value in enumerate(values):
        try:
            result.append(as_expr(value))
        except ProgramError as error:
            raise error.within(f"{field}[{axis}]") from None
    return tuple(result)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise ProgramError(f"got {name!r}, expected a text of at least one character", field="name")


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
    """Elements between neighbours along each dimension; None: contiguous, row-major. Dimensions of extent 1 do not care."""

    access: str = "read"
    """What kernels do with it: ``"read"``, ``"write"`` or ``"read_write"``."""

    alignment: int | None = None
    """Bytes that the first element's address is a multiple of: a power of two; None: the element's own size."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        try:
            self._normalise()
        except ProgramError as error:
            raise error.within(f"tensor {shorten(self.name)}") from None

    def _normalise(self) -> None:
        object.__setattr__(self, "dtype", dtype(self.dtype))
        object.__setattr__(self, "shape", _exprs(self.shape, "shape"))
        if len(self.shape) > _MAX_RANK:
            raise ProgramError(
                f"got {len(self.shape)} dimensions, expected at most {_MAX_RANK}", field="shape"
            )
        if self.strides is not None:
            object.__setattr__(self, "strides", _exprs(self.strides, "strides"))
            if len(self.strides or ()) != len(self.shape):
                raise ProgramError(
                    f"got {len(self.strides or ())} strides for {len(self.shape)} dimensions", field="strides"
                )
        for axis, extent in enumerate(self.shape):
            if extent.bounds.high < 0:
                raise ProgramError("the extent is negative in every call", field=f"shape[{axis}]")
        if self.access not in _ACCESS:
            raise ProgramError(f"got {self.access!r}, expected one of {', '.join(_ACCESS)}", field="access")
        if self.alignment is not None and (self.alignment < 1 or self.alignment & (self.alignment - 1)):
            raise ProgramError(f"got {self.alignment}, expected a power of two", field="alignment")

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
        """
        return TiledTensorMap(self, tuple(box_dim), **fields)


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A number of a signature. As a kernel's argument it travels by value, in its own type."""

    name: str
    """What people call it; any text."""

    dtype: DType
    """The type in which it travels. A value that the type cannot hold is refused; floats are rounded once, to nearest even."""

    symbol: Symbol | None = None
    """The symbol that stands for its value in expressions; for integers only."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        where = f"scalar {shorten(self.name)}"
        try:
            object.__setattr__(self, "dtype", dtype(self.dtype))
        except ProgramError as error:
            raise error.within(where) from None
        if not self.dtype.struct_code:
            raise ProgramError(f"dtype {self.dtype} cannot travel as a scalar", field=f"{where}.dtype")
        if self.symbol is not None and not self.dtype.is_integer:
            raise ProgramError(
                f"got dtype {self.dtype}, expected an integer type under a symbol", field=f"{where}.symbol"
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
        object.__setattr__(self, "condition", as_expr(self.condition))


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
        for name in ("params", "outputs", "checks"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
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
                yield from (node for node in walk(expr) if isinstance(node, Symbol))
        for scalar in self.scalars:
            if scalar.symbol is not None:
                yield scalar.symbol
        for check in self.checks:
            yield from (node for node in walk(check.condition) if isinstance(node, Symbol))
