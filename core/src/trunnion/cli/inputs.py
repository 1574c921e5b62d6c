"""Arguments for a program that somebody wants to see running: given sizes, random but repeatable contents."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trunnion.cli.arrays import as_tensor
from trunnion.cli.layout import compute, default_strides, overlap
from trunnion.errors import ArgumentValueError, shorten
from trunnion.model.dtypes import Kind
from trunnion.model.expr_tree import symbols_of
from trunnion.model.interval import INT64_MAX
from trunnion.model.params import PointerParam, ScalarParam, StructParam, TensorParam

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from trunnion.model.dtypes import DType
    from trunnion.model.expr import Symbol
    from trunnion.model.params import Param, Signature

__all__ = ["Making", "check_room", "parse_sizes", "random_inputs", "symbol_values"]

_NONE: Mapping[str, Any] = MappingProxyType({})
_USUAL_SIZE = 256
_POINTER_BYTES = 1 << 16
_ADDRESSABLE = 2**63 - 1
_INTEGERS = (
    128  # contents are below it: they fit every integer type, and as bits are a number in every 8-bit float
)


def parse_sizes(texts: Iterable[str]) -> dict[str, int]:
    """Read ``"m=128"``.

    Raises
    ------
    ArgumentValueError
        If a text is not a name, an equals sign and an integer, or a name comes twice.
    """
    sizes: dict[str, int] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if name in sizes:
            raise ArgumentValueError("--size", f"{shorten(name)} twice", "one value for each symbol")
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

    A symbol that stands for strides alone gets the least value under which tensors have no elements in common.

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
            least = f"at least {symbol.min}"
            bounds = least if symbol.max == INT64_MAX else f"from {symbol.min} to {symbol.max}"
            raise ArgumentValueError("--size", got, f"{bounds}{step}")
    values = {symbol: sizes.get(symbol.name, _usual(symbol)) for symbol in symbols}
    return values | default_strides(signature, sizes, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """How arguments are made."""

    values: Mapping[Symbol, int]
    """A value for every symbol, as `symbol_values` returns them."""

    device: str
    """Where tensors are made, as torch spells it."""

    simulated: bool = False
    """Whether that is a simulated device, on which an address can be made up."""

    given: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    """What is not made but given, by the parameters' names, as `given_arguments` returns it."""

    asked: Collection[str] = ()
    """The symbols whose values somebody chose, by name: under them a tensor's own elements may overlap."""

    seed: int = 0
    """Equal seeds make equal arguments."""


def check_room(signature: Signature, making: Making) -> None:
    """Refuse sizes of which all tensors together do not fit into memory.

    Parameters
    ----------
    signature
        What the program takes and returns.
    making
        How its arguments are made.

    Raises
    ------
    ArgumentValueError
        If they do not fit, on the host or on the device.
    """
    import torch

    absent = {name for name, value in making.given.items() if value is None}
    tensors = [param for param in (*signature.tensors, *signature.outputs) if param.name not in absent]
    total = sum(_reach(param, making.values) * param.dtype.itemsize for param in tensors)
    if total > _ADDRESSABLE:
        raise _no_room(total)
    try:
        for device in ("cpu",) if making.simulated else ("cpu", making.device):
            torch.empty(total, dtype=torch.uint8, device=device)
    except RuntimeError as error:  # what torch says when there is no memory, on a host and on a GPU
        raise _no_room(total) from error


def random_inputs(signature: Signature, making: Making) -> tuple[Any, ...]:
    """Return one argument for each parameter: the same ones in every process.

    Tensors are random, scalars are one or their symbol's value, structs are zeros. On a simulated device a pointer
    is the address of 64 KiB of zeros.

    Parameters
    ----------
    signature
        What the program takes.
    making
        How its arguments are made, and which are given.

    Raises
    ------
    ArgumentValueError
        If a shape or a stride cannot be computed, or comes out negative; if elements of a tensor overlap that is
        given, or of which not every size was asked for; or if there is a pointer on a real device that may not be null,
        and no address is given.
    """
    import torch

    generator = torch.Generator().manual_seed(making.seed)
    return tuple(_argument(param, making, generator) for param in signature.params)


def _argument(param: Param, making: Making, generator: Any) -> Any:
    if isinstance(param, TensorParam):
        if param.name not in making.given:
            _refuse_overlap(param, making)
            return _tensor(param, making.values, generator, making.device)
        array = making.given[param.name]
        return None if array is None else _given_tensor(param, array, making, generator)
    if param.name in making.given:
        return making.given[param.name]
    match param:
        case ScalarParam():
            return _scalar(param, making.values)
        case StructParam():
            return bytes(param.nbytes)
    return _pointer(param, making)


def _pointer(param: PointerParam, making: Making) -> Any:
    import torch

    if not making.simulated:
        if param.nullable:
            return None
        expected = f"--arg {param.name}=<address>: an address on a real device cannot be made up"
        raise ArgumentValueError(param.name, "no address", expected)
    room = torch.zeros(_POINTER_BYTES + param.alignment, dtype=torch.uint8, device=making.device)
    return _Address(room, -(-room.data_ptr() // param.alignment) * param.alignment)


class _Address:
    """An address that keeps its memory alive."""

    def __init__(self, memory: Any, address: int) -> None:
        self._memory = memory
        self._address = address

    def __index__(self) -> int:
        return self._address


def _given_tensor(param: TensorParam, array: Any, making: Making, generator: Any) -> Any:
    """Return a given array on the device, laid out as the parameter says if it has the right shape and type."""
    tensor = as_tensor(array, param.dtype, param.name)
    if param.strides is None or tensor.dim() != param.rank:
        return tensor.contiguous().to(making.device)
    room = _tensor(param, making.values, generator, making.device)
    if room.shape != tensor.shape or room.dtype != tensor.dtype:
        return tensor.to(making.device)  # the call refuses it, and says why
    if overlap(tuple(room.shape), room.stride()):
        got = f"an array for strides {list(room.stride())}"
        raise ArgumentValueError(param.name, got, "nothing given, or other sizes: elements overlap")
    room.copy_(tensor)
    return room


def _refuse_overlap(param: TensorParam, making: Making) -> None:
    """Refuse a tensor whose elements overlap because of a size that nobody chose.

    Raises
    ------
    ArgumentValueError
        If they do.
    """
    own = {symbol.name for expr in param.strides or () for symbol in symbols_of(expr)}
    if not own or param.strides is None:
        return  # its author laid it out so
    own |= {symbol.name for extent in param.shape for symbol in symbols_of(extent)}
    pairs = zip(param.shape, param.strides, strict=True)
    shape, strides = zip(
        *((compute(extent, making.values), compute(stride, making.values)) for extent, stride in pairs),
        strict=True,
    )
    if not own <= set(making.asked) and min(*shape, *strides) >= 0 and overlap(shape, strides):
        got = f"strides {list(strides)} for shape {list(shape)}, under which elements overlap"
        names = ", ".join(shorten(name) for name in sorted(own))
        raise ArgumentValueError(param.name, got, f"other sizes, or --size for each of {names}")


def _no_room(total: int) -> ArgumentValueError:
    return ArgumentValueError("--size", f"tensors of {total} bytes", "sizes for which they fit into memory")


def _reach(param: TensorParam, values: Mapping[Symbol, int]) -> int:
    """Return from how many elements on a tensor's memory is large enough."""
    shape = [compute(extent, values) for extent in param.shape]
    if any(extent < 1 for extent in shape):
        return 0
    if param.strides is None:
        return math.prod(shape)
    strides = (compute(stride, values) for stride in param.strides)
    return 1 + sum((extent - 1) * max(0, stride) for extent, stride in zip(shape, strides, strict=True))


def _usual(symbol: Symbol) -> int:
    step = symbol.multiple_of
    wanted = min(max(_USUAL_SIZE, symbol.min), symbol.max)
    below = wanted // step * step
    return below if below >= symbol.min else below + step


def _scalar(param: ScalarParam, values: Mapping[Symbol, int]) -> complex | bool:
    if param.symbol is not None:
        value = values[param.symbol]
        return bool(value) if param.dtype.kind is Kind.BOOL else value
    if param.dtype.kind is Kind.BOOL:
        return True
    return {Kind.FLOAT: 1.0, Kind.COMPLEX: 1 + 0j}.get(param.dtype.kind, 1)


def _tensor(param: TensorParam, values: Mapping[Symbol, int], generator: Any, device: str) -> Any:
    shape = [compute(extent, values) for extent in param.shape]
    strides = None if param.strides is None else [compute(stride, values) for stride in param.strides]
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
