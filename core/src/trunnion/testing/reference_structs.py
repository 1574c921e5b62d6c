"""The oracle's word on structs that the launcher builds: where C puts each field, by its own rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.model.constant import Constant
from trunnion.model.expr import Cast
from trunnion.model.float_expr import FloatCast
from trunnion.model.memory import Memory
from trunnion.model.module_variable import ModuleVariable
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import PointerParam, ScalarParam, StructParam
from trunnion.model.struct import Array, Struct
from trunnion.model.tensormap import TensorMap
from trunnion.model.view import TensorView
from trunnion.testing.reference_memory import view_size
from trunnion.testing.rounding import SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.model.launch import Argument

__all__ = ["fields_of", "passed_by", "size_and_alignment"]


def size_and_alignment(argument: Argument | Array) -> tuple[int, int]:  # noqa: PLR0911 - one for each kind
    """Return ``sizeof`` and ``alignof`` of what a launch passes, in bytes."""
    if isinstance(argument, Array):
        sizes = [size_and_alignment(value) for value in argument.values]
        return sum(size for size, _ in sizes), sizes[0][1]
    if isinstance(argument, Struct):
        return _struct(argument)[:2]
    if isinstance(argument, TensorMap):
        return 128, 64
    if isinstance(argument, TensorView):
        return view_size(argument.memory), 8
    if isinstance(argument, (Memory, MovedAddress, PointerParam, ModuleVariable)):
        return 8, 8
    if isinstance(argument, StructParam):
        return argument.nbytes, argument.alignment
    if isinstance(argument, Constant) and argument.value is None:
        return 8, 8
    kind = "int64"
    if isinstance(argument, (ScalarParam, Constant)) and argument.dtype is not None:
        kind = argument.dtype.name
    elif isinstance(argument, (Cast, FloatCast)):
        kind = argument.to.name
    return SIZES[kind], SIZES[kind]


def _struct(struct: Struct) -> tuple[int, int, list[int]]:
    """Return a struct's size and alignment, and where its fields begin: each where the one before it ends, or later."""
    inner = [size_and_alignment(value) for _, value in struct.fields]
    alignment = max([struct.alignment or 1, *(wanted for _, wanted in inner)])
    starts: list[int] = []
    end = 0
    for index, (size, wanted) in enumerate(inner):
        start = end + -end % wanted
        if struct.offsets is not None:
            start = struct.offsets[index]
        starts.append(start)
        end = max(end, start + size)
    if struct.nbytes is not None:
        return struct.nbytes, alignment, starts
    end = max(end, 1)  # in C++ nothing has no bytes
    return end + -end % alignment, alignment, starts


def fields_of(struct: Struct) -> Iterator[tuple[int, Argument]]:
    """Yield offset and value of everything in a struct, down through structs and arrays, in the author's order."""
    starts = _struct(struct)[2]
    for start, (_, value) in zip(starts, struct.fields, strict=True):
        yield from _within(value, start)


def _within(value: Argument | Array, start: int) -> Iterator[tuple[int, Argument]]:
    if isinstance(value, Struct):
        yield from ((start + offset, one) for offset, one in fields_of(value))
    elif isinstance(value, Array):
        for index, one in enumerate(value.values):
            yield from _within(one, start + index * size_and_alignment(one)[0])
    else:
        yield start, value


def passed_by(arguments: tuple[Argument, ...]) -> Iterator[Argument]:
    """Yield everything that a launch passes: structs, and what is in them."""
    for argument in arguments:
        yield argument
        if isinstance(argument, Struct):
            yield from (value for _, value in fields_of(argument))
