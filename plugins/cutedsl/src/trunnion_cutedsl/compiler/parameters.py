"""What each argument of a launch becomes in CuTeDSL: the words in which the compiling process is told of it.

Everything here is read from the plan, so the cubin and the launcher are made from one description.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.errors import ProgramError
from trunnion.model.dtypes import DType
from trunnion.model.expr import Binary, Cast, Const, Slot
from trunnion.model.op import Op
from trunnion.model.plan import (
    AddressArgument,
    ConstantArgument,
    ExprArgument,
    FloatArgument,
    MapArgument,
    MovedArgument,
    PointerArgument,
    ScalarArgument,
    VariableArgument,
    ViewArgument,
)
from trunnion.model.tensormap.fields import TiledFields
from trunnion_cutedsl.compiler.dtypes import memory_type, scalar_type

if TYPE_CHECKING:
    from trunnion.model.expr import Expr
    from trunnion.model.plan import Encode, LaunchPlan, PlannedArgument

__all__ = ["MapParameter", "Parameter", "PointerParameter", "ScalarParameter", "TensorParameter", "describe"]

_MAX_DIVISOR: Final = 1 << 20
_MAP_TYPES: Final = (
    "Uint8",
    "Uint16",
    "Uint32",
    "Int32",
    "Uint64",
    "Int64",
    "Float16",
    "Float32",
    "Float64",
    "BFloat16",
    "Float32",
    "TFloat32",
    "TFloat32",
    "Float4E2M1FN",
    "Float4E2M1FN",
    "Float6E3M2FN",
)
"""What elements are by ``CUtensorMapDataType``."""

_MAP_FORMATS: Final = {10: "F32_FTZ", 12: "TF32_FTZ", 13: "B4X16", 14: "B4X16_P64", 15: "B6X16_P32"}
"""The names in ``TensorMapDataFormat`` of the codes that have one; all others are ``DEFAULT``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorParameter:
    """A ``cute.Tensor``: a fake tensor while the kernel is compiled."""

    dtype: str
    """The element type, in CuTeDSL's words."""

    shape: tuple[int | None, ...]
    """The extents that are constants, outermost first; None: passed as an ``Int32``."""

    strides: tuple[int | None, ...]
    """The strides that are constants; None: passed as an ``Int64``."""

    divisors: tuple[int, ...]
    """What divides each extent, then each stride, in every call."""

    alignment: int
    """Bytes that the address is a multiple of."""

    kind: str = "tensor"
    """Which class this is, in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerParameter:
    """A ``cute.Pointer`` to global memory."""

    dtype: str
    """The type of the elements, in CuTeDSL's words."""

    alignment: int
    """Bytes that the address is a multiple of."""

    kind: str = "pointer"
    """Which class this is, in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarParameter:
    """A number by value."""

    dtype: str
    """The type, in CuTeDSL's words."""

    kind: str = "scalar"
    """Which class this is, in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapParameter:
    """A ``GridConstant[TensorMap]``: box, swizzle and types are known while the kernel is compiled."""

    dtype: str
    """The type of the elements, in CuTeDSL's words."""

    format: str
    """The name in ``TensorMapDataFormat``."""

    box: tuple[int, ...]
    """Elements of the box, innermost dimension first, as ``TensorMap.box_dims`` has it; none for an im2col map."""

    swizzle: int
    """``CUtensorMapSwizzle``."""

    kind: str = "map"
    """Which class this is, in JSON."""


Parameter = TensorParameter | PointerParameter | ScalarParameter | MapParameter


def describe(  # noqa: C901, PLR0911 - one for each kind
    plan: LaunchPlan, argument: PlannedArgument, field: str
) -> Parameter:
    """Return what an argument of a launch becomes.

    Parameters
    ----------
    plan
        The plan.
    argument
        The argument.
    field
        What messages call it.

    Raises
    ------
    ProgramError
        If CuTeDSL has nothing like it.
    """
    match argument:
        case ViewArgument():
            return _tensor(plan, argument, field)
        case PointerArgument(memory):
            slot = plan.memory(memory)
            return PointerParameter(dtype=memory_type(slot.dtype, field), alignment=slot.alignment)
        case MovedArgument(memory):  # what the memory promises is said of its first element
            kind = plan.memory(memory).dtype
            return PointerParameter(dtype=memory_type(kind, field), alignment=kind.itemsize)
        case ConstantArgument(_, None):
            return PointerParameter(dtype="Uint8", alignment=1)
        case ConstantArgument(_, DType() as kind):
            return ScalarParameter(dtype=scalar_type(kind, field))
        case AddressArgument(pointer):
            return PointerParameter(dtype="Uint8", alignment=plan.pointers[pointer].alignment)
        case ScalarArgument(scalar):
            return ScalarParameter(dtype=scalar_type(plan.scalars[scalar].dtype, field))
        case ExprArgument() | FloatArgument():
            return ScalarParameter(dtype=scalar_type(argument.dtype, field))
        case MapArgument(encode):
            return _map(plan, plan.encodes[encode])
        case VariableArgument():
            raise ProgramError("CuTeDSL has no module variables: pass a pointer", field=field)
    raise ProgramError(
        "a struct has no counterpart in CuTeDSL: pass its members, or a pointer to it in memory", field=field
    )


def _tensor(plan: LaunchPlan, view: ViewArgument, field: str) -> TensorParameter:
    numbers = (*view.extents, *view.strides)
    values = tuple(number.value if isinstance(number, Const) else None for number in numbers)
    rank = len(view.extents)
    if 0 in values[:rank]:
        raise ProgramError(
            "got an extent that is always 0, which no layout of CuTeDSL has: pass the pointer", field=field
        )
    return TensorParameter(
        dtype=memory_type(view.dtype, field),
        shape=values[:rank],
        strides=values[rank:],
        divisors=tuple(_limited(_divisor(plan, number)) for number in numbers),
        alignment=view.alignment,
    )


def _map(plan: LaunchPlan, encode: Encode) -> MapParameter:
    """Return what a map becomes. A byte of memory is what the memory says: an fp8 tensor is read as bytes."""
    owner = plan.memory(encode.memory).dtype
    own = owner.tma_code == encode.fields.data_type and owner.name != "bool"
    return MapParameter(
        dtype=memory_type(owner, "args") if own else _MAP_TYPES[encode.fields.data_type],
        format=_MAP_FORMATS.get(encode.fields.data_type, "DEFAULT"),
        box=encode.fields.box if isinstance(encode.fields, TiledFields) else (),
        swizzle=encode.fields.swizzle,
    )


def _limited(divisor: int) -> int:
    """Return a divisor that CuTeDSL takes: what is too large is made smaller by what divides it."""
    return divisor if divisor <= _MAX_DIVISOR else math.gcd(divisor, _MAX_DIVISOR)


def _divisor(plan: LaunchPlan, number: Expr) -> int:
    """Return a number that divides an expression in every call, as far as its form shows."""
    match number:
        case Const(value):
            return abs(value) or _MAX_DIVISOR
        case Slot(index):
            return (
                plan.bindings[index].multiple_of if index < len(plan.bindings) else 1
            )  # a fact of the device
        case Cast():
            return _divisor(plan, number.operand)
        case Binary(Op.MUL, left, right):
            return _divisor(plan, left) * _divisor(plan, right)
        case Binary(Op.ADD | Op.SUB, left, right):
            return math.gcd(_divisor(plan, left), _divisor(plan, right))
    return 1
