"""Arguments for a program that somebody wants to see running: given sizes, random but repeatable contents."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trunnion.errors import ArgumentValueError, shorten
from trunnion.model.dtypes import Kind
from trunnion.model.expr import Binary, Cast, Const, Expr, Select, Symbol
from trunnion.model.params import TensorParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trunnion.model.dtypes import DType
    from trunnion.model.params import ScalarParam, Signature

__all__ = ["check_room", "parse_sizes", "random_inputs", "symbol_values"]

_USUAL_SIZE = 256
_ADDRESSABLE = 2**63 - 1
_INTEGERS = (
    128  # contents are below it: they fit every integer type, and as bits are a number in every 8-bit float
)


def parse_sizes(texts: Iterable[str]) -> dict[str, int]:
    """Read ``"m=128"``.

    Raises
    ------
    ArgumentValueError
        If a text is not a name, an equals sign and an integer.
    """
    sizes = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        try:
            sizes[name] = int(value)
        except ValueError as error:
            raise ArgumentValueError(
                "--size", shorten(text), "a symbol and an integer, such as m=128"
            ) from error
        if not equals or not name:
            raise ArgumentValueError("--size", shorten(text), "a symbol and an integer, such as m=128")
    return sizes


def symbol_values(signature: Signature, sizes: Mapping[str, int]) -> dict[Symbol, int]:
    """Return a value for every symbol: the one in ``sizes``, else one near 256, within bounds.

    Raises
    ------
    ArgumentValueError
        If ``sizes`` names a symbol that the signature does not have, or gives one a value that it does not take.
    """
    symbols = signature.symbols()
    unknown = sorted(set(sizes) - {symbol.name for symbol in symbols})
    if unknown:
        known = ", ".join(shorten(symbol.name) for symbol in symbols) or "no symbol at all"
        raise ArgumentValueError("--size", shorten(unknown[0]), known)
    for symbol in symbols:
        value = sizes.get(symbol.name, symbol.min)
        if not symbol.min <= value <= symbol.max or (symbol.name in sizes and value % symbol.multiple_of):
            step = f", a multiple of {symbol.multiple_of}" if symbol.multiple_of > 1 else ""
            got = f"{shorten(symbol.name)} = {value}"
            raise ArgumentValueError("--size", got, f"from {symbol.min} to {symbol.max}{step}")
    return {symbol: sizes.get(symbol.name, _usual(symbol)) for symbol in symbols}


def check_room(signature: Signature, values: Mapping[Symbol, int], devices: Sequence[str]) -> None:
    """Refuse sizes of which all tensors together do not fit into memory.

    Parameters
    ----------
    signature
        What the program takes and returns.
    values
        A value for every symbol, as `symbol_values` returns them.
    devices
        In whose memory they must fit, as torch spells it.

    Raises
    ------
    ArgumentValueError
        If they do not.
    """
    import torch

    tensors = (*signature.tensors, *signature.outputs)
    total = sum(_reach(param, values) * param.dtype.itemsize for param in tensors)
    if total > _ADDRESSABLE:
        raise _no_room(total)
    try:
        for device in devices:
            torch.empty(total, dtype=torch.uint8, device=device)
    except RuntimeError as error:  # what torch says when there is no memory, on a host and on a GPU
        raise _no_room(total) from error


def random_inputs(signature: Signature, values: Mapping[Symbol, int], device: str) -> tuple[Any, ...]:
    """Return one argument for each parameter: the same ones in every process.

    Parameters
    ----------
    signature
        What the program takes.
    values
        A value for every symbol, as `symbol_values` returns them.
    device
        Where tensors are made, as torch spells it.

    Raises
    ------
    ArgumentValueError
        If a shape or a stride cannot be computed, or comes out negative.
    """
    import torch

    generator = torch.Generator().manual_seed(0)
    return tuple(
        _tensor(param, values, generator, device)
        if isinstance(param, TensorParam)
        else _scalar(param, values)
        for param in signature.params
    )


def _no_room(total: int) -> ArgumentValueError:
    return ArgumentValueError("--size", f"tensors of {total} bytes", "sizes for which they fit into memory")


def _reach(param: TensorParam, values: Mapping[Symbol, int]) -> int:
    """Return from how many elements on a tensor's memory is large enough."""
    shape = [_value(extent, values) for extent in param.shape]
    if any(extent < 1 for extent in shape):
        return 0
    if param.strides is None:
        return math.prod(shape)
    strides = (_value(stride, values) for stride in param.strides)
    return 1 + sum((extent - 1) * max(0, stride) for extent, stride in zip(shape, strides, strict=True))


def _usual(symbol: Symbol) -> int:
    step = symbol.multiple_of
    wanted = min(max(_USUAL_SIZE, symbol.min), symbol.max)
    below = wanted // step * step
    return below if below >= symbol.min else below + step


def _scalar(param: ScalarParam, values: Mapping[Symbol, int]) -> int | float | bool:
    if param.symbol is not None:
        return values[param.symbol]
    if param.dtype.kind is Kind.BOOL:
        return True
    return 1.0 if param.dtype.kind is Kind.FLOAT else 1


def _tensor(param: TensorParam, values: Mapping[Symbol, int], generator: Any, device: str) -> Any:
    shape = [_value(extent, values) for extent in param.shape]
    strides = None if param.strides is None else [_value(stride, values) for stride in param.strides]
    if any(number < 0 for number in (*shape, *(strides or ()))):
        raise ArgumentValueError(
            param.name, f"shape {shape}, strides {strides}", "no negative number; see --size"
        )
    if strides is None:
        return _contents(param.dtype, math.prod(shape), generator).view(shape).to(device)
    reach = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    flat = _contents(param.dtype, reach if all(shape) else 0, generator)
    return flat.to(device).as_strided(shape, strides)


def _contents(dtype: DType, count: int, generator: Any) -> Any:
    """Return ``count`` elements in host memory: small numbers, exact in every type that has few bits."""
    import torch

    kind = getattr(torch, dtype.name)
    if dtype.kind is Kind.BOOL:
        return torch.randint(0, 2, (count,), generator=generator).to(kind)
    if dtype.is_integer:
        return torch.randint(0, _INTEGERS, (count,), generator=generator).to(kind)
    if dtype.itemsize > 1:
        return torch.randn(count, generator=generator).to(kind)
    return torch.randint(0, _INTEGERS, (count,), generator=generator).to(torch.uint8).view(kind)


def _value(expr: Expr, values: Mapping[Symbol, int]) -> int:
    """Compute a shape or a stride; whether it fits its type is checked later, by the call itself."""
    match expr:
        case Const():
            return expr.value
        case Symbol():
            return values[expr]
        case Select():
            return _value(expr.then if _value(expr.condition, values) else expr.otherwise, values)
        case Cast():
            return _value(expr.operand, values)
        case Binary():
            right = _value(expr.right, values)
            if right or not expr.op.divides:
                return expr.op.compute(_value(expr.left, values), right)
    raise ArgumentValueError("--size", "sizes for which a shape divides by zero", "other sizes")
