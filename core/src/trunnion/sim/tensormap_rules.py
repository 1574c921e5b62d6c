"""The rules of ``cuTensorMapEncodeTiled``, as the simulated driver holds callers to them.

Source: CUDA Driver API, Tensor Map Object Management; rules marked *measured* are not documented, and were
seen on an H200 under driver 580. The simulator refuses what the documentation forbids even where that driver
lets it pass.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from trunnion.sim.abi import DeviceAttribute
from trunnion.sim.tensormap import MAX_RANK, Interleave, OobFill, Swizzle, TensorMapDataType, TiledRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.sim.devices import Device

__all__ = ["broken_rules"]

_MAX_DIM: Final = 1 << 32
_MAX_STRIDE: Final = 1 << 40
_MAX_BOX: Final = 256
_MAX_ELEMENT_STRIDE: Final = 8
_MIN_INTERLEAVED_RANK: Final = 3
_BLACKWELL: Final = (10, 0)
_WIDE_PACKED: Final = (TensorMapDataType.PACKED_16U4_ALIGN16B, TensorMapDataType.PACKED_16U6_ALIGN16B)
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
    """Return a sentence for each rule that a request breaks on a device; none if it is a good request."""
    return (
        *_rank_rules(request),
        *_global_rules(request),
        *_box_rules(request, device),
        *_mode_rules(request),
        *_device_rules(request, device),
    )


def _rank_rules(request: TiledRequest) -> Iterator[str]:
    if not 1 <= request.rank <= MAX_RANK:
        yield f"tensorRank is {request.rank}, from 1 to {MAX_RANK} is allowed"
    if request.interleave is not Interleave.NONE and request.rank < _MIN_INTERLEAVED_RANK:
        yield f"tensorRank is {request.rank}, at least {_MIN_INTERLEAVED_RANK} is needed with interleave"


def _global_rules(request: TiledRequest) -> Iterator[str]:
    wide = request.interleave is Interleave.B32 or request.data_type in _WIDE_PACKED
    alignment = 32 if wide else 16
    if request.address % alignment:
        yield f"globalAddress is {request.address:#x}, a multiple of {alignment} is needed"
    for axis, extent in enumerate(request.dims):
        if not 1 <= extent <= _MAX_DIM:
            yield f"globalDim[{axis}] is {extent}, from 1 to 2^32 is allowed"
    for axis, stride in enumerate(request.strides):
        if stride % alignment or stride >= _MAX_STRIDE:
            yield f"globalStrides[{axis}] is {stride}, a multiple of {alignment} below 2^40 is needed"
    multiple = {TensorMapDataType.PACKED_16U4_ALIGN8B: 2}.get(request.data_type, 128 if wide else 1)
    if request.data_type.is_packed and request.dims and request.dims[0] % multiple:
        yield f"globalDim[0] is {request.dims[0]}, a multiple of {multiple} is needed for packed elements"


def _box_rules(request: TiledRequest, device: Device) -> Iterator[str]:
    for axis, extent in enumerate(request.box):
        if not 1 <= extent <= _MAX_BOX:
            yield f"boxDim[{axis}] is {extent}, from 1 to {_MAX_BOX} is allowed"
    for axis, step in enumerate(request.element_strides):
        # measured: the first one is checked too, although without interleave it has no effect
        if not 1 <= step <= _MAX_ELEMENT_STRIDE:
            yield f"elementStrides[{axis}] is {step}, from 1 to {_MAX_ELEMENT_STRIDE} is allowed"
    if not request.box:
        return
    inner = request.box[0] * request.data_type.bits
    if inner % 128:  # measured: with interleave too
        yield f"boxDim[0] spans {inner // 8} bytes, a multiple of 16 is needed"
    span = request.swizzle.span
    if request.interleave is Interleave.NONE and span is not None and inner > span * 8:
        yield f"boxDim[0] spans {inner // 8} bytes, at most the swizzle's {span} are allowed"
    if request.data_type in _WIDE_PACKED and request.box[0] != 128:  # noqa: PLR2004 - the rule's own number
        yield f"boxDim[0] is {request.box[0]}, 128 is needed for 16-byte aligned packed elements"
    limit = device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
    counts = (
        math.ceil(extent / step) if step else extent
        for extent, step in zip(request.box, (1, *request.element_strides[1:]), strict=False)
    )
    nbytes = math.prod(counts) * request.data_type.bits // 8
    if nbytes > limit:  # measured
        yield f"the box holds {nbytes} bytes, at most the {limit} of a multiprocessor's shared memory fit"


def _mode_rules(request: TiledRequest) -> Iterator[str]:
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


def _device_rules(request: TiledRequest, device: Device) -> Iterator[str]:
    if not device.attribute(DeviceAttribute.TENSOR_MAP_ACCESS_SUPPORTED):
        yield "the device has no tensor maps (compute capability 9.0 is needed)"
    if device.compute_capability < _BLACKWELL:  # measured
        if request.data_type.is_packed:
            yield f"{request.data_type.name} needs compute capability 10.0"
        if request.swizzle > Swizzle.B128:
            yield f"swizzle {request.swizzle.name} needs compute capability 10.0"
