"""What the first part of a host function says of its parameters: which variable stands for what.

Every parameter arrives in the packed arguments. A tensor's is a handle, from which its pointer, its extents and its
strides are loaded; the declaration of a buffer over the pointer says how the author described it. All of it is tied
together by variables, and only by those.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trunnion.messages import shorten
from trunnion_tilelang.allocation import Arguments
from trunnion_tilelang.errors import Refusal
from trunnion_tilelang.nodes import (
    Assert,
    Bind,
    Buffer,
    Call,
    Cast,
    Decl,
    Int,
    Load,
    Node,
    Not,
    Select,
    Var,
)  # fmt: skip
from trunnion_tilelang.trees import leaves, straight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion_tilelang.nodes import HostFunction

__all__ = ["Field", "Parameter", "Prologue", "Role"]


class Field:
    """Fields that ``tvm_struct_get`` reads (``TVMStructFieldKind``)."""

    DATA, SHAPE, STRIDES, RANK = 1, 2, 3, 4
    TYPE = frozenset({5, 6, 7})  # the type's code, bits and lanes
    BYTE_OFFSET, DEVICE_ID, DEVICE_TYPE = 8, 9, 10
    TYPE_INDEX, VALUE = 13, 15  # of a packed argument


@dataclass(frozen=True, slots=True)
class Role:
    """What a variable of the host function stands for."""

    kind: str
    """``"count"``, ``"arguments"``; of a parameter: ``"type"``, ``"argument"``, ``"null"``, ``"shape"``, ``"strides"``,
    ``"data"``; ``"device"``; of the allocation of outputs: ``"storage"``, ``"status"``."""

    index: int = -1
    """The parameter's position among the packed arguments."""


@dataclass(slots=True)
class Parameter:
    """One packed argument."""

    index: int
    """Its position."""

    var: Var
    """The variable that holds it: a number, or a handle."""

    buffer: Buffer | None = None
    """How the author described it, if it is a tensor."""

    data: Var | None = None
    """The pointer to its elements, if it is a tensor."""

    required: bool = False
    """Whether None is refused."""


_TYPE_SUFFIX = ".type_index"  # what TVM adds to a parameter's name, for the variable that holds its type
_OBJECT = 24  # bytes of an object's header, behind which a tensor begins (sizeof(TVMFFIObject))
_FIELDS = {Field.SHAPE: "shape", Field.STRIDES: "strides", Field.DATA: "data", Field.DEVICE_ID: "device"}


@dataclass(slots=True)
class Prologue:
    """The roles of variables, and the parameters.

    Made by `read`, in one pass over the statements that every call runs.
    """

    packed: Arguments
    """Which position of the author's each packed argument has."""

    roles: dict[int, Role] = field(default_factory=dict)
    """What each variable stands for, by its key; other variables hold values."""

    parameters: dict[int, Parameter] = field(default_factory=dict)
    """The packed arguments by their positions."""

    loads: list[Bind] = field(default_factory=list)
    """The statements that give a variable a value read from extents or strides, in order."""

    @classmethod
    def read(cls, function: HostFunction, dtypes: Sequence[str] = ()) -> Prologue:
        """Read a host function.

        Parameters
        ----------
        function
            The function.
        dtypes
            The types of the author's parameters, in order, if they are known.

        Raises
        ------
        Refusal
            If nothing says what a parameter is.
        """
        _, arguments, count, result = function.params
        statements = tuple(straight(function.body))
        packed = Arguments.read(function, statements)
        roles = dict.fromkeys(packed.storage | {result.key}, Role("storage"))
        roles |= dict.fromkeys(packed.status, Role("status"))
        found = cls(packed, roles | {arguments.key: Role("arguments"), count.key: Role("count")})
        for statement in statements:
            match statement:
                case Bind():
                    found._bind(statement)
                case Decl(buffer=buffer):
                    found._declare(buffer)
                case Assert(condition=Not(operand=asked)):
                    role = found._null(asked)
                    if role is not None and role.index in found.parameters:
                        found.parameters[role.index].required = True
        for statement in statements:
            if isinstance(statement, Bind):
                found._leave(statement.var, dtypes)
        return found

    def _leave(self, var: Var, dtypes: Sequence[str]) -> None:
        """Note a parameter that the function does not read: it has a type all the same, which is checked."""
        role = self.role(var)
        if role is None or role.kind != "type" or role.index < 0 or role.index in self.parameters:
            return
        name = var.name.removesuffix(_TYPE_SUFFIX)
        if role.index >= len(dtypes):
            raise Refusal(
                f"nothing reads the parameter {shorten(name)}, and nothing says of which type it is"
            )
        self.parameters[role.index] = Parameter(role.index, Var(-1 - role.index, name, dtypes[role.index]))

    @property
    def arguments(self) -> int:
        """How many packed arguments the function takes, as far as they are known."""
        given = len(self.parameters) - len(self.packed.outputs)
        return given + 1 if self.packed.outputs else given

    def role(self, node: Node) -> Role | None:
        """Return what a variable stands for; None for every other expression."""
        return self.roles.get(node.key) if isinstance(node, Var) else None

    def field_of(self, node: Node) -> tuple[int, int] | None:
        """Return the parameter and the field that an expression reads, whatever it is if the parameter is None.

        The parameter is negative for the tensor that only says where outputs are allocated.
        """
        if isinstance(node, Select) and self._asks_for_null(node.condition):
            return self.field_of(node.then) or self.field_of(node.otherwise)
        match node:
            case Call(op="tvm_struct_get", args=(base, Int(value=0), Int(value=number))):
                role = self.role(base)
                if role is not None and role.kind == "argument":
                    return role.index, number
                taken = None if isinstance(base, Var) else self.argument(base)
                return None if taken is None else (taken[0], number)
        return None

    def _asks_for_null(self, condition: Node) -> bool:
        """Whether a condition asks only whether arguments are None."""
        roles = [self.role(leaf) for leaf in leaves(condition)]
        return all(role is not None and role.kind in ("null", "argument") for role in roles)

    def _bind(self, statement: Bind) -> None:
        var, value = statement.var, statement.value
        if var.key in self.roles:  # what an output's allocation is made with
            return
        taken = self.argument(value)
        if taken is not None:
            index, number = taken
            if number == Field.TYPE_INDEX:
                self.roles[var.key] = Role("type", index)
            elif number == Field.VALUE:
                self.roles[var.key] = Role("argument", index)
                if index >= 0:
                    self.parameters[index] = Parameter(index, var)
            return
        null = self._null(value)
        if null is not None:
            self.roles[var.key] = null
            return
        read = self.field_of(value)
        if read is not None and read[1] in _FIELDS:
            self.roles[var.key] = Role(_FIELDS[read[1]], read[0])
            if read[1] == Field.DATA:
                self.parameters[read[0]].data = var
        elif any(isinstance(leaf, Load) for leaf in leaves(value)):
            self.loads.append(statement)

    def _null(self, node: Node) -> Role | None:
        """Return what a variable stands for that is bound to this, if it says whether an argument is None."""
        match node:
            case Var():
                role = self.role(node)
                return role if role is not None and role.kind == "null" else None
            case Call(op="isnullptr", args=(pointer,)):
                role = self.role(pointer)
                return Role("null", role.index) if role is not None and role.kind == "argument" else None
        return None

    def argument(self, node: Node) -> tuple[int, int] | None:
        """Return the author's position and the field, if an expression is a packed argument or an allocated output.

        The type of an argument may choose between ways to read it.
        """
        match node:
            case Cast(operand=operand):
                return self.argument(operand)
            case Call(op="handle_add_byte_offset", args=(operand, Int(value=offset))) if offset == _OBJECT:
                return self.argument(operand)
            case Select(condition=condition, then=then, otherwise=otherwise):
                roles = [self.role(leaf) for leaf in leaves(condition)]
                found = self.argument(then)
                asks_for_type = all(role is not None and role.kind == "type" for role in roles)
                return found if asks_for_type and found == self.argument(otherwise) else None
            case Call(op="tvm_struct_get", args=(Var() as var, Int(value=index), Int(value=number))):
                role = self.roles.get(var.key)
                if role is not None and role.kind == "arguments":
                    return self.packed.position(index), number
                if role is not None and role.kind == "storage" and number == Field.VALUE:
                    return self.packed.outputs[index], number
        return None

    def _declare(self, buffer: Buffer) -> None:
        role = self.roles.get(buffer.data.key)
        if role is not None and role.kind == "data" and self.parameters[role.index].buffer is None:
            self.parameters[role.index].buffer = buffer
