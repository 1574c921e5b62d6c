"""What a function returned that allocates its outputs, compared with what its signature says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.errors import ArgumentError, ProgramError
from trunnion.messages import type_name
from trunnion_tvm_ffi.foreign.arrays import Purpose
from trunnion_tvm_ffi.foreign.dlpack import device_name
from trunnion_tvm_ffi.foreign.functions import is_sequence

if TYPE_CHECKING:
    from trunnion.model.plan.slots import TensorSlot
    from trunnion_tvm_ffi.foreign.arrays import Arrays
    from trunnion_tvm_ffi.foreign.preparation import PreparedCall

__all__ = ["read_results"]


def read_results(
    arrays: Arrays, outputs: tuple[TensorSlot, ...], call: PreparedCall, returned: Any
) -> tuple[Any, ...]:
    """Return what a function returned, one array for each output.

    Raises
    ------
    ProgramError
        If it is something else than the signature says.
    """
    results = tuple(returned) if is_sequence(returned) else (returned,)
    if len(results) != len(outputs):
        got = f"{len(results)} values" if is_sequence(returned) else type_name(returned)
        raise ProgramError(f"the function returned {got}, expected {len(outputs)} tensors", field="outputs")
    for index, (slot, value, shape) in enumerate(zip(outputs, results, call.shapes, strict=True)):
        wrong = _difference(arrays, slot, value, (shape, call.device))
        if wrong:
            raise ProgramError(f"the function returned {wrong}", field=f"outputs[{index}]")
    return results


def _difference(
    arrays: Arrays, slot: TensorSlot, value: Any, wanted: tuple[tuple[int, ...], tuple[int, int] | None]
) -> str:
    """Return what is wrong with a result; empty if nothing is."""
    shape, device = wanted
    try:
        # It is only looked at: nobody has to wait for anything.
        array = arrays.read(value, Purpose(slot.name, looks=True))
        arrays.check_type(slot.name, array, slot.dtype)
    except ArgumentError as error:
        return f"{error.got}, expected {error.expected}"
    found = arrays.device_of(array)
    if tuple(array.shape) != shape:
        return f"shape {tuple(array.shape)}, expected {shape}"
    if device is not None and found != device:
        return f"a tensor on {device_name(found)}, expected {device_name(device)}"
    return "" if array.is_contiguous() else f"strides {tuple(array.stride())}, expected a contiguous tensor"
