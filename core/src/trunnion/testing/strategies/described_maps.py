"""Maps whose numbers a program says, not a call: each number at an end of what a rule allows, and one beyond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const
from trunnion.model.params import TensorParam

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunnion.model.tensormap import TensorMap

__all__ = ["DescribedMap", "described_maps"]

_SPANS: Final = {
    "32B": 32,
    "64B": 64,
    **dict.fromkeys(("128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"), 128),
}
"""How many bytes of a box a swizzle takes in its innermost dimension, by the swizzle."""

_PACKED: Final = {
    "16U4_ALIGN16B": ("NONE", "128B", "128B_ATOM_32B"),
    "16U6_ALIGN16B": ("NONE", "128B", "128B_ATOM_32B", "128B_ATOM_64B"),
}
"""The swizzles that a packed element type allows (CUDA Driver API, ``cuTensorMapEncodeTiled``)."""

_CORNERS: Final = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}
"""The least and the greatest offset of a corner, by the rank."""


@dataclass(frozen=True, slots=True)
class DescribedMap:
    """The description of a map over bytes."""

    kind: str
    """The method of a tensor that makes it."""

    shape: tuple[int, ...]
    """The tensor's extents."""

    fields: Mapping[str, Any]
    """What the method is given."""

    broken: str = ""
    """Words of the one rule that it breaks; empty: it is a good one."""

    def describe(self) -> TensorMap:
        """Return the map.

        Raises
        ------
        TensorMapError
            If it breaks a rule.
        """
        tensor = TensorParam("a", dtype("uint8"), tuple(map(Const, self.shape)))
        made: TensorMap = getattr(tensor, self.kind)(**self.fields)
        return made


def described_maps(*, im2col: bool) -> Iterator[DescribedMap]:
    """Yield the maps.

    Parameters
    ----------
    im2col
        Whether some are im2col ones.
    """
    yield from _ranks()
    yield from _boxes()
    yield from _steps()
    yield from _swizzles()
    if im2col:
        yield from _corners()
        yield from _columns()


def _unless(good: bool, words: str) -> str:
    return "" if good else words


def _ranks() -> Iterator[DescribedMap]:
    for rank, interleave, good in (
        *((0, "NONE", False), (1, "NONE", True), (5, "NONE", True), (6, "NONE", False)),
        *((2, "16B", False), (3, "16B", True)),
    ):
        shape = (*(2,) * rank, 16)[-rank:] if rank else ()
        box = {"box_dim": (*(1,) * rank, 16)[-rank:] if rank else (), "interleave": interleave}
        yield DescribedMap("tiled", shape, box, _unless(good, "the rank is"))


def _boxes() -> Iterator[DescribedMap]:
    for extent in (0, 1, 256, 257):
        broken = _unless(1 <= extent <= 256, "each box dimension")  # noqa: PLR2004 - the documented limit
        yield DescribedMap("tiled", (300, 512), {"box_dim": (extent, 16)}, broken)
    for extent in (256, 272):
        broken = _unless(extent == 256, "each box dimension")  # noqa: PLR2004 - the documented limit
        yield DescribedMap("tiled", (300, 512), {"box_dim": (1, extent)}, broken)
    for extent in (8, 16, 24):
        broken = _unless(extent == 16, "a multiple of 16 bytes")  # noqa: PLR2004 - the documented chunk
        yield DescribedMap("tiled", (300, 512), {"box_dim": (8, extent)}, broken)


def _steps() -> Iterator[DescribedMap]:
    for step in (0, 1, 8, 9):
        broken = _unless(step in (1, 8), "each element stride")
        yield DescribedMap("tiled", (300, 512), {"box_dim": (8, 16), "element_strides": (step, 1)}, broken)
        inner = {"box_dim": (1, 8, 16), "element_strides": (1, 1, step), "interleave": "16B"}
        yield DescribedMap("tiled", (2, 300, 512), inner, broken)
    fields = {"box_dim": (8, 16), "element_strides": (1, 2)}
    yield DescribedMap("tiled", (300, 512), fields, "every element of the innermost dimension")


def _swizzles() -> Iterator[DescribedMap]:
    for swizzle, span in _SPANS.items():
        for extent in (span, span + 16):
            broken = _unless(extent == span, f"more than the swizzle's {span}")
            yield DescribedMap("tiled", (300, 512), {"box_dim": (8, extent), "swizzle": swizzle}, broken)
    for kind, allowed in _PACKED.items():
        for swizzle in ("NONE", *(one for one, span in _SPANS.items() if span == max(_SPANS.values()))):
            layout = {"dtype": kind, "shape": (Const(8), Const(128)), "strides": (Const(128), Const(1))}
            broken = _unless(swizzle in allowed, "is asked for with data type")
            yield DescribedMap(
                "tiled", (300, 512), {"box_dim": (8, 128), "swizzle": swizzle, **layout}, broken
            )
        for extent in (64, 192, 256):
            fields = {"box_dim": (8, extent), **layout}
            yield DescribedMap("tiled", (300, 512), fields, "the box's inner dimension is 128 elements")


def _corners() -> Iterator[DescribedMap]:
    for rank, (least, most) in _CORNERS.items():
        for end, beyond in ((least, least - 1), (most, most + 1)):
            yield _cornered(rank, end, end)
            yield _cornered(rank, beyond, end, "each offset of the lower corner")
            yield _cornered(rank, end, beyond, "each offset of the upper corner")


def _cornered(rank: int, lower: int, upper: int, broken: str = "") -> DescribedMap:
    """Return a map with corners whose last offset is as told."""
    first, second = ((*(max(-16, min(last, 15)),) * (rank - 3), last) for last in (lower, upper))
    return DescribedMap("im2col", (*(2,) * (rank - 1), 64), _im2col(first, second), broken)


def _columns() -> Iterator[DescribedMap]:
    for channels in (0, 16, 256, 272):
        broken = _unless(channels in (16, 256), "the channels per pixel are 1 to 256")
        yield DescribedMap("im2col", (2, 2, 512), _im2col((0,), (0,), channels), broken)
    for pixels in (0, 1, 1024, 1025):
        broken = _unless(pixels in (1, 1024), "the pixels per column are 1 to 1024")
        yield DescribedMap("im2col", (2, 2, 512), _im2col((0,), (0,), 16, pixels), broken)


def _im2col(
    lower: tuple[int, ...], upper: tuple[int, ...], channels: int = 16, pixels: int = 1
) -> dict[str, Any]:
    return {
        "pixel_box_lower_corner": lower,
        "pixel_box_upper_corner": upper,
        "channels_per_pixel": channels,
        "pixels_per_column": pixels,
    }
