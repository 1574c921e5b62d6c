"""The part of a launcher that takes a call's arguments: what they are, and that they are what they must be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trunnion.codegen.literals import python_string, python_tuple
from trunnion.codegen.python.bindings import presence
from trunnion.codegen.python.conditions import refuse, when
from trunnion.codegen.python.memory import emit_given_outputs
from trunnion.codegen.python.recalled import is_computed_with, passed_names
from trunnion.model.dtypes import Kind
from trunnion.model.plan.slots import PointerSlot, StructSlot
from trunnion.model.scalars import overflow_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import LaunchPlan, ScalarSlot, TensorSlot

__all__ = [
    "ADDRESSES",
    "emit_count",
    "emit_layouts",
    "emit_number",
    "emit_pointers",
    "emit_structure",
    "given_tuple",
    "parameter_list",
    "positional_names",
    "tensor_names",
    "tensor_tuple",
]

ADDRESSES = 1 << 64
"""Numbers that an address, or a handle of the driver, can have."""


def tensor_names(tensors: Sequence[TensorSlot]) -> str:
    """Return the display of a tuple of the tensors' names."""
    return python_tuple([python_string(tensor.name) for tensor in tensors])


def tensor_tuple(tensors: Sequence[TensorSlot]) -> str:
    """Return the display of a tuple of the tensors."""
    return python_tuple([f"t{tensor.index}" for tensor in tensors])


def positional_names(plan: LaunchPlan) -> list[str]:
    """Return the variables of the arguments, in their order."""
    slots = [(tensor.position, f"t{tensor.index}") for tensor in plan.inputs]
    slots += [(scalar.position, f"s{scalar.index}") for scalar in plan.scalars]
    slots += [(pointer.position, f"a{pointer.index}") for pointer in plan.pointers]
    slots += [(struct.position, f"u{struct.index}") for struct in plan.structs]
    return [name for _, name in sorted(slots)]


def parameter_list(plan: LaunchPlan) -> str:
    """Return the parameters of a launcher: positional ones that may be left out, so that it can say so itself.

    Parameters
    ----------
    plan
        The plan.
    """
    names = positional_names(plan)
    positional = f"{', '.join(f'{name}=ABSENT' for name in names)}, /, " if names else ""
    return f"{positional}*more"


def emit_count(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write the check of the number of arguments: only the last can be missing without another."""
    names = positional_names(plan)
    missing = f" or {names[-1]} is ABSENT" if names else ""
    wanted = python_tuple([python_string(param.name) for param in plan.signature.params])
    refuse(out, f"more{missing}", f"count_error({given_tuple(plan)}, {wanted})")


def given_tuple(plan: LaunchPlan) -> str:
    """Return the display of a tuple of everything that a call was given by position."""
    return f"({', '.join([*positional_names(plan), '*more'])},)"


# Tensors -------------------------------------------------------------------------------------------------------------


def emit_structure(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write what is asked of each tensor alone, and the device of all of them.

    Parameters
    ----------
    out
        Takes the lines.
    plan
        The plan. Where its launcher recalls tensors the device that a call names is ``given``, else ``device``.
    """
    inputs = plan.inputs
    if not inputs:
        with out.block("if type(device) is not int or not 0 <= device < devices:"):
            out.line("device = check_device((), (), device)")
        return
    with out.block("try:"):
        for tensor in inputs:
            with when(out, presence(tensor)):
                _emit_tensor(out, tensor)
        _emit_device(out, inputs)
    _emit_unreadable(out, inputs)


def _emit_unreadable(out: SourceWriter, tensors: Sequence[TensorSlot]) -> None:
    with out.block("except RuntimeError as error:"):
        names, values = tensor_names(tensors), tensor_tuple(tensors)
        out.line(f"raise unreadable_error({names}, {values}, error) from error")


def _emit_tensor(out: SourceWriter, tensor: TensorSlot) -> None:
    t, name = f"t{tensor.index}", python_string(tensor.name)
    # By its private _neg_view torch negates tensors of any type.
    lazy = f"{t}.is_neg()" + (f" or {t}.is_conj()" if tensor.dtype.kind is Kind.COMPLEX else "")
    with out.block(f"if type({t}) is not Tensor or {t}.layout is not strided or {lazy}:"):
        out.line(f"check_tensor({name}, {t})")
    refuse(
        out,
        f"{t}.dtype is not dtype_{tensor.dtype.name}",
        f"dtype_error({name}, {t}, {python_string(tensor.dtype.name)})",
    )
    out.line(f"shape = {t}.shape")
    refuse(out, f"len(shape) != {len(tensor.shape)}", f"rank_error({name}, {t}, {len(tensor.shape)})")
    if tensor.shape:
        axes = range(len(tensor.shape))
        out.line(f"{', '.join(f'd{tensor.index}_{axis}' for axis in axes)}, = shape")
        if tensor.strides is not None:
            out.line(f"{', '.join(f'r{tensor.index}_{axis}' for axis in axes)}, = {t}.stride()")


def _emit_device(out: SourceWriter, inputs: Sequence[TensorSlot]) -> None:
    names, tensors = tensor_names(inputs), tensor_tuple(inputs)
    if any(tensor.nullable for tensor in inputs):
        out.line(f"device = check_device({names}, {tensors}, device)")
        return
    devices = [f"t{tensor.index}.get_device()" for tensor in inputs]
    wrong = [f"not t{inputs[0].index}.is_cuda", *(f"{other} != device" for other in devices[1:])]
    out.line(f"device = {devices[0]}")
    with out.block(f"if given is not None or {' or '.join(wrong)}:"):
        out.line(f"check_device({names}, {tensors}, given)")


def emit_layouts(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write the checks that tensors are contiguous which do not name their strides, and lie in their storages."""
    inputs = plan.inputs
    for tensor in inputs:
        if tensor.strides is None:
            t = f"t{tensor.index}"
            there = f"{t} is not None and " if tensor.nullable else ""
            refuse(out, f"{there}not {t}.is_contiguous()", f"layout_error({python_string(tensor.name)}, {t})")
    if inputs:
        out.line(f"check_storage({tensor_names(inputs)}, {tensor_tuple(inputs)})")


def emit_pointers(out: SourceWriter, plan: LaunchPlan, *, remembers: bool, destined: bool = False) -> None:
    """Write the lines that take the tensors' addresses, and check them.

    Where there is a memo they set ``passed`` as well: the call's integers, the same object as long as they, and the
    tensors' layouts, are those of the call before. There may be ``places`` then, the addresses.

    Parameters
    ----------
    out
        Takes the lines.
    plan
        The plan.
    remembers
        Whether there are ``places``, and a ``memo`` to look into and to write into.
    destined
        Whether these are of the tensors given under ``out=``, too.
    """
    inputs = plan.inputs
    if not inputs:
        return
    if not remembers:
        _emit_reading(out, inputs)
        _emit_addresses(out, inputs)
        return
    if destined:
        with out.block("if out is None:"):
            _emit_passed(out, plan, inputs)
        with out.block("else:"):
            _emit_passed(out, plan, plan.tensors)
    else:
        _emit_passed(out, plan, inputs)
    out.line("seen = memo[0]")  # read once: other threads write it
    with out.block("if passed == seen:"):
        out.line("passed = seen")
    with out.block("else:"):
        for scalar in _recognised(plan):
            _emit_range(out, scalar)
        _emit_addresses(out, inputs)
        if destined:
            emit_given_outputs(out, plan)
        out.line("memo[0] = passed")


def _emit_passed(out: SourceWriter, plan: LaunchPlan, tensors: Sequence[TensorSlot]) -> None:
    """Write the lines that take the addresses of tensors, and set ``passed``."""
    with out.block("if places is None:"):
        _emit_reading(out, tensors)
    with out.block("else:"):
        out.line(f"{', '.join(f'p{tensor.index}' for tensor in tensors)}, = places")
    given = [f"p{tensor.index}" for tensor in tensors if tensor.output]
    out.line(f"passed = {python_tuple([*passed_names(plan), *given])}")


def _emit_reading(out: SourceWriter, inputs: Sequence[TensorSlot]) -> None:
    with out.block("try:"):
        for tensor in inputs:
            t, p = f"t{tensor.index}", f"p{tensor.index}"
            value = f"data_ptr({t})"
            out.line(f"{p} = {f'0 if {t} is None else {value}' if tensor.nullable else value}")
    _emit_unreadable(out, inputs)


def _emit_addresses(out: SourceWriter, inputs: Sequence[TensorSlot]) -> None:
    for tensor in inputs:
        t, p = f"t{tensor.index}", f"p{tensor.index}"
        wrong = f"{p} not in good_{tensor.alignment}"
        there = f"{t} is not None and {wrong}" if tensor.nullable else wrong
        with out.block(f"if {there}:"):
            out.line(f"check_pointer({python_string(tensor.name)}, {t}, {p}, {tensor.alignment})")


# Numbers -------------------------------------------------------------------------------------------------------------


def emit_number(
    out: SourceWriter,
    plan: LaunchPlan,
    slot: ScalarSlot | PointerSlot | StructSlot,
    *,
    remembers: bool = False,
) -> None:
    """Write the check and the conversion of a scalar, an address or a struct.

    Parameters
    ----------
    out
        Takes the lines.
    plan
        The plan.
    slot
        Which.
    remembers
        Whether `emit_pointers` recognises integers of an earlier call: it checks the others' ranges.
    """
    if isinstance(slot, PointerSlot):
        _emit_address(out, slot)
    elif isinstance(slot, StructSlot):
        _emit_struct(out, slot)
    elif remembers and slot in _recognised(plan):
        with out.block(f"if type(s{slot.index}) is not int:"):
            _emit_conversion(out, slot)
    else:
        _emit_scalar(out, slot)
        if is_computed_with(plan, slot):
            out.line(f"i{slot.index} = +s{slot.index}")  # an expression's value is an int


def _recognised(plan: LaunchPlan) -> list[ScalarSlot]:
    """Return the integers that no expression computes with: whether they are in range can be said last."""
    given = plan.signature.scalars
    return [one for one in plan.scalars if one.dtype.is_integer and given[one.index].symbol is None]


def _emit_range(out: SourceWriter, scalar: ScalarSlot) -> None:
    low, high = scalar.dtype.integer_range
    with out.block(f"if not {low} <= s{scalar.index} <= {high}:"):
        _emit_conversion(out, scalar)


def _emit_conversion(out: SourceWriter, scalar: ScalarSlot) -> None:
    """Write the call that converts an integer, or refuses it."""
    s, (low, high) = f"s{scalar.index}", scalar.dtype.integer_range
    out.line(f"{s} = integer({python_string(scalar.name)}, {s}, {low}, {high})")


def _emit_scalar(out: SourceWriter, scalar: ScalarSlot) -> None:
    s, name, kind = f"s{scalar.index}", python_string(scalar.name), scalar.dtype
    if kind.kind is Kind.BOOL:
        with out.block(f"if type({s}) is not bool:"):
            out.line(f"{s} = boolean({name}, {s})")
    elif kind.is_integer:
        low, high = kind.integer_range
        with out.block(f"if type({s}) is not int or not {low} <= {s} <= {high}:"):
            _emit_conversion(out, scalar)
    elif kind.kind is Kind.COMPLEX:
        out.line(f"{s}_re, {s}_im = complex_parts({name}, {s}, {python_string(kind.name)})")
    elif kind.is_small_float:
        # The value stays what it was: a call that is refused is diagnosed with it.
        out.line(f"{s}_bits = small_float({name}, {s}, {python_string(kind.name)})")
    else:
        limit = overflow_limit(kind.name)
        within = f" or not -{limit!r} < {s} < {limit!r}" if math.isfinite(limit) else ""
        with out.block(f"if type({s}) is not float{within}:"):
            out.line(f"{s} = real({name}, {s}, {python_string(kind.name)})")


def _emit_address(out: SourceWriter, pointer: PointerSlot) -> None:
    a, name = f"a{pointer.index}", python_string(pointer.name)
    unaligned = f" or {a} & {pointer.alignment - 1}" if pointer.alignment > 1 else ""
    with out.block(f"if type({a}) is not int or not 0 < {a} < {ADDRESSES}{unaligned}:"):
        out.line(f"{a} = address({name}, {a}, {pointer.alignment}, nullable={pointer.nullable})")


def _emit_struct(out: SourceWriter, struct: StructSlot) -> None:
    u, name = f"u{struct.index}", python_string(struct.name)
    with out.block(f"if type({u}) is not bytes or len({u}) != {struct.nbytes}:"):
        out.line(f"{u} = struct_bytes({name}, {u}, {struct.nbytes})")
