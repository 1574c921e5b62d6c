"""The oracle's own statement of what the two ``cuTensorMapEncode*`` calls allow on an sm_90 device.

Sources: CUDA Driver API, Tensor Map Object Management; and what an H200 refuses beyond it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.testing.expected import ExpectedIm2col, ExpectedMap

__all__ = ["broken_rules"]

_INNER_LIMIT = {1: 32, 2: 64, 3: 128, 4: 128, 5: 128, 6: 128}  # bytes, by CUtensorMapSwizzle
_FLOATS = frozenset(range(6, 13))  # CUtensorMapDataType: FLOAT16 to TFLOAT32_FTZ
_CORNERS = {3: 32768, 4: 128, 5: 16}  # by the rank: offsets are at least the negative, and less
_SHARED_MEMORY = 228 << 10


def broken_rules(
    request: ExpectedMap, address: int, itemsize: int, inner_step: int
) -> Iterator[tuple[str, str]]:
    """Yield what a driver would refuse, each with a word that whoever names it must say.

    Parameters
    ----------
    request
        The map, innermost dimension first.
    address
        The address of its first element in bytes; where it is not known yet, one that is as well aligned.
    itemsize
        Bytes of one element.
    inner_step
        Elements between neighbours along the innermost dimension.
    """
    yield from _broken_layout(request, address, inner_step)
    for reason in _broken_modes(request):
        yield "", reason
    if request.im2col is None:
        for reason in _broken_box(request, request.box or (), itemsize):
            yield "box", reason
        return
    for reason in _broken_pixels(request, request.im2col):
        yield "bounding box", reason
    for reason in _broken_columns(request, request.im2col, itemsize):
        yield "", reason


def _broken_layout(request: ExpectedMap, address: int, inner_step: int) -> Iterator[tuple[str, str]]:
    unit = 32 if request.interleave == 2 else 16  # noqa: PLR2004 - the code of 32B
    least = 3 if request.interleave or request.im2col is not None else 1
    if not least <= len(request.dims) <= 5:  # noqa: PLR2004 - the documented ranks
        yield "rank", f"rank {len(request.dims)}"
    if address % unit or address == 0:
        yield "address", f"address {address:#x}"
    if any(not 1 <= extent <= 2**32 for extent in request.dims):
        yield "extent", f"extents {request.dims}"
    if any(stride % unit or not 0 <= stride < 2**40 for stride in request.strides):
        yield "stride", f"strides of {request.strides} bytes"
    if inner_step != 1 and request.dims[:1] != (1,):
        yield "innermost", f"innermost step {inner_step}"


def _broken_modes(request: ExpectedMap) -> Iterator[str]:
    if any(not 1 <= step <= 8 for step in request.element_strides):  # noqa: PLR2004 - the documented steps
        yield f"element strides {request.element_strides}"
    if not request.interleave and request.element_strides[:1] not in ((), (1,)):
        yield f"an innermost element stride of {request.element_strides[0]}"
    if request.interleave == 2 and request.swizzle != 1:  # noqa: PLR2004 - the code of 32B
        yield "interleave 32B without swizzle 32B"
    if request.oob_fill and request.dtype not in _FLOATS:
        yield "NaN fill of a type that is not a float"


def _broken_inner(request: ExpectedMap, nbytes: int) -> Iterator[str]:
    if nbytes % 16:
        yield f"an inner box of {nbytes} bytes"
    if not request.interleave and nbytes > _INNER_LIMIT.get(request.swizzle, nbytes):
        yield f"an inner box of {nbytes} bytes under swizzle {request.swizzle}"


def _broken_box(request: ExpectedMap, box: tuple[int, ...], itemsize: int) -> Iterator[str]:
    if any(not 1 <= extent <= 256 for extent in box):  # noqa: PLR2004 - the documented box
        yield f"box {box}"
    yield from _broken_inner(request, box[0] * itemsize if box else 0)
    counts = zip(box, request.element_strides, strict=False)
    loaded = math.prod(-(-extent // max(step, 1)) for extent, step in counts) * itemsize
    if loaded > _SHARED_MEMORY:
        yield f"a box of {loaded} bytes"


def _broken_pixels(request: ExpectedMap, mode: ExpectedIm2col) -> Iterator[str]:
    """Yield which boxes of pixels are empty, their ends counted in 32 bits with sign too, as a device does."""
    spatial = (
        request.dims[:-2] if request.interleave else request.dims[1:-1]
    )  # W, H, D, then blocks of channels
    for extent, lower, upper in zip(spatial, mode.lower, mode.upper, strict=False):
        end = extent + upper
        if end <= lower or (end + 2**31) % 2**32 - 2**31 <= lower:
            yield f"an empty box of pixels, from {lower} to {end}"


def _broken_columns(request: ExpectedMap, mode: ExpectedIm2col, itemsize: int) -> Iterator[str]:
    limit = _CORNERS.get(len(request.dims), 0)
    for corner in (mode.lower, mode.upper):
        if len(corner) != len(request.dims) - 2 or any(not -limit <= offset < limit for offset in corner):
            yield f"a corner of {corner} at rank {len(request.dims)}"
    if not 1 <= mode.channels <= 256 or not 1 <= mode.pixels <= 1024:  # noqa: PLR2004 - the documented limits
        yield f"{mode.channels} channels of {mode.pixels} pixels"
    yield from _broken_inner(request, mode.channels * itemsize)
    if mode.channels * mode.pixels * itemsize > _SHARED_MEMORY:
        yield f"columns of {mode.channels * mode.pixels * itemsize} bytes"
