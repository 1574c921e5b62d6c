"""The constraints of ``cuTensorMapEncodeIm2col``, one row each.

Source of each documented row: CUDA Driver API, "Tensor Map Object Managment", ``cuTensorMapEncodeIm2col``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.model.tensormap.rule import H200Answer, Origin, Rule, outermost_first
from trunnion.model.tensormap.shared_rules import (
    BOX_BYTES,
    HOPPER,
    LAYOUT_RULES,
    MODE_RULES,
    WIDE_PACKED,
    is_whole_chunks,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.model.tensormap.fields import Im2colFields

__all__ = ["IM2COL_RULES"]

_MAX_CHANNELS = 256
_MAX_PIXELS = 1024
_WIDE_CHANNELS = 128
_CORNERS = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}
_INT32_END = 1 << 31


def _rank(f: Im2colFields) -> Iterator[str]:
    if len(f.dims) not in _CORNERS:
        yield f"the rank is {len(f.dims)}"


def _corner_count(f: Im2colFields) -> Iterator[str]:
    if len(f.dims) not in _CORNERS:
        return
    for name, corner in (("lower", f.lower), ("upper", f.upper)):
        if len(corner) != len(f.dims) - 2:
            yield f"the {name} corner has {len(corner)} offsets for rank {len(f.dims)}"


def _corner(name: str, offsets: tuple[int, ...], rank: int) -> Iterator[str]:
    low, high = _CORNERS.get(rank, (0, 0))
    for index, offset in enumerate(offsets):
        if rank in _CORNERS and not low <= offset <= high:
            place = outermost_first(f"pixel_box_{name}_corner", offsets, index)
            yield f"{place} is {offset}, allowed for rank {rank} is {low} to {high}"


def _boxes(f: Im2colFields) -> Iterator[tuple[str, int, int]]:
    """Yield each spatial dimension's place, and where the bounding box starts and ends along it, if that is known."""
    for index, (extent, lower, upper) in enumerate(zip(f.spatial_dims, f.lower, f.upper, strict=False)):
        if extent is not None:
            yield (
                f"spatial dimension {len(f.spatial_dims) - 1 - index} (outermost first)",
                lower,
                extent + upper,
            )


def _empty(f: Im2colFields) -> Iterator[str]:
    for place, start, end in _boxes(f):
        if end <= start:
            yield f"along {place} it goes from {start} to {end}"


def _wrapped(f: Im2colFields) -> Iterator[str]:
    for place, start, end in _boxes(f):
        wrapped = (end + _INT32_END) % (2 * _INT32_END) - _INT32_END
        if wrapped <= start < end:
            yield f"along {place} it ends at {end}"


def _channels(f: Im2colFields) -> Iterator[str]:
    if not 1 <= f.channels_per_pixel <= _MAX_CHANNELS:
        yield f"channels_per_pixel is {f.channels_per_pixel}"


def _wide_packed_channels(f: Im2colFields) -> Iterator[str]:
    if f.data_type in WIDE_PACKED and f.channels_per_pixel != _WIDE_CHANNELS:
        yield f"channels_per_pixel is {f.channels_per_pixel}"


def _pixels(f: Im2colFields) -> Iterator[str]:
    if not 1 <= f.pixels_per_column <= _MAX_PIXELS:
        yield f"pixels_per_column is {f.pixels_per_column}"


def _inner(f: Im2colFields) -> Iterator[str]:
    if not is_whole_chunks(f):
        yield f"the channels of a pixel span {f.channels_per_pixel * f.element_bits / 8:g} bytes"


def _bytes(f: Im2colFields) -> Iterator[str]:
    nbytes = f.channels_per_pixel * f.pixels_per_column * f.element_bits // 8
    if nbytes > BOX_BYTES:
        yield f"one column holds {nbytes} bytes"


IM2COL_RULES: tuple[Rule[Im2colFields], ...] = (
    Rule(text="the rank is 3 to 5", violations=_rank),
    *LAYOUT_RULES,
    Rule(
        text="each corner has an offset for each spatial dimension, two fewer than the rank",
        violations=_corner_count,
        h200=H200Answer.UNSEEN,
    ),
    Rule(
        text="each offset of the lower corner is -32768 to 32767 with rank 3, -128 to 127 with rank 4, "
        "-16 to 15 with rank 5",
        violations=lambda f: _corner("lower", f.lower, len(f.dims)),
    ),
    Rule(
        text="each offset of the upper corner is -32768 to 32767 with rank 3, -128 to 127 with rank 4, "
        "-16 to 15 with rank 5",
        violations=lambda f: _corner("upper", f.upper, len(f.dims)),
    ),
    Rule(
        text="the bounding box, from the lower corner to the extent plus the upper corner, is not empty",
        violations=_empty,
    ),
    Rule(
        text="the bounding box is not empty either with its end counted in 32 bits with sign",
        violations=_wrapped,
        origin=Origin.MEASURED,
        architectures=HOPPER,
    ),
    Rule(text="the channels per pixel are 1 to 256", violations=_channels),
    Rule(
        text="the channels per pixel are 128 with type 16U4_ALIGN16B or 16U6_ALIGN16B",
        violations=_wide_packed_channels,
        h200=H200Answer.UNSEEN,
    ),
    Rule(
        text="the channels per pixel are a multiple of 16 bytes",
        violations=_inner,
        origin=Origin.MEASURED,
        architectures=HOPPER,
    ),
    Rule(text="the pixels per column are 1 to 1024", violations=_pixels),
    *MODE_RULES,
    Rule(
        text=f"the pixels per column, times the channels per pixel, are at most {BOX_BYTES} bytes, "
        "the shared memory of a multiprocessor",
        violations=_bytes,
        origin=Origin.MEASURED,
        architectures=HOPPER,
    ),
)
"""Every constraint, near the order in which the documentation gives them.

Each message says in what order its index counts.
"""
