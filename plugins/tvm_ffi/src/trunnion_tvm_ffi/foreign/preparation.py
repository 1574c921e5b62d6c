"""What the generated preparation of a call asks: of each tensor, of the place of all of them, and of the outputs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from trunnion.arguments import spanned_bytes
from trunnion.dlpack import CPU, CUDA
from trunnion.errors import ArgumentError, shorten
from trunnion.launcher import refusals
from trunnion.launcher.memory import ALLOCATOR_ALIGNMENT, aligned_bytes
from trunnion.launcher.recall import Recall
from trunnion.launcher.tensors import check_disjoint
from trunnion.messages import type_name
from trunnion.model.dtypes import dtype
from trunnion.model.plan import refusals as rows
from trunnion.model.plan.places import author_extents
from trunnion_tvm_ffi.foreign.arrays import ForeignArray, Purpose, library_of
from trunnion_tvm_ffi.foreign.dlpack import device_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.model.plan import LaunchPlan
    from trunnion.model.plan.slots import TensorSlot
    from trunnion_tvm_ffi.foreign.arrays import Arrays

__all__ = ["Preparation", "PreparedCall", "askers", "check_stream"]

_MOST_GOOD = 1024  # addresses


class PreparedCall(NamedTuple):
    """A call that is checked: what a function is given, and where."""

    arguments: tuple[Any, ...]
    """What it is given, in its own order."""

    outputs: tuple[Any, ...]
    """Torch tensors, or `ForeignArray`: what the call returns; empty if the function returns them itself."""

    shapes: tuple[tuple[int, ...], ...]
    """The outputs' shapes."""

    device: tuple[int, int] | None
    """DLPack's device type and the ordinal; None: the call has no tensor, and names no device."""

    stream: int | None
    """The stream that the caller named."""

    asks: bool
    """Whether TVM-FFI asks the tensors' library for the stream."""

    torch: bool
    """Whether a torch tensor is among the arguments."""


class Preparation:
    """What a generated preparation finds.

    Parameters
    ----------
    plan
        The plan of the signature.
    arrays
        How arrays are read in this process.
    returned
        Whether the function returns its outputs, instead of being given them.
    """

    def __init__(self, plan: LaunchPlan, arrays: Arrays, *, returned: bool) -> None:
        self._plan = plan
        self._slots = plan.tensors
        self._outputs = plan.outputs
        self._written = tuple(tensor.access != "read" for tensor in plan.signature.tensors)
        self._arrays = arrays
        self._returned = returned
        self._recall = Recall(self._guard)
        self.good: tuple[set[int], ...] = tuple(set() for _ in self._written)
        """For each input the addresses that are known to be good for it, in a storage that reaches far enough."""

    def tensor(self, index: int, value: Any, stream: int | None) -> Any:
        """Return an argument as a torch tensor or a `ForeignArray`, of the right type and rank.

        Raises
        ------
        ArgumentError
            If it is none.
        """
        slot = self._slots[index]
        return self._read(slot, value, Purpose(slot.name, self._written[index], stream))

    def _read(self, slot: TensorSlot, value: Any, purpose: Purpose) -> Any:
        try:
            array = self._arrays.read(value, purpose)
            self._arrays.check_type(slot.name, array, slot.dtype)
            if array.dim() != len(slot.shape):
                raise refusals.rank_error(slot.name, array, len(slot.shape))
            tuple(array.stride())  # some refuse to say
        except RuntimeError as error:
            raise refusals.unreadable_error((slot.name,), (value,), error) from error
        return array

    def place(
        self, tensors: tuple[Any, ...], given: tuple[int, int] | None, stream: int | None
    ) -> tuple[int, int] | None:
        """Return the device that a call runs on; None if nothing says it and nothing needs it.

        Parameters
        ----------
        tensors
            What `tensor` returned; None for one that the call leaves out.
        given
            What the call says under ``device=``.
        stream
            What it says under ``stream=``.

        Raises
        ------
        ArgumentValueError
            If a tensor lies elsewhere than the first one, or than ``device=`` says, or the host is to have a stream.
        DeviceRequirementError
            If there is neither a tensor nor a ``device=``, and outputs or a stream need one.
        """
        device, owner = given, ""
        for slot, tensor in zip(self._slots, tensors, strict=False):
            if tensor is None:
                continue
            found = self._arrays.device_of(tensor)
            if not owner:
                device, owner = found, slot.name
            elif found != device:
                raise rows.OTHER_PLACE(slot.name, device_name(found), device_name(device or found), owner)
        if given is not None and device is not None and given != device:
            raise rows.PLACE_DIFFERS(device_name(given), device_name(device), "tensors")
        needed = stream is not None or (self._outputs and not self._returned)
        if device is None and needed:
            raise rows.NO_DEVICE()
        check_stream(device, stream)
        return device

    def settle(self, index: int, tensor: Any, device: tuple[int, int]) -> None:
        """Accept a tensor whose elements lie as they must, in its storage.

        Raises
        ------
        ArgumentError
            If they do not.
        """
        slot, good = self._slots[index], self.good[index]
        try:
            self._check_memory(slot, tensor, device, contiguous=slot.strides is None)
        except RuntimeError as error:
            raise refusals.unreadable_error((slot.name,), (tensor,), error) from error
        if tensor.numel() and type(tensor) is not ForeignArray:
            if len(good) >= _MOST_GOOD:
                good.clear()
            good.add(tensor.data_ptr())

    def _check_memory(
        self, slot: TensorSlot, tensor: Any, device: tuple[int, int], *, contiguous: bool
    ) -> None:
        if contiguous and not tensor.is_contiguous():
            raise refusals.layout_error(slot.name, tensor)
        address = tensor.data_ptr()
        if tensor.numel() == 0:
            return
        if not address:
            raise rows.NULL_TENSOR(slot.name)
        room = self._arrays.room(tensor, device)
        if room is not None and room < spanned_bytes(tensor):
            raise refusals.storage_error(slot.name, room, spanned_bytes(tensor))
        if address % slot.alignment:
            raise refusals.alignment_error(slot.name, address, slot.alignment)

    # Outputs ---------------------------------------------------------------------------------------------------

    def outputs(
        self,
        shapes: tuple[tuple[int, ...], ...],
        out: Any,
        device: tuple[int, int] | None,
        stream: int | None,
    ) -> tuple[Any, ...]:
        """Return the outputs that the function is given: new ones, or what the caller gives.

        Raises
        ------
        ArgumentError
            If what the caller gives does not fit, or two of them overlap; or if no memory is that large.
        LifecycleError
            If the process forked since a CUDA device was used.
        """
        self._arrays.check_process(device)
        if self._returned or device is None:
            if out is not None:
                raise rows.OWN_OUTPUTS(type_name(out))
            return ()
        if out is None:
            return tuple(
                self._allocate(slot, shape, device, stream)
                for slot, shape in zip(self._outputs, shapes, strict=True)
            )
        if len(out) != len(self._outputs):
            raise refusals.out_count_error(out, tuple(slot.name for slot in self._outputs))
        given = []
        for index, (slot, value, shape) in enumerate(zip(self._outputs, out, shapes, strict=True)):
            try:
                given.append(self._destination(slot, value, shape, (device, stream)))
            except ArgumentError as error:
                error.place = refusals.out_place(index, len(self._outputs))
                raise
        check_disjoint(given, [slot.name for slot in self._outputs])
        return tuple(given)

    def _allocate(
        self, slot: TensorSlot, shape: tuple[int, ...], device: tuple[int, int], stream: int | None
    ) -> Any:
        runtime, ordinal = self._arrays.of_device(device), device[1]
        handle = runtime.current_stream(ordinal) if stream is None else stream
        kind, elements = runtime.dtype(slot.dtype), math.prod(shape)
        # As launchers do: a device's allocator promises so much, a host's may do more than it promises.
        if not elements or device[0] != CUDA or slot.alignment <= ALLOCATOR_ALIGNMENT:
            made = runtime.allocate(shape, kind, ordinal, handle)
            if not elements or made.data_ptr() % slot.alignment == 0:
                return made
        byte = runtime.dtype(dtype("uint8"))
        found = aligned_bytes(
            lambda count: runtime.allocate((count,), byte, ordinal, handle),
            elements * slot.dtype.itemsize,
            slot.alignment,
        )
        return found.view(kind).view(shape)

    def _destination(
        self,
        slot: TensorSlot,
        value: Any,
        shape: tuple[int, ...],
        where: tuple[tuple[int, int], int | None],
    ) -> Any:
        device, stream = where
        array = self._read(slot, value, Purpose(slot.name, written=True, stream=stream))
        for axis, (got, extent) in enumerate(zip(array.shape, shape, strict=True)):
            if got != extent:
                text = author_extents(self._plan, slot)[axis]
                raise refusals.extent_error(slot.name, axis, got, extent, text)
        found = self._arrays.device_of(array)
        if found != device:
            raise rows.OUTPUT_PLACE(slot.name, device_name(found), device_name(device))
        if slot.fill is not None and device[0] == CUDA and type(array) is ForeignArray:
            raise rows.FILLED_ELSEWHERE(slot.name, type_name(value))
        try:
            self._check_memory(slot, array, device, contiguous=True)
        except RuntimeError as error:
            raise refusals.unreadable_error((slot.name,), (array,), error) from error
        return array

    # The whole -------------------------------------------------------------------------------------------------

    def remember(self, tensors: tuple[Any, ...], found: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return what the next call is to recall, if all tensors are torch's; see `Recall`."""
        return self._recall(tensors, found) if all(map(self._arrays.is_torch, tensors)) else None

    def _guard(self, tensors: tuple[Any, ...]) -> Callable[..., bool] | None:
        return self._arrays.of_device(self._arrays.device_of(tensors[0])).guard(tensors)

    def prepared(
        self,
        arguments: tuple[Any, ...],
        results: tuple[tuple[Any, ...], tuple[tuple[int, ...], ...]],
        device: tuple[int, int] | None,
        stream: int | None,
        torch: bool,
    ) -> PreparedCall:
        """Return the call.

        Parameters
        ----------
        arguments
            What the function is given, arrays as `tensor` and `outputs` returned them.
        results
            The outputs, and their shapes.
        device
            What `place` returned.
        stream
            The stream that the caller named.
        torch
            Whether every array is known to be torch's.

        Raises
        ------
        ArgumentValueError
            If the tensors are of several libraries, each with a current stream, and the call names none.
        """
        asks = torch
        if not torch:
            arguments = tuple(
                argument.handed if type(argument) is ForeignArray else argument for argument in arguments
            )
            torch, asks = askers(self._arrays, arguments, device, stream)
        return PreparedCall(arguments, *results, device, stream, asks, torch)


def check_stream(device: tuple[int, int] | None, stream: int | None) -> None:
    """Refuse a stream of the host, which has none.

    Raises
    ------
    ArgumentValueError
        If there is one.
    """
    if stream and device is not None and device[0] == CPU:
        raise rows.STREAM_OF_HOST(stream)


def askers(
    arrays: Arrays, handed: Sequence[Any], device: tuple[int, int] | None, stream: int | None
) -> tuple[bool, bool]:
    """Return whether torch tensors are among what a function is handed, and whether TVM-FFI asks any library.

    On the host there is nothing to ask for.

    Raises
    ------
    ArgumentValueError
        If CUDA arrays are of several libraries, each with a current stream, and the call names none.
    """
    if device is None or device[0] != CUDA:
        return False, False
    asked = [argument for argument in handed if library_of(argument) is not None]
    if stream is None and len({library_of(argument) for argument in asked}) > 1:
        kinds = sorted({type_name(argument) for argument in asked})
        raise rows.SEVERAL_STREAMS(" and ".join(map(shorten, kinds)))
    return any(map(arrays.is_torch, handed)), bool(asked)
