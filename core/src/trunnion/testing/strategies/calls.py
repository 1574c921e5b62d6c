"""Random calls of a program: values of its symbols, and tensors described as plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from trunnion.model.params import PointerParam, ScalarParam, StructParam, TensorParam
from trunnion.plain import is_a
from trunnion.testing.arithmetic import UncomputableError, evaluate, integer_range
from trunnion.testing.expected import CallSignature, TensorFacts
from trunnion.testing.reference_arguments import bytes_per_element
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.numbers import BytesSpec, RaiserSpec, numbers, pointers, structs
from trunnion.testing.strategies.programs import PROGRAM_CAPABILITIES, programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from trunnion.model.capability import Capability
    from trunnion.model.expr import Expr
    from trunnion.model.params import Param
    from trunnion.model.program import KernelProgram

__all__ = [
    "AHEAD",
    "BASE_ALIGNMENT",
    "CallSpec",
    "Scenario",
    "TensorSpec",
    "arguments_of",
    "calls",
    "row_major",
    "scenarios",
]

BASE_ALIGNMENT = 1 << 16
"""What the first byte of a tensor's storage is a multiple of: the greatest alignment that is drawn for any."""

AHEAD = 1 << 20
"""Bytes ahead of a tensor in too short a storage: at such an address no good one lies. How long a storage is need not
be asked again where the address is known and calls are alike: see "What is checked" in docs/launching.md."""

_LARGEST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """A tensor to be made for a call."""

    dtype: str
    """The element type's name."""

    shape: tuple[int, ...]
    """Elements along each dimension, outermost first."""

    strides: tuple[int, ...]
    """Elements between neighbours along each dimension."""

    offset: int = 0
    """Elements between the start of the storage, aligned to `BASE_ALIGNMENT`, and the first element."""

    device: int | None = 0
    """The ordinal of its CUDA device; None: in host memory."""

    shared: bool = False
    """Whether its storage is that of every other tensor of the call that shares, instead of its own."""

    lazy: str = ""
    """``"conj"`` or ``"neg"``: it is conjugated, or negated, in name alone, and memory holds other numbers."""

    short: bool = False
    """Whether its storage was made a byte too short, once it was there."""

    @property
    def extent(self) -> int:
        """Elements from the start of the storage to the end of the last element."""
        if 0 in self.shape:
            return self.offset
        reach = sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True))
        return self.offset + 1 + reach

    @property
    def kind(self) -> Any:
        """The element type, as torch has it."""
        import torch  # noqa: PLC0415 - tensors are torch's, in the simulator too

        return getattr(torch, self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of storage that it needs: one element's at least, so that it has an address."""
        return int(max(self.extent, 1) * self.kind.itemsize)

    def over(self, storage: Any) -> Any:
        """Return the tensor over bytes of storage, of which there may be more than it needs."""
        flat = storage[: self.nbytes].view(self.kind)
        # torch counts from the start of the memory, not of a view.
        tensor = flat.as_strided(self.shape, self.strides, flat.storage_offset() + self.offset)
        if not self.lazy:
            return tensor
        import torch  # noqa: PLC0415 - tensors are torch's, in the simulator too

        return tensor.conj() if self.lazy == "conj" else torch._neg_view(tensor)  # noqa: SLF001 - torch negates so itself

    def facts(self, address: int) -> TensorFacts:
        """Return what the tensor will show, if its first element lies at ``address``."""
        return TensorFacts(
            dtype=self.dtype,
            shape=self.shape,
            strides=self.strides,
            address=address,
            device=self.device,
            lazy=bool(self.lazy),
            short=self.short,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSpec:
    """A call to be made."""

    args: tuple[object, ...]
    """Positional arguments; a `TensorSpec` for each tensor, a `BytesSpec` for each struct."""

    out: tuple[object, ...] | None = None
    """Destinations, or None."""

    device: int | None = None
    """The ``device=`` of the call."""

    def imagined(self) -> CallSignature:
        """Return the call's facts at made-up addresses, as well aligned as true ones."""
        place = iter(range(1 << 22, 1 << 34, 1 << 22))

        def facts(given: object) -> object:
            if isinstance(given, BytesSpec):
                return given.make()
            if not isinstance(given, TensorSpec):
                return given
            start = 1 << 21 if given.shared else next(place)
            return given.facts(
                0 if 0 in given.shape else start + given.offset * bytes_per_element(given.dtype)
            )

        out = None if self.out is None else tuple(facts(given) for given in self.out)
        return CallSignature(args=tuple(facts(given) for given in self.args), out=out, device=self.device)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A program and a call of it."""

    program: KernelProgram
    """What is called."""

    call: CallSpec
    """What it is called with."""


def arguments_of(given: Sequence[object], storage: Callable[[int, int | None], Any]) -> list[Any]:
    """Return arguments with every described tensor and struct made.

    Parameters
    ----------
    given
        As a `CallSpec` has them.
    storage
        Returns so many bytes in the memory of a device, or with None of the host, each of them
        `trunnion.testing.machine.USED`; the first lies at a multiple of `BASE_ALIGNMENT`.
    """
    together = [value for value in given if is_a(value, TensorSpec) and value.shared]
    shared = storage(max(value.nbytes for value in together), together[0].device) if together else None

    def made(value: object) -> Any:
        if is_a(value, BytesSpec) or is_a(value, RaiserSpec):
            return value.make()
        if not is_a(value, TensorSpec):
            return value
        return value.over(shared if value.shared else storage(value.nbytes, value.device))

    return [made(value) for value in given]


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides that a new contiguous tensor has, as tensor libraries number them."""
    return tuple(math.prod(max(extent, 1) for extent in shape[axis + 1 :]) for axis in range(len(shape)))


@st.composite
def calls(draw: st.DrawFn, program: KernelProgram) -> CallSpec:
    """Draw a call that fits the program, unless an author's check or an overflow forbids the numbers drawn.

    Parameters
    ----------
    draw
        Hypothesis's.
    program
        What is called.
    """
    signature = program.signature
    values = _draw_values(draw, program)
    device = choose(draw, (0, 0, 1))
    args = [_draw_argument(draw, param, values, device) for param in signature.params]
    out = None
    if signature.outputs and draw(st.integers(0, 3)) == 0:
        out = tuple(_draw_tensor(draw, output, values, device) for output in signature.outputs)
    named = not any(isinstance(given, TensorSpec) for given in args) or draw(st.integers(0, 7)) == 0
    return CallSpec(args=tuple(args), out=out, device=device if named else None)


@st.composite
def scenarios(
    draw: st.DrawFn, allowed: Iterable[Capability] = PROGRAM_CAPABILITIES, required: Iterable[Capability] = ()
) -> Scenario:
    """Draw a program and a call of it; see `programs` and `calls`.

    Parameters
    ----------
    draw
        Hypothesis's.
    allowed
        Capabilities that the program may require.
    required
        Capabilities that it must require.
    """
    program = draw(programs(allowed, required))
    return Scenario(program, draw(calls(program)))


def _draw_values(draw: st.DrawFn, program: KernelProgram) -> dict[str, int]:
    signature = program.signature
    in_tensors = {expr for tensor in signature.tensors for expr in (*tensor.shape, *(tensor.strides or ()))}
    in_scalars = {scalar.symbol: scalar for scalar in signature.scalars if scalar.symbol is not None}
    values = {}
    for symbol in signature.symbols():
        low, high = symbol.min, symbol.max
        if symbol in in_tensors:
            low, high = max(low, 0), min(high, max(_LARGEST, 2 * symbol.multiple_of))
        if symbol in in_scalars:
            kind = in_scalars[symbol].dtype.name
            least, greatest = (0, 1) if kind == "bool" else integer_range(kind)
            low, high = max(low, least), min(high, greatest)
        unit = symbol.multiple_of
        steps = (-(-low // unit), high // unit)
        wide = st.integers(*steps) if symbol not in in_tensors and draw(st.integers(0, 4)) == 0 else None
        start = max(steps[0], -4)
        near = st.integers(start, max(start, min(steps[1], _LARGEST)))
        values[symbol.name] = draw(wide if wide is not None else near) * unit
    return values


def _number(expr: Expr, values: Mapping[str, int]) -> int:
    try:
        return max(evaluate(expr, values), 0)
    except UncomputableError:
        return 1


def _draw_argument(draw: st.DrawFn, param: Param, values: Mapping[str, int], device: int) -> object:
    match param:
        case TensorParam():
            if param.nullable and draw(st.integers(0, 2)) == 0:
                return None
            return _draw_tensor(draw, param, values, device)
        case ScalarParam():
            return _draw_scalar(draw, param, values)
        case PointerParam():
            return draw(pointers(param))
        case StructParam():
            return draw(structs(param))


def _draw_tensor(draw: st.DrawFn, param: TensorParam, values: Mapping[str, int], device: int) -> TensorSpec:
    shape = tuple(_number(extent, values) for extent in param.shape)
    if param.strides is not None:
        strides = tuple(_number(stride, values) for stride in param.strides)
    else:
        strides = row_major(shape)
    if draw(st.booleans()):  # where a dimension has one element, its stride means nothing
        strides = tuple(
            choose(draw, (step, 1, 5, 64)) if extent == 1 else step
            for extent, step in zip(shape, strides, strict=True)
        )
    alignment = max(param.alignment or 1, param.dtype.itemsize)
    offset = choose(draw, (0, 0, 1, 3)) * (alignment // param.dtype.itemsize)
    return TensorSpec(dtype=param.dtype.name, shape=shape, strides=strides, offset=offset, device=device)


def _draw_scalar(draw: st.DrawFn, param: ScalarParam, values: Mapping[str, int]) -> object:
    if param.symbol is None:
        return draw(numbers(param.dtype.name))
    value = values[param.symbol.name]
    return bool(value) if param.dtype.name == "bool" else value
