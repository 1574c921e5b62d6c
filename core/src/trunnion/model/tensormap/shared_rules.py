"""The constraints that ``cuTensorMapEncodeTiled`` and ``cuTensorMapEncodeIm2col`` share.

Source of each documented row: CUDA Driver API, "Tensor Map Object Managment", both functions' pages.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trunnion.model.tensormap.rule import (
    Architectures,
    H200Answer,
    Origin,
    Rule,
    innermost_first,
    outermost_first,
    outside,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.model.tensormap.fields import MapFields

__all__ = [
    "BOX_BYTES",
    "HOPPER",
    "LAYOUT_RULES",
    "LEAST_CAPABILITY",
    "MODE_RULES",
    "WIDE_PACKED",
    "is_whole_chunks",
]

BOX_BYTES = 233_472
"""The shared memory of one of a Hopper device's multiprocessors, in bytes (228 KiB)."""

HOPPER = Architectures(range(9, 10))
"""Where the measured rules were measured: all devices of compute capability 9."""

_BEFORE_BLACKWELL = Architectures(range(10))
_MAX_EXTENT = 1 << 32
_ADDRESS_END = 1 << 57
_STRIDE_END = 1 << 40
_MAX_STEP = 8
_CHUNK_BITS = 128
_INTERLEAVE_32B = 2
_SWIZZLE_32B = 1
_SWIZZLE_128B = 3
_SWIZZLE_SPAN = {1: 32, 2: 64, 3: 128, 4: 128, 5: 128, 6: 128}
_FLOAT_CODES = frozenset({6, 7, 8, 9, 10, 11, 12})
_PACKED_8B, _PACKED_16B, _PACKED_6BIT = 13, 14, 15
_PACKED_SWIZZLES = {_PACKED_16B: frozenset({0, 3, 4}), _PACKED_6BIT: frozenset({0, 3, 4, 6})}

WIDE_PACKED = frozenset({_PACKED_16B, _PACKED_6BIT})
"""``CUtensorMapDataType`` of the packed types that take 16 bytes for 16 elements in shared memory."""


def is_whole_chunks(fields: MapFields) -> bool:
    """Whether the box's inner dimension is a multiple of 16 bytes, as far as it is known."""
    return fields.inner_bits is None or fields.inner_bits % _CHUNK_BITS == 0


def _unit(f: MapFields) -> int:
    return 32 if f.interleave == _INTERLEAVE_32B or f.data_type in WIDE_PACKED else 16


LEAST_CAPABILITY = (9, 0)
"""Of devices that have tensor maps: CUDA Driver API, "Tensor Map Object Management"."""


def _no_tensor_maps(_: MapFields) -> Iterator[str]:
    yield "the device is older"


def _alignment(f: MapFields) -> Iterator[str]:
    if f.address is not None and f.address % _unit(f):
        yield f"the address is {f.address:#x}, not a multiple of {_unit(f)}"


def _null(f: MapFields) -> Iterator[str]:
    if f.address == 0:
        yield "the address is 0x0"


def _address_end(f: MapFields) -> Iterator[str]:
    if f.address is not None and f.address >= _ADDRESS_END:
        yield f"the address is {f.address:#x}"


def _strides(f: MapFields) -> Iterator[str]:
    unit = _unit(f)
    for index, stride in enumerate(f.strides):
        if stride is not None and (stride % unit or not 0 <= stride < _STRIDE_END):
            said = f"{innermost_first('global_strides', index)} is {stride} bytes, not a multiple of {unit} below 2**40"
            yield said + (_padding(8 * unit, f.element_bits) if stride % unit else "")


def _padding(unit: int, element_bits: int) -> str:
    """Return what to do about a stride that is no multiple of ``unit`` bits."""
    multiple = unit // math.gcd(unit, element_bits)
    words = f"make the innermost extent, or that stride, a multiple of {multiple} elements"
    return f": {words}; Symbol(..., multiple_of={multiple}) declares it"


def _extents(f: MapFields) -> Iterator[str]:
    for index, extent in enumerate(f.dims):
        if extent is not None and not 1 <= extent <= _MAX_EXTENT:
            yield f"{innermost_first('global_dim', index)} is {extent}"


def _innermost(f: MapFields) -> Iterator[str]:
    contiguous = f.innermost_stride in (None, 1) or (f.dims and f.dims[0] == 1)
    if not contiguous:
        yield f"the innermost stride is {f.innermost_stride} elements"


def _packed_extent(f: MapFields) -> Iterator[str]:
    unit = 128 if f.data_type in WIDE_PACKED else 2 if f.data_type == _PACKED_8B else 1
    if f.dims and f.dims[0] is not None and f.dims[0] % unit:
        yield f"{innermost_first('global_dim', 0)} is {f.dims[0]}, not a multiple of {unit}"


def _span(f: MapFields) -> Iterator[str]:
    span = _SWIZZLE_SPAN.get(f.swizzle)
    if span is None or f.interleave or f.inner_bits is None:
        return
    if f.inner_bits > 8 * span:
        yield f"the box's inner dimension spans {f.inner_bits / 8:g} bytes, more than the swizzle's {span}"


def _innermost_step(f: MapFields) -> Iterator[str]:
    if not f.interleave and f.element_strides and f.element_strides[0] not in (0, 1):
        place = outermost_first("element_strides", f.element_strides, 0)
        yield f"{place} is {f.element_strides[0]}, which the hardware would ignore"


def _interleave_swizzle(f: MapFields) -> Iterator[str]:
    if f.interleave == _INTERLEAVE_32B and f.swizzle != _SWIZZLE_32B:
        yield "interleave 32B is not paired with swizzle 32B"


def _fill(f: MapFields) -> Iterator[str]:
    if f.oob_fill and f.data_type not in _FLOAT_CODES:
        yield "NaN fill is asked for with a type that is not a float"


def _packed_interleave(f: MapFields) -> Iterator[str]:
    if f.data_type == _PACKED_6BIT and f.interleave:
        yield "16U6_ALIGN16B is interleaved"


def _packed_swizzle(f: MapFields) -> Iterator[str]:
    allowed = _PACKED_SWIZZLES.get(f.data_type)
    if allowed is not None and f.swizzle not in allowed:
        yield f"swizzle {f.swizzle} (CUtensorMapSwizzle) is asked for with data type {f.data_type}"


def _packed(f: MapFields) -> Iterator[str]:
    if f.data_type >= _PACKED_8B:
        yield f"the data type is {f.data_type} (CUtensorMapDataType)"


def _atom(f: MapFields) -> Iterator[str]:
    if f.swizzle > _SWIZZLE_128B:
        yield f"the swizzle is {f.swizzle} (CUtensorMapSwizzle)"


LAYOUT_RULES: tuple[Rule[MapFields], ...] = (
    Rule(
        text="the device has compute capability 9.0 or more",
        violations=_no_tensor_maps,
        architectures=Architectures(range(LEAST_CAPABILITY[0])),
        h200=H200Answer.UNSEEN,
    ),
    Rule(
        text="the address is a multiple of 16 bytes, or of 32 with interleave 32B or a type 16U4_ALIGN16B or "
        "16U6_ALIGN16B",
        violations=_alignment,
    ),
    Rule(
        text="the address is not null",
        violations=_null,
        origin=Origin.OURS,
        h200=H200Answer.ACCEPTS,
        reason="every load through such a map would fault",
    ),
    Rule(
        text="the address is below 2**57",
        violations=_address_end,
        origin=Origin.MEASURED,
        architectures=HOPPER,
    ),
    Rule(
        text="each extent is 1 to 2**32",
        violations=_extents,
    ),
    Rule(
        text="the innermost extent is a multiple of 2 with type 16U4_ALIGN8B, of 128 with 16U4_ALIGN16B and "
        "16U6_ALIGN16B",
        violations=_packed_extent,
        h200=H200Answer.UNSEEN,
    ),
    Rule(
        text="each stride is a multiple of 16 bytes (32 with interleave 32B or a type 16U4_ALIGN16B or "
        "16U6_ALIGN16B) and below 2**40",
        violations=_strides,
    ),
    Rule(
        text="the innermost dimension is contiguous",
        violations=_innermost,
        origin=Origin.OURS,
        h200=H200Answer.ACCEPTS,
        reason="the driver has no word for another layout, and would read other elements",
    ),
    Rule(
        text="each element stride is 1 to 8",
        violations=lambda f: outside("element_strides", f.element_strides, 1, _MAX_STEP),
    ),
    Rule(
        text="without interleave, every element of the innermost dimension is taken",
        violations=_innermost_step,
        origin=Origin.OURS,
        h200=H200Answer.ACCEPTS,
        reason="the hardware ignores the first element stride there, so the map would read other elements",
    ),
)
"""What concerns the tensor in global memory."""

MODE_RULES: tuple[Rule[MapFields], ...] = (
    Rule(
        text="without interleave, the box's inner dimension fits the swizzle's span (32, 64 or 128 bytes)",
        violations=_span,
    ),
    Rule(
        text="interleave 32B goes with swizzle 32B",
        violations=_interleave_swizzle,
        h200=H200Answer.ACCEPTS,
        reason="the documentation demands it; the driver lets swizzles NONE, 64B and 128B pass",
    ),
    Rule(text="NaN fill is for float types only", violations=_fill),
    Rule(text="type 16U6_ALIGN16B is not interleaved", violations=_packed_interleave, h200=H200Answer.UNSEEN),
    Rule(
        text="type 16U4_ALIGN16B goes with swizzle NONE, 128B or 128B_ATOM_32B, type 16U6_ALIGN16B with these "
        "or 128B_ATOM_64B",
        violations=_packed_swizzle,
        h200=H200Answer.UNSEEN,
    ),
    Rule(
        text="the packed types (16U4_ALIGN8B, 16U4_ALIGN16B, 16U6_ALIGN16B) need compute capability 10.0",
        violations=_packed,
        origin=Origin.MEASURED,
        architectures=_BEFORE_BLACKWELL,
    ),
    Rule(
        text="the swizzles 128B_ATOM_* need compute capability 10.0",
        violations=_atom,
        origin=Origin.MEASURED,
        architectures=_BEFORE_BLACKWELL,
    ),
)
"""What concerns the way in which boxes are delivered."""
