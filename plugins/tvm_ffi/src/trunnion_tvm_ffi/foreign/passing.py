"""Arguments of a function that nobody described: passed as they are, but for arrays that need a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.dlpack import CPU, CUDA
from trunnion.messages import type_name
from trunnion.model.plan import refusals as rows
from trunnion_tvm_ffi.foreign.arrays import Purpose, is_producer, placed
from trunnion_tvm_ffi.foreign.dlpack import device_name
from trunnion_tvm_ffi.foreign.preparation import PreparedCall, askers, check_stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion_tvm_ffi.foreign.arrays import Arrays

__all__ = ["pass_on"]


def pass_on(
    arrays: Arrays, args: Sequence[Any], out: Any, device: tuple[int, int] | None, stream: int | None
) -> PreparedCall:
    """Return a call of arguments that only the function checks.

    Arrays may stand within tuples, lists and dicts, as TVM-FFI takes them. The first that lies on a CUDA device says
    which device it is; without one the call is on the host, if there is an array at all.

    Raises
    ------
    ArgumentTypeError
        If the call gives destinations: these are arguments here.
    ArgumentValueError
        If a CUDA array needs a stream that the call does not name, or the arrays lie elsewhere than the call says.
    DeviceRequirementError
        If the call names a stream and nothing says of which device.
    """
    if out is not None:
        raise rows.OUT_IS_ARGUMENT(type_name(out))
    reader = _Reader(arrays, stream)
    handed = tuple(reader.read(value, f"argument {index}") for index, value in enumerate(args))
    found = reader.device()
    if device is not None and found is not None and device != found:
        raise rows.PLACE_DIFFERS(device_name(device), device_name(found), "arrays")
    place = found if device is None else device
    if place is None and stream is not None:
        raise rows.NO_DEVICE()
    check_stream(place, stream)
    torch, asks = askers(arrays, reader.handed, place, stream)
    return PreparedCall(handed, (), (), place, stream, asks, torch)


class _Reader:
    """Collects the arrays among arguments."""

    def __init__(self, arrays: Arrays, stream: int | None) -> None:
        self.arrays, self.stream = arrays, stream
        self.handed: list[Any] = []
        self.places: list[tuple[int, int]] = []

    def device(self) -> tuple[int, int] | None:
        """Return the device that the arrays say."""
        cuda = (place for place in self.places if place[0] == CUDA)
        return next(cuda, (CPU, 0) if self.places else None)

    def read(self, value: Any, name: str) -> Any:
        """Return what the function is given for an argument."""
        kind = type(value)
        if kind in (tuple, list):
            return kind(self.read(item, name) for item in value)
        if kind is dict:
            return {key: self.read(item, name) for key, item in value.items()}
        if self.arrays.is_torch(value):
            self.places.append(self.arrays.device_of(value))
        elif is_producer(value):
            place = placed(value, name)
            self.places.append(place)
            if place[0] == CUDA:
                value = self.arrays.read(value, Purpose(name, stream=self.stream)).handed
        else:
            return value
        self.handed.append(value)
        return value
