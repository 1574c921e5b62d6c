"""Tensor maps that only a call can show to be wrong: both backends and the oracle judge them alike."""

from __future__ import annotations

from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol
from trunnion.testing.strategies import CallSpec


def test_with_an_interleave_the_innermost_dimension_has_pixels_and_blocks_of_channels_have_none(twins):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    blocks, width = (Symbol(name, min=1) for name in ("blocks", "width"))
    for symbol in (blocks, width):
        builder.scalar(symbol.name, "int64", symbol=symbol)
    images = builder.workspace("images", "float16", (2, blocks, width * 8))
    columns = images.im2col(
        pixel_box_lower_corner=(-2,),
        pixel_box_upper_corner=(-16,),
        channels_per_pixel=8,
        pixels_per_column=32,
        interleave="16B",
    )
    builder.launch("k", (columns,), 1, 1)
    with twins.loaded(builder.build()) as pair:
        for given in ((1, 2), (100, 2)):
            pair.compare(CallSpec(args=given, device=0))
        assert (pair.launched, pair.refused) == (2, 0)
        for given in ((1, 1), (100, 1)):
            pair.compare(CallSpec(args=given, device=0))
        assert (pair.launched, pair.refused) == (2, 2)
