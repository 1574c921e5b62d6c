"""Assertions: which of them trunnion's own checks of arguments already make, and which become checks of the author's.

An assertion is recognised by what it reads. One that reads only extents, strides and numbers is computed with what the
signature says of them: where that makes it true in every call, the signature's own checks are the assertion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.model.expr import Cast, as_expr, select
from trunnion.model.expr_tree import walk
from trunnion.model.params import Check
from trunnion_tilelang.errors import Refusal
from trunnion_tilelang.nodes import Call, Int, Node, Select, Var
from trunnion_tilelang.polynomial import holds
from trunnion_tilelang.prologue import Field
from trunnion_tilelang.trees import children

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunnion.model.expr import Expr
    from trunnion_tilelang.parameters import Parameters

__all__ = ["RECOGNISED", "check_of"]

RECOGNISED: Mapping[str, str] = {
    "count": "the number of arguments",
    "arguments": "the packed arguments themselves, which no caller of a program passes",
    "type": "whether an argument is a tensor or a number",
    "null": "whether None may be passed, and that one tensor is there that gives a symbol its value",
    "rank": "the number of dimensions",
    "dtype": "the element type, of types below a byte with the extents that go with it",
    "byte_offset": "that the pointer is the first element's; trunnion passes that address",
    "device_id": "that all tensors are on one device",
    "device_type": "that the device is a CUDA device",
    "data": "that there is memory behind a tensor with elements",
}
"""What assertions read, and the check of trunnion's that makes each of them."""

_CUDA = 2  # kDLCUDA
_KINDS = {
    Field.RANK: "rank",
    **dict.fromkeys(Field.TYPE, "dtype"),
    Field.BYTE_OFFSET: "byte_offset",
    Field.DEVICE_ID: "device_id",
    Field.DEVICE_TYPE: "device_type",
}
_BESIDE = {"rank": {"null"}, "dtype": {"null", "value"}, "byte_offset": {"null"}, "device_id": {"null"}}
_BESIDE |= {"device_type": {"null"}, "data": {"null", "value"}}


def check_of(condition: Node, message: str, parameters: Parameters, when: Expr | None) -> Check | None:
    """Return the check that an assertion becomes; None if trunnion's own checks make it.

    Parameters
    ----------
    condition
        What is asserted.
    message
        What the host function tells its caller otherwise.
    parameters
        The parameters.
    when
        Where the assertion stands: it is made only if this is not 0.

    Raises
    ------
    Refusal
        If it is neither.
    """
    kinds = dict(_kinds(condition, parameters))
    for kind in RECOGNISED:
        if kind in kinds and kinds.keys() - {kind} <= _BESIDE.get(kind, set()):
            _confirm(kind, condition, kinds[kind], parameters)
            return None
    if kinds.keys() - {"value", "null"}:
        raise Refusal(f"an assertion about {', '.join(sorted(kinds))} is none that trunnion makes")
    value = parameters.of_tensors.expr(condition)
    if when is not None:
        value = select(when, value, as_expr(1))
    # That a number fits a narrower type is a cast's own refusal, if a call makes the cast. Where a tensor may be None,
    # TileLang casts what is an extent, and trunnion's own check is of that as it is.
    if holds(value) and ("null" in kinds or not any(map(_may_refuse, walk(value)))):
        return None
    if "null" in kinds:
        raise Refusal("a condition on a tensor that may be None is none that trunnion makes")
    return Check(value, message)


def _may_refuse(one: Expr) -> bool:
    return isinstance(one, Cast) and one.may_be_out_of_range


def _kinds(node: Node, parameters: Parameters) -> Iterator[tuple[str, int]]:
    """Yield what an expression reads, each with the parameter that it reads it of."""
    prologue = parameters.prologue
    match node:
        case Call(op="tvm_struct_get"):
            read = prologue.field_of(node)
            is_argument = prologue.argument(node) is not None
            kind = "arguments" if is_argument else _KINDS.get(read[1], "value") if read else "value"
            yield kind, read[0] if read else -1
            return
        case Call(op="isnullptr", args=(Var() as pointer,)):
            role = prologue.role(pointer)
            kind = role.kind if role is not None else "value"
            yield ("null" if kind == "argument" else "value" if kind == "strides" else kind), -1
            return
        case Var():
            role = prologue.role(node)
            is_value = role is None or (role.kind == "argument" and node.dtype != "handle")
            kind = "value" if role is None or is_value else role.kind
            yield "device_id" if kind == "device" else kind, -1 if role is None else role.index
            return
        case Select(condition=condition, then=then, otherwise=otherwise):
            parts: tuple[Node, ...] = (condition, then, otherwise)
        case _:
            parts = children(node)
    for part in parts:
        yield from _kinds(part, parameters)


def _confirm(kind: str, condition: Node, index: int, parameters: Parameters) -> None:
    """Refuse what looks like a check of trunnion's and asks for something else."""
    numbers = {each.value for each in _numbers(condition)}
    if kind == "count" and numbers != {parameters.prologue.arguments}:
        raise Refusal(
            f"the function takes another number of arguments than the {parameters.prologue.arguments} known"
        )
    if kind == "rank":
        buffer = parameters.prologue.parameters[index].buffer
        if buffer is None or numbers != {len(buffer.shape)}:
            raise Refusal("the number of dimensions is not the declared buffer's")
    if kind == "device_type" and _CUDA not in numbers:
        raise Refusal("the tensor is expected on another device than CUDA's")


def _numbers(node: Node) -> Iterator[Int]:
    match node:
        case Int():
            yield node
        case Call():
            return
        case _:
            for child in children(node):
                yield from _numbers(child)
