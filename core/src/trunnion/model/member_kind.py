"""Of which kind a parameter or a member is in C++, and whether what a launch passes is of it."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from trunnion.model.constant import Constant
from trunnion.model.dtypes import DType, Kind, dtype
from trunnion.model.expr import Cast, Expr
from trunnion.model.float_expr import FloatCast
from trunnion.model.memory import Memory
from trunnion.model.module_variable import ModuleVariable
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import PointerParam, ScalarParam

if TYPE_CHECKING:
    from trunnion.model.launch import Argument
    from trunnion.model.struct import Array

__all__ = ["ADDRESS", "MemberKind", "passed_by", "unlike"]

ADDRESS = "a pointer"
"""What is passed where it is no number but an address."""

_BARE_FLOAT = 4
"""From so many bytes on a float has a type of the language itself; a smaller one travels as its bits too."""


class MemberKind(enum.IntEnum):
    """What a C++ compiler says of a member's type; an enumeration is what it is made of."""

    OTHER = 0
    """A class, such as ``__half`` or a tensor map: which it is, its size alone tells."""

    SIGNED = 1
    UNSIGNED = 2
    FLOATING = 3
    POINTER = 4

    @property
    def text(self) -> str:
        """For messages: ``"a pointer"``."""
        return _TEXTS[self]


_TEXTS = {
    MemberKind.OTHER: "a class",
    MemberKind.SIGNED: "an integer",
    MemberKind.UNSIGNED: "an unsigned integer",
    MemberKind.FLOATING: "a floating-point number",
    MemberKind.POINTER: ADDRESS,
}
_INTEGERS = frozenset((MemberKind.SIGNED, MemberKind.UNSIGNED))


def unlike(passed: DType | str | None, member: MemberKind) -> str | None:
    """Return what is passed, where a member is plainly no such thing; None where it may be.

    An address may be an integer, as ``CUdeviceptr`` and ``intptr_t`` are; a float of less than 32 bits may be one too,
    its bits.

    Parameters
    ----------
    passed
        The type of a number, `ADDRESS`, or None for what nothing is said of.
    member
        What the compiler says of it.
    """
    if passed is None or member is MemberKind.OTHER or member in _fitting(passed):
        return None
    return str(passed)


def passed_by(argument: Argument | Array) -> DType | str | None:
    """Return the type of a number, `ADDRESS`, or None of all else: a view, a tensor map, the caller's bytes.

    Parameters
    ----------
    argument
        What a launch passes, or a field of it.
    """
    match argument:
        case Memory() | MovedAddress() | PointerParam() | ModuleVariable() | Constant(dtype=None):
            return ADDRESS
        case Constant() | ScalarParam():
            return argument.dtype
        case FloatCast() | Cast():
            return argument.to
        case Expr():
            return dtype("int64")
    return None


def _fitting(passed: DType | str) -> frozenset[MemberKind]:
    """Return what a member may be that takes a number of a type, or an address."""
    if isinstance(passed, str):
        return _INTEGERS | {MemberKind.POINTER}
    if passed.kind is Kind.COMPLEX:
        return frozenset()
    if passed.kind is Kind.FLOAT:
        return frozenset((MemberKind.FLOATING,)) if passed.itemsize >= _BARE_FLOAT else _INTEGERS
    return _INTEGERS
