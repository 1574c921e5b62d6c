"""The oracle's own statement of what ``cuTensorMapEncodeTiled`` allows.

Source: CUDA Driver API, Tensor Map Object Management.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.testing.expected import ExpectedMap

__all__ = ["broken_rules"]

_INNER_LIMIT = {1: 32, 2: 64, 3: 128, 4: 128, 5: 128, 6: 128}  # bytes, by CUtensorMapSwizzle
_FLOATS = frozenset(range(6, 13))  # CUtensorMapDataType: FLOAT16 to TFLOAT32_FTZ


def broken_rules(request: ExpectedMap, address: int, itemsize: int, inner_step: int) -> Iterator[str]:
    """Yield what a driver would refuse.

    Parameters
    ----------
    request
        The map, innermost dimension first.
    address
        The address of its first element in bytes, as far as it is known: an output's counts from 0.
    itemsize
        Bytes of one element.
    inner_step
        Elements between neighbours along the innermost dimension.
    """
    unit = 32 if request.interleave == 2 else 16  # noqa: PLR2004 - the code of 32B
    if not (3 if request.interleave else 1) <= len(request.dims) <= 5:  # noqa: PLR2004 - the documented ranks
        yield f"rank {len(request.dims)}"
    if address % unit:
        yield f"address {address:#x}"
    if any(not 1 <= extent <= 2**32 for extent in request.dims):
        yield f"extents {request.dims}"
    if any(stride % unit or not 0 <= stride < 2**40 for stride in request.strides):
        yield f"strides of {request.strides} bytes"
    if inner_step != 1 and request.dims[:1] != (1,):
        yield f"innermost step {inner_step}"
    if any(not 1 <= extent <= 256 for extent in request.box):  # noqa: PLR2004 - the documented box
        yield f"box {request.box}"
    if any(not 1 <= step <= 8 for step in request.element_strides):  # noqa: PLR2004 - the documented steps
        yield f"element strides {request.element_strides}"
    yield from _broken_box(request, itemsize)


def _broken_box(request: ExpectedMap, itemsize: int) -> Iterator[str]:
    inner = request.box[0] * itemsize if request.box else 0
    if not request.interleave and inner % 16:
        yield f"an inner box of {inner} bytes"
    if not request.interleave and inner > _INNER_LIMIT.get(request.swizzle, inner):
        yield f"an inner box of {inner} bytes under swizzle {request.swizzle}"
    if not request.interleave and request.element_strides[:1] not in ((), (1,)):
        yield f"an innermost element stride of {request.element_strides[0]}"
    if request.interleave == 2 and request.swizzle != 1:  # noqa: PLR2004 - the code of 32B
        yield "interleave 32B without swizzle 32B"
    if request.oob_fill and request.dtype not in _FLOATS:
        yield "NaN fill of a type that is not a float"
