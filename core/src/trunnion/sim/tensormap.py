"""Tensor maps of the simulated driver: a request, and the 128 bytes that stand for it.

Everything here is in driver order, **innermost dimension first**, as in ``cuTensorMapEncode*`` and in the
coordinates of ``cp.async.bulk.tensor``. What the simulated encode writes holds the whole request, so that a
kernel body reads back what was delivered and nothing else: there is no registry of maps.
"""

from __future__ import annotations

import enum
import struct
import zlib
from dataclasses import dataclass
from typing import Final, TypedDict

from trunnion.errors import CorruptArtifactError
from trunnion.sim.abi import TENSOR_MAP_BYTES

__all__ = [
    "CommonFields",
    "Im2colRequest",
    "Interleave",
    "L2Promotion",
    "MapRequest",
    "OobFill",
    "Swizzle",
    "TensorMapDataType",
    "TiledRequest",
    "decode",
    "encode",
]

MAX_RANK: Final = 5


class TensorMapDataType(enum.IntEnum):
    """``CUtensorMapDataType``."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12
    PACKED_16U4_ALIGN8B = 13
    PACKED_16U4_ALIGN16B = 14
    PACKED_16U6_ALIGN16B = 15

    @property
    def bits(self) -> int:
        """Bits of one element in global memory."""
        return _BITS[self]

    @property
    def is_float(self) -> bool:
        """Whether the type is a floating-point type."""
        return TensorMapDataType.FLOAT16 <= self <= TensorMapDataType.TFLOAT32_FTZ

    @property
    def is_packed(self) -> bool:
        """Whether elements are smaller than a byte."""
        return self >= TensorMapDataType.PACKED_16U4_ALIGN8B


_BITS: Final = dict(
    zip(TensorMapDataType, (8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6), strict=True)
)


class Interleave(enum.IntEnum):
    """``CUtensorMapInterleave``."""

    NONE = 0
    B16 = 1
    B32 = 2


class Swizzle(enum.IntEnum):
    """``CUtensorMapSwizzle``."""

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3
    B128_ATOM_32B = 4
    B128_ATOM_32B_FLIP_8B = 5
    B128_ATOM_64B = 6

    @property
    def span(self) -> int | None:
        """The bytes within which chunks are moved; None without swizzling."""
        return (None, 32, 64, 128, 128, 128, 128)[self]


class L2Promotion(enum.IntEnum):
    """``CUtensorMapL2promotion``."""

    NONE = 0
    L2_64B = 1
    L2_128B = 2
    L2_256B = 3


class OobFill(enum.IntEnum):
    """``CUtensorMapFloatOOBfill``."""

    NONE = 0
    NAN_REQUEST_ZERO_FMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRequest:
    """What both calls that encode tensor maps are asked for; every sequence is innermost first."""

    address: int
    """``globalAddress``."""

    data_type: TensorMapDataType
    """``tensorDataType``."""

    dims: tuple[int, ...]
    """``globalDim``: elements along each dimension."""

    strides: tuple[int, ...]
    """``globalStrides``: bytes along each dimension but the innermost, one fewer than `dims`."""

    element_strides: tuple[int, ...]
    """``elementStrides``: the step along each dimension, in elements."""

    interleave: Interleave = Interleave.NONE
    """``interleave``."""

    swizzle: Swizzle = Swizzle.NONE
    """``swizzle``."""

    l2_promotion: L2Promotion = L2Promotion.NONE
    """``l2Promotion``."""

    oob_fill: OobFill = OobFill.NONE
    """``oobFill``."""

    @property
    def rank(self) -> int:
        """``tensorRank``."""
        return len(self.dims)


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledRequest(MapRequest):
    """What ``cuTensorMapEncodeTiled`` was asked for."""

    box: tuple[int, ...]
    """``boxDim``: elements of the box along each dimension."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Im2colRequest(MapRequest):
    """What ``cuTensorMapEncodeIm2col`` was asked for; the dimensions are channels, W, H, D, N."""

    lower: tuple[int, ...]
    """``pixelBoxLowerCorner``: where the box of pixels begins, from the tensor's first pixel, along W, H, D."""

    upper: tuple[int, ...]
    """``pixelBoxUpperCorner``: where the box of pixels ends, from the tensor's last pixel, along W, H, D."""

    channels: int
    """``channelsPerPixel``."""

    pixels: int
    """``pixelsPerColumn``."""


class CommonFields(TypedDict):
    """The fields of a `MapRequest`."""

    address: int
    data_type: TensorMapDataType
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: Interleave
    swizzle: Swizzle
    l2_promotion: L2Promotion
    oob_fill: OobFill


# magic, checksum of all that follows, address, then mode, type, rank, interleave, swizzle, promotion and fill;
# dims less one (2^32 is allowed) and strides with room for rank 5; then what only one of the modes has.
_COMMON: Final = struct.Struct("<8sIQ7B5I4Q")
_TILED: Final = struct.Struct("<5H5B")  # box, element strides
_IM2COL: Final = struct.Struct("<3h3hHH5B")  # corners, channels, pixels, element strides
_MAGIC: Final = b"trnTMAp\x01"
_BODY: Final = 12


def _padded(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    return values + (0,) * (count - len(values))


def encode(request: TiledRequest | Im2colRequest) -> bytes:
    """Return the 128 bytes that stand for a request which keeps the rules of `trunnion.sim.tensormap_rules`."""
    common = _COMMON.pack(
        _MAGIC,
        0,
        request.address,
        isinstance(request, Im2colRequest),
        request.data_type,
        request.rank,
        request.interleave,
        request.swizzle,
        request.l2_promotion,
        request.oob_fill,
        *_padded(tuple(extent - 1 for extent in request.dims), MAX_RANK),
        *_padded(request.strides, MAX_RANK - 1),
    )
    steps = _padded(request.element_strides, MAX_RANK)
    if isinstance(request, TiledRequest):
        mode = _TILED.pack(*_padded(request.box, MAX_RANK), *steps)
    else:
        corners = (*_padded(request.lower, MAX_RANK - 2), *_padded(request.upper, MAX_RANK - 2))
        mode = _IM2COL.pack(*corners, request.channels, request.pixels, *steps)
    packed = (common + mode).ljust(TENSOR_MAP_BYTES, b"\0")
    return packed[:8] + struct.pack("<I", zlib.crc32(packed[_BODY:])) + packed[_BODY:]


def decode(data: bytes) -> TiledRequest | Im2colRequest:
    """Return the request that 128 bytes stand for.

    Parameters
    ----------
    data
        What a launch delivered.

    Raises
    ------
    CorruptArtifactError
        If the simulated driver did not write these bytes, or something changed them.
    """
    if len(data) != TENSOR_MAP_BYTES or not data.startswith(_MAGIC):
        raise CorruptArtifactError("tensor map", f"{len(data)} bytes that no simulated encode wrote")
    (_, checksum, address, im2col, kind, rank, interleave, swizzle, promotion, fill, *rest) = (
        _COMMON.unpack_from(data)
    )
    if checksum != zlib.crc32(data[_BODY:]):
        raise CorruptArtifactError("tensor map", "its bytes were changed after the encode")
    mode = (_IM2COL if im2col else _TILED).unpack_from(data, _COMMON.size)
    steps_at = 8 if im2col else 5
    common = CommonFields(
        address=address,
        data_type=TensorMapDataType(kind),
        dims=tuple(extent + 1 for extent in rest[:rank]),
        strides=tuple(rest[5 : 5 + rank - 1]),
        element_strides=mode[steps_at : steps_at + rank],
        interleave=Interleave(interleave),
        swizzle=Swizzle(swizzle),
        l2_promotion=L2Promotion(promotion),
        oob_fill=OobFill(fill),
    )
    if not im2col:
        return TiledRequest(box=mode[:rank], **common)
    lower, upper, channels, pixels = mode[: rank - 2], mode[3 : 3 + rank - 2], mode[6], mode[7]
    return Im2colRequest(lower=lower, upper=upper, channels=channels, pixels=pixels, **common)
