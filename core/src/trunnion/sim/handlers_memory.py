"""Memory sets and tensor maps.

Source: CUDA Driver API, Memory Management; Tensor Map Object Management.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.errors import DriverError
from trunnion.sim.abi import TENSOR_MAP_BYTES
from trunnion.sim.host import HostReader
from trunnion.sim.status import Refusal, Status
from trunnion.sim.tensormap import (
    MAX_RANK,
    Interleave,
    L2Promotion,
    OobFill,
    Swizzle,
    TensorMapDataType,
    TiledRequest,
    encode,
)
from trunnion.sim.tensormap_rules import broken_rules
from trunnion.sim.trace import MemorySet, TensorMapEncoded

if TYPE_CHECKING:
    import enum
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler

__all__ = ["HANDLERS"]


def _fill(call: Call, itemsize: int, address: int, value: int, count: int, handle: int | None) -> None:
    stream = call.stream(handle)
    device = call.state.stream_device(stream)
    if address % itemsize:
        raise Refusal(Status.INVALID_VALUE, f"{address:#x} is no multiple of {itemsize}")
    if count:
        data = value.to_bytes(itemsize, "little") * count
        try:
            call.state.memory.on(device.ordinal).write(address, data)
        except DriverError as error:
            raise Refusal(Status.INVALID_VALUE, error.explanation) from error
    call.state.trace.add(MemorySet(address, value, itemsize, count, device.ordinal, stream))


def _set8(call: Call, address: int, value: int, count: int, stream: int | None) -> None:
    _fill(call, 1, address, value, count, stream)


def _set16(call: Call, address: int, value: int, count: int, stream: int | None) -> None:
    _fill(call, 2, address, value, count, stream)


def _set32(call: Call, address: int, value: int, count: int, stream: int | None) -> None:
    _fill(call, 4, address, value, count, stream)


def _member(kind: type[enum.IntEnum], value: int, what: str) -> enum.IntEnum:
    if value not in tuple(kind):
        raise Refusal(Status.INVALID_VALUE, f"{what} is {value}, no {kind.__name__}")
    return kind(value)


def _encode_tiled(  # noqa: PLR0913, PLR0917 - the driver's own parameters
    call: Call,
    result: int | None,
    data_type: int,
    rank: int,
    address: int | None,
    dims: int | None,
    strides: int | None,
    box: int | None,
    element_strides: int | None,
    interleave: int,
    swizzle: int,
    l2_promotion: int,
    oob_fill: int,
) -> None:
    device = call.state.current().device  # measured on an H200: without a context it is refused
    if not 1 <= rank <= MAX_RANK:  # before anything is read: the arrays are as long as the rank says
        raise Refusal(Status.INVALID_VALUE, f"tensorRank is {rank}, from 1 to {MAX_RANK} is allowed")
    if not result:
        raise Refusal(Status.INVALID_VALUE, "tensorMap is a null pointer")
    with HostReader() as reader:
        request = TiledRequest(
            address=address or 0,
            data_type=TensorMapDataType(_member(TensorMapDataType, data_type, "tensorDataType")),
            dims=reader.array(ctypes.c_uint64, dims, rank, "globalDim"),
            strides=reader.array(ctypes.c_uint64, strides, rank - 1, "globalStrides"),
            box=reader.array(ctypes.c_uint32, box, rank, "boxDim"),
            element_strides=reader.array(ctypes.c_uint32, element_strides, rank, "elementStrides"),
            interleave=Interleave(_member(Interleave, interleave, "interleave")),
            swizzle=Swizzle(_member(Swizzle, swizzle, "swizzle")),
            l2_promotion=L2Promotion(_member(L2Promotion, l2_promotion, "l2Promotion")),
            oob_fill=OobFill(_member(OobFill, oob_fill, "oobFill")),
        )
    broken = broken_rules(request, device)
    if broken:
        raise Refusal(Status.INVALID_VALUE, "; ".join(broken))
    # The documentation wants 64-byte alignment of the map's own address; the driver does not (measured), and
    # interpreters cannot promise it for their objects.
    ctypes.memmove(result, encode(request), TENSOR_MAP_BYTES)
    call.state.trace.add(TensorMapEncoded(request))


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuMemsetD8Async": _set8,
        "cuMemsetD16Async": _set16,
        "cuMemsetD32Async": _set32,
        "cuTensorMapEncodeTiled": _encode_tiled,
    }
)
"""The handlers, by exported symbol (without ``_ptsz``)."""
