"""Tensor maps: the operands of TileLang's encoding calls, which are in the driver's order, as trunnion's maps.

Sources: TileLang's ``TMADesc`` and ``TMAIm2ColDesc``; CUDA Driver API, ``cuTensorMapEncodeTiled`` and
``cuTensorMapEncodeIm2col``. Both list the innermost dimension first and every stride in bytes. TileLang gives the
innermost dimension a stride too, which the driver does not take, and names an im2col map's pixels before its channels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.errors import ProgramError
from trunnion.model.dtypes import DTYPES, DType
from trunnion.model.expr import Const, Expr, as_expr
from trunnion.model.tensormap import (
    Im2colTensorMap,
    Interleave,
    L2Promotion,
    OobFill,
    Swizzle,
    TensorMapDataType,
    TiledTensorMap,
)  # fmt: skip
from trunnion_tilelang.errors import Refusal
from trunnion_tilelang.polynomial import divided, equal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.enums import DriverEnum
    from trunnion.model.memory import Memory
    from trunnion.model.tensormap import TensorMap

__all__ = ["im2col_map", "tiled_map"]

_CODES: dict[int, DType | TensorMapDataType] = {
    DTYPES[name].tma_code or 0: DTYPES[name]
    for name in (
        "uint8",
        "uint16",
        "uint32",
        "int32",
        "uint64",
        "int64",
        "float16",
        "float32",
        "float64",
        "bfloat16",
    )
} | {each.code: each for each in TensorMapDataType}
_BITS = 8


class _Operands:
    """The operands of an encoding call, taken one after the other."""

    def __init__(self, operands: Sequence[Expr]) -> None:
        self._left = list(operands)

    def expressions(self, count: int) -> list[Expr]:
        """Take values, and return them in tensor order."""
        if len(self._left) < count:
            raise Refusal("the call has too few operands for a tensor map of its rank")
        taken, self._left = self._left[:count], self._left[count:]
        return taken[::-1]

    def constants(self, count: int, what: str) -> list[int]:
        """Take values that the driver's descriptor holds as they are, and return them in tensor order."""
        found = []
        for value in self.expressions(count):
            if not isinstance(value, Const):
                raise Refusal(f"{what} of a tensor map is no constant")
            found.append(value.value)
        return found

    def word(self, kind: type[DriverEnum], what: str) -> DriverEnum:
        """Take a member of one of the driver's enumerations."""
        (code,) = self.constants(1, what)
        for each in kind:
            if each.code == code:
                return each
        raise Refusal(f"{what} of a tensor map is {code}, which the driver does not have")

    def modes(self) -> dict[str, Any]:
        """Take the last four operands.

        Raises
        ------
        Refusal
            If more are left.
        """
        found = {
            "interleave": self.word(Interleave, "the interleave"),
            "swizzle": self.word(Swizzle, "the swizzle"),
            "l2_promotion": self.word(L2Promotion, "the L2 promotion"),
            "oob_fill": self.word(OobFill, "the out-of-bounds fill"),
        }
        if self._left:
            raise Refusal(f"the call has {len(self._left)} operands more than a tensor map of its rank")
        return found


def tiled_map(memory: Memory, offset: Expr, operands: Sequence[Expr], label: str) -> TensorMap:
    """Return the map that a call of the tiled encoding makes.

    Parameters
    ----------
    memory, offset
        What it lies over, and the bytes between its beginning and the map's.
    operands
        What the call is given, but for the descriptor and the address: the data type, the rank, extents, strides, box,
        element strides, interleave, swizzle, L2 promotion, fill.
    label
        What people call it.

    Raises
    ------
    Refusal
        If it breaks a rule of the driver's, or is none that a program can say.
    """
    left = _Operands(operands)
    code, rank = _code_and_rank(left)
    extents, strides = left.expressions(rank), left.expressions(rank)
    box, steps = left.constants(rank, "the box"), left.constants(rank, "an element stride")
    fields = {"label": label, "element_strides": tuple(steps), **left.modes()}
    fields |= _layout(memory, code, extents, strides, offset)
    try:
        return TiledTensorMap(memory, tuple(box), **fields)
    except ProgramError as error:
        raise Refusal(str(error)) from error


def im2col_map(memory: Memory, offset: Expr, operands: Sequence[Expr], label: str) -> TensorMap:
    """Return the map that a call of the im2col encoding makes.

    Parameters
    ----------
    memory, offset
        What it lies over, and the bytes between its beginning and the map's.
    operands
        What the call is given, but for the descriptor and the address: the data type, the rank, extents, strides,
        element strides, lower and upper corners, pixels, channels, interleave, swizzle, L2 promotion, fill.
    label
        What people call it.

    Raises
    ------
    Refusal
        If it breaks a rule of the driver's, or is none that a program can say.
    """
    left = _Operands(operands)
    code, rank = _code_and_rank(left)
    extents, strides = left.expressions(rank), left.expressions(rank)
    steps = left.constants(rank, "an element stride")
    lower, upper = left.constants(rank - 2, "a corner"), left.constants(rank - 2, "a corner")
    (pixels,), (channels,) = left.constants(1, "the pixels"), left.constants(1, "the channels")
    fields = {"label": label, "element_strides": tuple(steps), **left.modes()}
    fields |= _layout(memory, code, extents, strides, offset)
    try:
        return Im2colTensorMap(
            memory,
            pixel_box_lower_corner=tuple(lower),
            pixel_box_upper_corner=tuple(upper),
            channels_per_pixel=channels,
            pixels_per_column=pixels,
            **fields,
        )
    except ProgramError as error:
        raise Refusal(str(error)) from error


def _code_and_rank(left: _Operands) -> tuple[int, int]:
    (code,), (rank,) = left.constants(1, "the data type"), left.constants(1, "the rank")
    if code not in _CODES:
        raise Refusal(f"the data type of a tensor map is {code}, which the driver does not have")
    if rank < 1:
        raise Refusal(f"the rank of a tensor map is {rank}")
    return code, rank


def _layout(
    memory: Memory, code: int, extents: list[Expr], strides: list[Expr], offset: Expr
) -> dict[str, Any]:
    """Return the fields that say what a map covers; none of those that are the memory's own."""
    fields: dict[str, Any] = {}
    bits = memory.dtype.itemsize * _BITS
    if memory.dtype.tma_code != code:
        kind = _CODES[code]
        fields["dtype"] = kind
        bits = kind.bits if isinstance(kind, TensorMapDataType) else kind.itemsize * _BITS
    if bits % _BITS == 0 and not equal(strides[-1], as_expr(bits // _BITS)):
        raise Refusal(
            "the innermost dimension of a tensor map is not contiguous: the driver has no word for that"
        )
    outer = [_elements(stride, bits) for stride in strides[:-1]]
    is_own = bits == memory.dtype.itemsize * _BITS and len(extents) == len(memory.shape)
    theirs = (*memory.shape, *memory.steps()[:-1])
    if not is_own or not all(map(equal, (*extents, *outer), theirs)):
        fields |= {"shape": tuple(extents), "strides": (*outer, as_expr(1))}
    if offset != as_expr(0):
        elements = divided(offset, memory.dtype.itemsize)
        if elements is None:
            raise Refusal("a tensor map begins between two elements")
        fields["element_offset"] = elements
    return fields


def _elements(stride: Expr, bits: int) -> Expr:
    """Return a stride in elements of the map's type."""
    exact = divided(stride * (_BITS if bits % _BITS else 1), bits if bits % _BITS else bits // _BITS)
    if exact is None:
        raise Refusal("a stride of a tensor map is no whole number of elements")
    return exact
