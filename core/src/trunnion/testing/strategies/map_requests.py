"""Random requests for tensor maps, in the driver's own terms: good ones, edges, and ones with something wrong.

A good request is drawn first, near the edges of what is allowed; then no, one or two of its numbers are replaced by
values from around the edge of a rule. Nothing here decides whether a request is good: that is what they are for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from trunnion.model.tensormap.fields import Im2colFields, TiledFields

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["boundary_requests", "map_requests", "random_request"]

_BITS: Final = (8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6)  # by CUtensorMapDataType
_FLOATS: Final = range(6, 13)
_PACKED_8B, _PACKED_16B = 13, 14
_SPANS: Final = {0: 2048, 1: 32, 2: 64}  # bytes, by CUtensorMapSwizzle; all others: 128
_CORNERS: Final = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}
_SPATIAL: Final = 2  # dimensions that are not spatial
_ROOM: Final = 228 << 10

_POWERS: Final = (1 << 16, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 32) - 1, 1 << 32)
_EDGES: Final[dict[str, tuple[int, ...]]] = {
    "address": (0, 8, 16, 24, 32, 48, 1 << 48, (1 << 57) - 32, (1 << 57) - 16, 1 << 57, (1 << 64) - 32),
    "dims": (0, 1, 2, 3, 64, 127, 128, *_POWERS, (1 << 32) + 1, 1 << 33),
    "strides": (0, 8, 16, 24, 32, 48, 1 << 36, (1 << 40) - 32, (1 << 40) - 16, 1 << 40, (1 << 40) + 32),
    "element_strides": (0, 1, 2, 3, 7, 8, 9, 255),
    "interleave": (0, 1, 2),
    "swizzle": (0, 1, 2, 3, 4, 5, 6),
    "oob_fill": (0, 1),
    "box": (0, 1, 2, 4, 7, 8, 12, 16, 17, 32, 40, 64, 72, 128, 136, 255, 256, 257, 264),
    "lower": (-32769, -32768, -129, -128, -17, -16, -1, 0, 1, 15, 16, 127, 128, 32767, 32768),
    "upper": (-32769, -32768, -129, -128, -17, -16, -1, 0, 1, 15, 16, 127, 128, 32767, 32768),
    "channels_per_pixel": (0, 1, 2, 4, 8, 12, 16, 32, 40, 64, 72, 128, 136, 256, 257, 264),
    "pixels_per_column": (0, 1, 2, 227, 228, 229, 456, 457, 912, 913, 1023, 1024, 1025),
}


def map_requests() -> st.SearchStrategy[TiledFields | Im2colFields]:
    """Return a strategy for requests, good and bad, tiled and im2col."""
    return st.randoms(use_true_random=False).map(random_request)


def random_request(rng: Random) -> TiledFields | Im2colFields:
    """Return a request.

    Parameters
    ----------
    rng
        Where the choices come from; equal generators give equal requests.
    """
    request: TiledFields | Im2colFields = _tiled(rng) if rng.randrange(2) else _im2col(rng)
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2))):
        request = _disturbed(rng, request)
    return request


def boundary_requests() -> Iterator[TiledFields | Im2colFields]:
    """Yield a few good requests and, for each number of each, its neighbours around the edges of the rules."""
    for base in _bases():
        yield base
        for name, edges in _EDGES.items():
            if not hasattr(base, name):
                continue
            value = getattr(base, name)
            places = [None] if isinstance(value, int) else sorted({0, len(value) - 1})
            for place in places:
                for edge in edges:
                    yield _with(base, name, place, edge)
        for code in range(len(_BITS)):
            yield replace(base, data_type=code, element_bits=_BITS[code])


def _bases() -> Iterator[TiledFields | Im2colFields]:
    common: dict[str, Any] = {"address": 1 << 20, "innermost_stride": 1, "oob_fill": 0}
    half: dict[str, Any] = {"data_type": 6, "element_bits": 16}
    single: dict[str, Any] = {"data_type": 7, "element_bits": 32}
    flat: dict[str, Any] = {"dims": (128, 40, 40), "strides": (256, 10240), "element_strides": (1, 1, 1)}
    deep: dict[str, Any] = {
        "dims": (256, 40, 40, 40),
        "strides": (512, 20480, 819200),
        "element_strides": (1, 1, 1, 1),
    }
    yield TiledFields(**common, **half, **flat, interleave=0, swizzle=3, box=(64, 8, 1))
    yield TiledFields(**common, **half, **flat, interleave=2, swizzle=1, box=(16, 128, 8))
    yield Im2colFields(
        **common, **half, **deep, interleave=0, swizzle=0, lower=(-1, -1), upper=(-1, 1),
        channels_per_pixel=128, pixels_per_column=64,
    )  # fmt: skip
    yield Im2colFields(
        **common, **single, **flat, interleave=1, swizzle=0, lower=(0,), upper=(0,),
        channels_per_pixel=64, pixels_per_column=64,
    )  # fmt: skip


def _with(
    request: TiledFields | Im2colFields, name: str, place: int | None, value: int
) -> TiledFields | Im2colFields:
    if place is not None:
        old = getattr(request, name)
        return _replaced(request, {name: (*old[:place], value, *old[place + 1 :])})
    return _replaced(request, {name: value})


def _replaced(request: TiledFields | Im2colFields, changes: dict[str, Any]) -> TiledFields | Im2colFields:
    return replace(request, **changes)


def _disturbed(rng: Random, request: TiledFields | Im2colFields) -> TiledFields | Im2colFields:
    name = rng.choice(("rank", "type", *(name for name in _EDGES if hasattr(request, name))))
    if name == "rank":
        return _of_rank(rng.randrange(7), request)
    if name == "type":
        code = rng.randrange(len(_BITS))
        return replace(request, data_type=code, element_bits=_BITS[code])
    value = getattr(request, name)
    if isinstance(value, int):
        return _with(request, name, None, rng.choice(_EDGES[name]))
    return _with(request, name, rng.randrange(len(value)), rng.choice(_EDGES[name])) if value else request


def _of_rank(rank: int, request: TiledFields | Im2colFields) -> TiledFields | Im2colFields:
    def sized(values: tuple[Any, ...], count: int) -> tuple[Any, ...]:
        return (values + (values[-1:] or (1,)) * count)[: max(count, 0)]

    counts = {"dims": rank, "element_strides": rank, "strides": rank - 1}
    if isinstance(request, TiledFields):
        counts["box"] = rank
    else:
        counts |= {"lower": rank - _SPATIAL, "upper": rank - _SPATIAL}
    return _replaced(request, {name: sized(getattr(request, name), count) for name, count in counts.items()})


def _tiled(rng: Random) -> TiledFields:
    common = _common(rng, least_rank=1)
    rank, bits = len(common["dims"]), common["element_bits"]
    box = [_inner(rng, common)]
    box.extend(rng.choice((1, 2, 3, 8, 64, 256, rng.randint(1, 256))) for _ in range(rank - 1))
    if rng.randrange(4):
        for axis in range(1, rank):
            others = bits * box[0] // 8
            for other in box[1:axis]:
                others *= other
            box[axis] = min(box[axis], max(1, _ROOM // max(others, 1)))
    return TiledFields(**common, box=tuple(box))


def _im2col(rng: Random) -> Im2colFields:
    common = _common(rng, least_rank=3)
    rank = len(common["dims"])
    low, high = _CORNERS[rank]
    extents = common["dims"][:-2] if common["interleave"] else common["dims"][1:-1]
    lower, upper = [], []
    for extent in extents:
        start = rng.choice((-1, 0, 1, low, rng.randint(low, high)))
        least = max(low, start + 1 - extent)
        if least > high:
            start, least = low, max(low, low + 1 - extent)
        lower.append(start)
        upper.append(rng.choice((least, min(least + 1, high), max(least, 0), rng.randint(least, high))))
    channels = _inner(rng, common)
    room = max(1, min(1024, _ROOM * 8 // (channels * common["element_bits"])))
    return Im2colFields(
        **common,
        lower=tuple(lower),
        upper=tuple(upper),
        channels_per_pixel=channels,
        pixels_per_column=rng.choice((1, room, rng.randint(1, room), min(64, room))),
    )


def _common(rng: Random, least_rank: int) -> dict[str, Any]:
    code = rng.choice((*range(13), *range(13), rng.randrange(len(_BITS))))
    interleave = rng.choice((0, 0, 0, 1, 2))
    rank = rng.randint(3 if interleave else least_rank, 5)
    unit = 32 if interleave == 2 or code >= _PACKED_16B else 16  # noqa: PLR2004 - the code of 32B
    multiple = {_PACKED_8B: 2}.get(code, 128 if code >= _PACKED_16B else 1)
    extents = [rng.choice((1, 2, rng.randint(1, 300), rng.choice(_POWERS[:3]))) for _ in range(rank)]
    strides = [
        unit
        * rng.choice((0, 1, rng.randrange(1 << 20), rng.randrange((1 << 40) // unit), (1 << 40) // unit - 1))
        for _ in range(rank - 1)
    ]
    steps = [1 if not interleave or rng.randrange(3) else rng.randint(1, 8)]
    steps.extend(rng.choice((1, 1, 1, 2, 8, rng.randint(1, 8))) for _ in range(rank - 1))
    return {
        "address": unit * rng.choice((1, 2, rng.randrange(1, 1 << 43), (1 << 57) // unit - 1)),
        "element_bits": _BITS[code],
        "data_type": code,
        "dims": (multiple * max(1, extents[0] // multiple), *extents[1:]),
        "strides": tuple(strides),
        "innermost_stride": 1,
        "element_strides": tuple(steps),
        "interleave": interleave,
        "swizzle": 1 if interleave == 2 else rng.choice((0, 1, 2, 3)),  # noqa: PLR2004 - the code of 32B
        "oob_fill": rng.randrange(2) if code in _FLOATS else 0,
    }


def _inner(rng: Random, common: dict[str, Any]) -> int:
    """Return elements of the inner dimension that fill whole chunks of 16 bytes and fit the swizzle."""
    bits, swizzle = common["element_bits"], common["swizzle"]
    if common["data_type"] >= _PACKED_16B:
        return 128
    span = 8 * (_SPANS[0] if common["interleave"] else _SPANS.get(swizzle, 128))
    chunks = max(1, min(span, 256 * bits) // 128)
    count: int = rng.choice((1, chunks, rng.randint(1, chunks))) * 128 // bits
    return count
