"""How tensors lie in memory that somebody wants to see running: strides that nobody chose, elements that overlap."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from trunnion.errors import ArgumentValueError
from trunnion.model.expr import Binary, Cast, Const, Expr, Select, Symbol
from trunnion.model.interval import SHIFTS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from trunnion.model.params import Signature, TensorParam

__all__ = ["compute", "default_strides", "overlap"]


def compute(expr: Expr, values: Mapping[Symbol, int]) -> int:
    """Compute a shape or a stride; whether it fits its type is checked later, by the call itself.

    Raises
    ------
    ArgumentValueError
        If it divides by zero, or shifts by less than 0 or more than 63 bits.
    """
    match expr:
        case Const():
            return expr.value
        case Symbol():
            return values[expr]
        case Select():
            return compute(expr.then if compute(expr.condition, values) else expr.otherwise, values)
        case Cast():
            return compute(expr.operand, values)
        case Binary():
            right = compute(expr.right, values)
            if expr.op.admits(right):
                return expr.op.compute(compute(expr.left, values), right)
            if expr.op.shifts:
                got = f"sizes for which a shape shifts by {right} bits"
                raise ArgumentValueError("--size", got, f"sizes for which it shifts by {SHIFTS}")
    raise ArgumentValueError("--size", "sizes for which a shape divides by zero", "other sizes")


def overlap(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether two elements of a tensor lie at one place.

    Parameters
    ----------
    shape
        Elements along each dimension.
    strides
        Elements between neighbours along each dimension, none of them negative.
    """
    if not all(shape):
        return False
    steps = sorted((stride, extent) for extent, stride in zip(shape, strides, strict=True) if extent > 1)
    reach, apart = 1, True
    for stride, extent in steps:
        apart = apart and stride >= reach
        reach += (extent - 1) * stride
    if apart:
        return False
    count = math.prod(shape)
    return count > reach or not all(stride for stride, _ in steps) or _touched(steps, reach) < count


def _touched(steps: Sequence[tuple[int, int]], reach: int) -> int:
    """Return how many places a tensor's elements have, by marking them all: row by row along the longest dimension."""
    marks = bytearray(reach)
    *outer, (stride, extent) = sorted(steps, key=lambda step: step[1])
    row = bytes([1]) * extent
    for offsets in itertools.product(*(range(0, each * count, each) for each, count in outer)):
        start = sum(offsets)
        marks[start : start + (extent - 1) * stride + 1 : stride] = row
    return marks.count(1)


def default_strides(
    signature: Signature, chosen: Collection[str], values: Mapping[Symbol, int]
) -> dict[Symbol, int]:
    """Return a value for every symbol that stands for strides, and for no extent, and that nobody chose.

    It is the least one, within the symbol's bounds, under which elements do not overlap: where all strides of a
    tensor are such symbols, the tensor is contiguous. Where no value will do, the elements overlap all the same.

    Parameters
    ----------
    signature
        What the program takes.
    chosen
        The names of the symbols that have their values.
    values
        A value for every symbol.
    """
    laid_out = [tensor for tensor in signature.tensors if tensor.strides is not None]
    sized = {extent for tensor in signature.tensors for extent in tensor.shape}
    free = {
        stride: _least(stride, 1)
        for tensor in laid_out
        for stride in tensor.strides or ()
        if isinstance(stride, Symbol) and stride not in sized and stride.name not in chosen
    }
    for _ in free:  # tensors that share a symbol may push each other's strides up
        for tensor in laid_out:
            if not free.keys().isdisjoint(tensor.strides or ()):
                free |= _fitted(tensor, free, {**values, **free})
    return free


def _fitted(
    tensor: TensorParam, free: Mapping[Symbol, int], values: Mapping[Symbol, int]
) -> dict[Symbol, int]:
    """Return values for the free symbols among a tensor's strides, none of them below the one that it has."""
    shape = [compute(extent, values) for extent in tensor.shape]
    strides = tensor.strides or ()
    for inner_first in (True, False):
        found = dict(values)
        order = list(reversed(range(len(shape))))
        if not inner_first:  # around what is fixed: a column-major matrix has its inner stride in front
            order.sort(key=lambda axis: strides[axis] in free)
        reach = 1
        for axis in order:
            stride = strides[axis]
            if isinstance(stride, Symbol) and stride in free:
                found[stride] = max(found[stride], _least(stride, reach))
            reach += max(0, shape[axis] - 1) * max(0, compute(stride, found))
        if min(shape) < 0 or not overlap(shape, [max(0, compute(stride, found)) for stride in strides]):
            break
    return {symbol: found[symbol] for symbol in strides if isinstance(symbol, Symbol) and symbol in free}


def _least(symbol: Symbol, wanted: int) -> int:
    """Return the least value from ``wanted`` on that a symbol may have, else its greatest."""
    step = symbol.multiple_of
    value = -(-max(wanted, symbol.min) // step) * step
    return value if value <= symbol.max else symbol.max // step * step
