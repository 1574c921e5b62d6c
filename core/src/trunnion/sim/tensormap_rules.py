"""The rules of ``cuTensorMapEncodeTiled`` and ``cuTensorMapEncodeIm2col`` to which the simulated driver holds callers.

Source: CUDA Driver API, Tensor Map Object Management; rules marked *measured* are not documented, and were
seen on an H200 under driver 580. The simulator refuses what the documentation forbids even where that driver
lets it pass. It is an opinion of its own: it shares nothing with the model's tables, and tests compare the two.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from trunnion.sim.abi import DeviceAttribute
from trunnion.sim.tensormap import (
    MAX_RANK,
    Im2colRequest,
    Interleave,
    OobFill,
    Swizzle,
    TensorMapDataType,
    TiledRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.sim.devices import Device

__all__ = ["broken_im2col_rules", "broken_rules"]

_MAX_DIM: Final = 1 << 32
_MAX_STRIDE: Final = 1 << 40
_MAX_ADDRESS: Final = 1 << 57
_MAX_BOX: Final = 256
_MAX_ELEMENT_STRIDE: Final = 8
_MIN_INTERLEAVED_RANK: Final = 3
_MAX_CHANNELS: Final = 256
_MAX_PIXELS: Final = 1024
_HOPPER: Final = (9, 0)
_BLACKWELL: Final = (10, 0)
_CORNER_BITS: Final = {3: 16, 4: 8, 5: 5}
_WIDE_PACKED: Final = (TensorMapDataType.PACKED_16U4_ALIGN16B, TensorMapDataType.PACKED_16U6_ALIGN16B)
_WIDE_COUNT: Final = 128
_PACKED_SWIZZLES: Final = {
    TensorMapDataType.PACKED_16U4_ALIGN16B: (Swizzle.NONE, Swizzle.B128, Swizzle.B128_ATOM_32B),
    TensorMapDataType.PACKED_16U6_ALIGN16B: (
        Swizzle.NONE,
        Swizzle.B128,
        Swizzle.B128_ATOM_32B,
        Swizzle.B128_ATOM_64B,
    ),
}


def broken_rules(request: TiledRequest, device: Device) -> tuple[str, ...]:
    """Return a sentence for each rule that a tiled request breaks on a device; none if it is a good request."""
    return (
        *_tiled_rank(request),
        *_global_rules(request, device),
        *_tiled_box(request, device),
        *_mode_rules(request),
        *_device_rules(request, device),
    )


def broken_im2col_rules(request: Im2colRequest, device: Device) -> tuple[str, ...]:
    """Return a sentence for each rule that an im2col request breaks on a device; none if it is a good request."""
    if request.rank not in _CORNER_BITS:  # all else is said in terms of the rank
        return (f"tensorRank is {request.rank}, from 3 to {MAX_RANK} is allowed",)
    return (
        *_global_rules(request, device),
        *_corner_rules(request),
        *_bounding_box(request, device),
        *_column_rules(request, device),
        *_mode_rules(request),
        *_device_rules(request, device),
    )


def _is_hopper(device: Device) -> bool:
    return _HOPPER <= device.compute_capability < _BLACKWELL


def _tiled_rank(request: TiledRequest) -> Iterator[str]:
    if not 1 <= request.rank <= MAX_RANK:
        yield f"tensorRank is {request.rank}, from 1 to {MAX_RANK} is allowed"
    if request.interleave is not Interleave.NONE and request.rank < _MIN_INTERLEAVED_RANK:
        yield f"tensorRank is {request.rank}, at least {_MIN_INTERLEAVED_RANK} is needed with interleave"


def _global_rules(request: TiledRequest | Im2colRequest, device: Device) -> Iterator[str]:
    wide = request.interleave is Interleave.B32 or request.data_type in _WIDE_PACKED
    alignment = 32 if wide else 16
    if request.address % alignment:
        yield f"globalAddress is {request.address:#x}, a multiple of {alignment} is needed"
    if request.address >= _MAX_ADDRESS and _is_hopper(device):  # measured
        yield f"globalAddress is {request.address:#x}, it must lie below 2^57"
    for axis, extent in enumerate(request.dims):
        if not 1 <= extent <= _MAX_DIM:
            yield f"globalDim[{axis}] is {extent}, from 1 to 2^32 is allowed"
    for axis, stride in enumerate(request.strides):
        if stride % alignment or stride >= _MAX_STRIDE:
            yield f"globalStrides[{axis}] is {stride}, a multiple of {alignment} below 2^40 is needed"
    for axis, step in enumerate(request.element_strides):
        # measured: the first one is checked too, although without interleave it has no effect
        if not 1 <= step <= _MAX_ELEMENT_STRIDE:
            yield f"elementStrides[{axis}] is {step}, from 1 to {_MAX_ELEMENT_STRIDE} is allowed"
    unit = _WIDE_COUNT if request.data_type in _WIDE_PACKED else 2
    if request.data_type.is_packed and request.dims and request.dims[0] % unit:
        yield f"globalDim[0] is {request.dims[0]}, a multiple of {unit} is needed for packed elements"


def _inner_rules(
    request: TiledRequest | Im2colRequest, device: Device, what: str, count: int
) -> Iterator[str]:
    bits = count * request.data_type.bits
    documented = isinstance(request, TiledRequest) and request.interleave is Interleave.NONE
    if bits % 128 and (documented or _is_hopper(device)):  # measured for all others
        yield f"{what} spans {bits / 8:g} bytes, a multiple of 16 is needed"
    span = request.swizzle.span
    if request.interleave is Interleave.NONE and span is not None and bits > span * 8:
        yield f"{what} spans {bits / 8:g} bytes, at most the swizzle's {span} are allowed"
    if request.data_type in _WIDE_PACKED and count != _WIDE_COUNT:
        yield f"{what} is {count}, {_WIDE_COUNT} is needed for 16-byte aligned packed elements"


def _room(nbytes: int, device: Device) -> Iterator[str]:
    limit = device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
    if nbytes > limit and _is_hopper(device):  # measured
        yield f"the box holds {nbytes} bytes, at most the {limit} of a multiprocessor's shared memory fit"


def _tiled_box(request: TiledRequest, device: Device) -> Iterator[str]:
    for axis, extent in enumerate(request.box):
        if not 1 <= extent <= _MAX_BOX:
            yield f"boxDim[{axis}] is {extent}, from 1 to {_MAX_BOX} is allowed"
    if request.box:
        yield from _inner_rules(request, device, "boxDim[0]", request.box[0])
    if 0 not in request.element_strides:
        # measured: rounded down, although the hardware loads the number rounded up
        counts = (extent // step for extent, step in zip(request.box, request.element_strides, strict=False))
        yield from _room(math.prod(counts) * request.data_type.bits // 8, device)


def _corner_rules(request: Im2colRequest) -> Iterator[str]:
    half = 1 << _CORNER_BITS[request.rank] - 1
    for name, corner in (("pixelBoxLowerCorner", request.lower), ("pixelBoxUpperCorner", request.upper)):
        for axis, offset in enumerate(corner):
            if not -half <= offset < half:
                yield f"{name}[{axis}] is {offset}, from {-half} to {half - 1} is allowed"


def _bounding_box(request: Im2colRequest, device: Device) -> Iterator[str]:
    # measured: with interleave, the dimensions that have corners come first, and no channel is among them
    first = 1 if request.interleave is Interleave.NONE else 0
    for axis, (low, high) in enumerate(zip(request.lower, request.upper, strict=True), first):
        end = request.dims[axis] + high
        if end <= low:
            yield f"the bounding box goes from {low} to {end} along axis {axis}"
        elif _as_int32(end) <= low and _is_hopper(device):  # measured
            yield f"the bounding box goes from {low} to {end}, {_as_int32(end)} in 32 bits, along axis {axis}"


def _as_int32(value: int) -> int:
    return int.from_bytes((value & 0xFFFFFFFF).to_bytes(4, "little"), "little", signed=True)


def _column_rules(request: Im2colRequest, device: Device) -> Iterator[str]:
    if not 1 <= request.channels <= _MAX_CHANNELS:
        yield f"channelsPerPixel is {request.channels}, from 1 to {_MAX_CHANNELS} is allowed"
    if not 1 <= request.pixels <= _MAX_PIXELS:
        yield f"pixelsPerColumn is {request.pixels}, from 1 to {_MAX_PIXELS} is allowed"
    yield from _inner_rules(request, device, "channelsPerPixel", request.channels)
    yield from _room(request.channels * request.pixels * request.data_type.bits // 8, device)


def _mode_rules(request: TiledRequest | Im2colRequest) -> Iterator[str]:
    if request.interleave is Interleave.B32 and request.swizzle is not Swizzle.B32:
        yield "interleave 32B needs swizzle 32B"
    if (
        request.data_type is TensorMapDataType.PACKED_16U6_ALIGN16B
        and request.interleave is not Interleave.NONE
    ):
        yield "16U6_ALIGN16B needs interleave NONE"
    swizzles = _PACKED_SWIZZLES.get(request.data_type)
    if swizzles is not None and request.swizzle not in swizzles:
        yield f"swizzle {request.swizzle.name} is not allowed for {request.data_type.name}"
    if request.oob_fill is OobFill.NAN_REQUEST_ZERO_FMA and not request.data_type.is_float:
        yield f"oobFill NAN_REQUEST_ZERO_FMA needs a floating-point type, got {request.data_type.name}"


def _device_rules(request: TiledRequest | Im2colRequest, device: Device) -> Iterator[str]:
    if not device.attribute(DeviceAttribute.TENSOR_MAP_ACCESS_SUPPORTED):
        yield "the device has no tensor maps (compute capability 9.0 is needed)"
    if device.compute_capability < _BLACKWELL:  # measured
        if request.data_type.is_packed:
            yield f"{request.data_type.name} needs compute capability 10.0"
        if request.swizzle > Swizzle.B128:
            yield f"swizzle {request.swizzle.name} needs compute capability 10.0"
