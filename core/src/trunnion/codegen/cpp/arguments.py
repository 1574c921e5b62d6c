"""The part of a C++ launcher that reads the arguments of a call and checks each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.formats import format_pointer, stored_type
from trunnion.codegen.cpp.places import presence, tensor_rule
from trunnion.model.dtypes import Kind
from trunnion.model.interval import INT64_MAX
from trunnion.model.plan.slots import PointerSlot, StructSlot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.codegen.cpp.text import CallText
    from trunnion.model.plan import LaunchPlan, ScalarSlot, TensorSlot

__all__ = ["emit_layouts", "emit_number", "emit_pointers", "emit_structure", "scalar_storage"]


# Tensors ---------------------------------------------------------------------------------------------------------


def emit_structure(text: CallText, plan: LaunchPlan) -> None:
    """Write what is asked of each tensor alone, and the device of all of them."""
    inputs = plan.inputs
    if inputs:
        text.member("const DLTensor*", f"t[{len(inputs)}]")
    places = [(tensor.position, tensor.index) for tensor in inputs]
    text.each(places, lambda at, i: _required(f"read_tensor(given[{at}], {tensor_rule(i)}, t[{i}])"))
    text.each(_indices(inputs), lambda i: _required(f"check_place(t[{i}], {tensor_rule(i)}, place)"))
    text.require("settle_device(given, place)")
    text.require("check_device()")
    for tensor in inputs:
        with text.when(presence(tensor)):
            _emit_numbers_of(text, tensor)


def _emit_numbers_of(text: CallText, tensor: TensorSlot) -> None:
    index = tensor.index
    for axis in range(len(tensor.shape)):
        text.line(f"{text.member('int64_t', f'd{index}_{axis}')} = t[{index}]->shape[{axis}];")
        if tensor.strides is not None:
            text.line(f"{text.member('int64_t', f'r{index}_{axis}')} = stride_of(*t[{index}], {axis});")


def emit_layouts(text: CallText, plan: LaunchPlan) -> None:
    """Write the checks that tensors are contiguous which do not name their strides."""
    contiguous = [tensor for tensor in plan.inputs if tensor.strides is None]
    text.each(_indices(contiguous), lambda i: _required(f"check_layout(t[{i}], {tensor_rule(i)})"))


def emit_pointers(text: CallText, plan: LaunchPlan) -> None:
    """Write the lines that take the tensors' addresses, and check them."""
    if plan.tensors:
        text.member("uint64_t", f"p[{len(plan.tensors)}]")
    text.each(_indices(plan.inputs), lambda i: _required(f"read_address(t[{i}], {tensor_rule(i)}, p[{i}])"))


def _indices(tensors: Sequence[TensorSlot]) -> list[tuple[int]]:
    return [(tensor.index,) for tensor in tensors]


def _required(condition: str) -> str:
    return f"if (!{condition}) return false;"


# Numbers ---------------------------------------------------------------------------------------------------------


def emit_number(text: CallText, plan: LaunchPlan, slot: ScalarSlot | PointerSlot | StructSlot) -> None:
    """Write the lines that read a scalar, an address or a struct."""
    if isinstance(slot, PointerSlot):
        _emit_address(text, slot)
    elif isinstance(slot, StructSlot):
        _emit_struct(text, slot)
    else:
        _emit_scalar(text, slot)
        if slot.dtype.kind is Kind.BOOL and plan.signature.scalars[slot.index].symbol is not None:
            # An expression's value is an int64_t, beside the byte that a kernel is given.
            text.line(f"{text.member('int64_t', f's{slot.index}')} = {scalar_storage(slot)} ? 1 : 0;")


def scalar_storage(scalar: ScalarSlot) -> str:
    """Return the member whose bytes a kernel is given for a scalar."""
    whole = scalar.dtype.is_integer and scalar.dtype.integer_range[1] >= INT64_MAX
    return f"s{scalar.index}" if whole else f"s{scalar.index}_bits"


def _emit_scalar(text: CallText, scalar: ScalarSlot) -> None:
    position = scalar.position
    s, kind = f"s{scalar.index}", scalar.dtype
    place = f"given[{position}], kArguments[{position}]"
    if kind.kind in (Kind.FLOAT, Kind.COMPLEX):
        stored = text.member(stored_type(kind), scalar_storage(scalar))
        reader = "read_float" if kind.kind is Kind.FLOAT else "read_complex"
        text.require(f'{reader}({place}, "{kind.name}", {format_pointer(kind)}, {stored})')
        return
    if kind.kind is Kind.BOOL:
        text.require(f"read_boolean({place}, {text.member('bool', scalar_storage(scalar))})")
        return
    text.member("int64_t", s)
    text.require(f"Integer<{kind.name}_t>::read({place}, {s})")
    stored = scalar_storage(scalar)
    if stored != s:
        text.line(f"{text.member(kind.cpp, stored)} = static_cast<{kind.cpp}>({s});")


def _emit_address(text: CallText, pointer: PointerSlot) -> None:
    position = pointer.position
    name = text.member("uint64_t", f"a{pointer.index}")
    nullable = "true" if pointer.nullable else "false"
    place = f"given[{position}], kArguments[{position}]"
    text.require(f"read_pointer({place}, {pointer.alignment}, {nullable}, {name})")


def _emit_struct(text: CallText, struct: StructSlot) -> None:
    position = struct.position
    name = f"u{struct.index}"
    text.members[f"{name}[{struct.nbytes}]"] = "alignas(16) unsigned char"
    text.require(f"read_struct(given[{position}], kArguments[{position}], {struct.nbytes}, {name})")
