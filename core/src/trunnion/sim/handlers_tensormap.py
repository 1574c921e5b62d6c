"""Tensor maps.

Source: CUDA Driver API, Tensor Map Object Management.
"""

from __future__ import annotations

import ctypes
import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from trunnion.sim.abi import TENSOR_MAP_BYTES
from trunnion.sim.host import HostReader
from trunnion.sim.status import Refusal, Status
from trunnion.sim.tensormap import (
    MAX_RANK,
    CommonFields,
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
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler

__all__ = ["HANDLERS"]

_MIN_IM2COL_RANK: Final = 3


_HEAD: Final = ("data_type", "rank", "address", "dims", "strides")
_TAIL: Final = ("element_strides", "interleave", "swizzle", "l2_promotion", "oob_fill")
_TILED: Final = (*_HEAD, "box", *_TAIL)
_IM2COL: Final = (*_HEAD, "lower", "upper", "channels", "pixels", *_TAIL)
_Kind = TypeVar("_Kind", bound=enum.IntEnum)


def _member(kind: type[_Kind], value: int, what: str) -> _Kind:
    if value not in tuple(kind):
        raise Refusal(Status.INVALID_VALUE, f"{what} is {value}, no {kind.__name__}")
    return kind(value)


def _destination(result: int | None, rank: int, least: int) -> int:
    """Return where the map goes; before anything is read, because the arrays are as long as the rank says."""
    if not least <= rank <= MAX_RANK:
        raise Refusal(Status.INVALID_VALUE, f"tensorRank is {rank}, from {least} to {MAX_RANK} is allowed")
    if not result:
        raise Refusal(Status.INVALID_VALUE, "tensorMap is a null pointer")
    return result


def _strides(reader: HostReader, address: int | None, rank: int) -> tuple[int, ...]:
    if not address:  # measured on an H200: of one dimension too, which has no stride
        raise Refusal(Status.INVALID_VALUE, "globalStrides is a null pointer")
    return reader.array(ctypes.c_uint64, address, rank - 1, "globalStrides")


def _common(reader: HostReader, given: Mapping[str, Any]) -> CommonFields:
    rank = given["rank"]
    return CommonFields(
        address=given["address"] or 0,
        data_type=_member(TensorMapDataType, given["data_type"], "tensorDataType"),
        dims=reader.array(ctypes.c_uint64, given["dims"], rank, "globalDim"),
        strides=_strides(reader, given["strides"], rank),
        element_strides=reader.array(ctypes.c_uint32, given["element_strides"], rank, "elementStrides"),
        interleave=_member(Interleave, given["interleave"], "interleave"),
        swizzle=_member(Swizzle, given["swizzle"], "swizzle"),
        l2_promotion=_member(L2Promotion, given["l2_promotion"], "l2Promotion"),
        oob_fill=_member(OobFill, given["oob_fill"], "oobFill"),
    )


def _write(call: Call, to: int, request: TiledRequest | Im2colRequest, broken: tuple[str, ...]) -> None:
    if broken:
        raise Refusal(Status.INVALID_VALUE, "; ".join(broken))
    # The documentation wants 64-byte alignment of the map's own address; the driver does not (measured), and
    # interpreters cannot promise it for their objects.
    ctypes.memmove(to, encode(request), TENSOR_MAP_BYTES)
    call.state.trace.add(TensorMapEncoded(request))


def _encode_tiled(call: Call, result: int | None, *arguments: Any) -> None:
    given = dict(zip(_TILED, arguments, strict=True))
    device = call.state.current().device  # measured on an H200: without a context it is refused
    to = _destination(result, given["rank"], 1)
    with HostReader() as reader:
        box = reader.array(ctypes.c_uint32, given["box"], given["rank"], "boxDim")
        request = TiledRequest(box=box, **_common(reader, given))
    _write(call, to, request, broken_rules(request, device))


def _encode_im2col(call: Call, result: int | None, *arguments: Any) -> None:
    given = dict(zip(_IM2COL, arguments, strict=True))
    device = call.state.current().device
    to = _destination(result, given["rank"], _MIN_IM2COL_RANK)
    with HostReader() as reader:
        corners = given["rank"] - 2
        request = Im2colRequest(
            lower=reader.array(ctypes.c_int32, given["lower"], corners, "pixelBoxLowerCorner"),
            upper=reader.array(ctypes.c_int32, given["upper"], corners, "pixelBoxUpperCorner"),
            channels=given["channels"],
            pixels=given["pixels"],
            **_common(reader, given),
        )
    _write(call, to, request, broken_im2col_rules(request, device))


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuTensorMapEncodeTiled": _encode_tiled,
        "cuTensorMapEncodeIm2col": _encode_im2col,
    }
)
"""The handlers, by exported symbol."""
