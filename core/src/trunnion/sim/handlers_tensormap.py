"""Tensor maps.

Source: CUDA Driver API, Tensor Map Object Management.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.sim.abi import TENSOR_MAP_BYTES
from trunnion.sim.host import HostReader
from trunnion.sim.status import Refusal, Status
from trunnion.sim.tensormap import (
    MAX_RANK,
    Im2colRequest,
    Interleave,
    L2Promotion,
    OobFill,
    Swizzle,
    TensorMapDataType,
    TiledRequest,
    encode,
)
from trunnion.sim.tensormap_rules import broken_im2col_rules, broken_rules
from trunnion.sim.trace import TensorMapEncoded

if TYPE_CHECKING:
    import enum
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler

__all__ = ["HANDLERS"]

_MIN_IM2COL_RANK: Final = 3


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


def _encode_im2col(  # noqa: PLR0913, PLR0917 - the driver's own parameters
    call: Call,
    result: int | None,
    data_type: int,
    rank: int,
    address: int | None,
    dims: int | None,
    strides: int | None,
    lower: int | None,
    upper: int | None,
    channels: int,
    pixels: int,
    element_strides: int | None,
    interleave: int,
    swizzle: int,
    l2_promotion: int,
    oob_fill: int,
) -> None:
    device = call.state.current().device
    # before anything is read: the arrays are as long as the rank says
    if not _MIN_IM2COL_RANK <= rank <= MAX_RANK:
        raise Refusal(
            Status.INVALID_VALUE, f"tensorRank is {rank}, from {_MIN_IM2COL_RANK} to {MAX_RANK} is allowed"
        )
    if not result:
        raise Refusal(Status.INVALID_VALUE, "tensorMap is a null pointer")
    with HostReader() as reader:
        request = Im2colRequest(
            address=address or 0,
            data_type=TensorMapDataType(_member(TensorMapDataType, data_type, "tensorDataType")),
            dims=reader.array(ctypes.c_uint64, dims, rank, "globalDim"),
            strides=reader.array(ctypes.c_uint64, strides, rank - 1, "globalStrides"),
            lower=reader.array(ctypes.c_int32, lower, rank - 2, "pixelBoxLowerCorner"),
            upper=reader.array(ctypes.c_int32, upper, rank - 2, "pixelBoxUpperCorner"),
            channels=channels,
            pixels=pixels,
            element_strides=reader.array(ctypes.c_uint32, element_strides, rank, "elementStrides"),
            interleave=Interleave(_member(Interleave, interleave, "interleave")),
            swizzle=Swizzle(_member(Swizzle, swizzle, "swizzle")),
            l2_promotion=L2Promotion(_member(L2Promotion, l2_promotion, "l2Promotion")),
            oob_fill=OobFill(_member(OobFill, oob_fill, "oobFill")),
        )
    broken = broken_im2col_rules(request, device)
    if broken:
        raise Refusal(Status.INVALID_VALUE, "; ".join(broken))
    ctypes.memmove(result, encode(request), TENSOR_MAP_BYTES)
    call.state.trace.add(TensorMapEncoded(request))


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuTensorMapEncodeTiled": _encode_tiled,
        "cuTensorMapEncodeIm2col": _encode_im2col,
    }
)
"""The handlers, by exported symbol."""
