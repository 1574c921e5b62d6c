"""Tensor maps that only a call can show to be wrong: backends and the oracle judge them alike."""

from __future__ import annotations

from functools import partial

import pytest
from twins.outcome import notes_of

from trunnion.errors import DriverError, shorten
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, symbols
from trunnion.sim.status import Status
from trunnion.testing.strategies import CallSpec, TensorSpec
from trunnion.testing.strategies.calls import row_major


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


def two_maps():
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n, m = symbols("n m")
    x = builder.input("x", "float16", (2, n, m), strides=(Symbol("s"), Symbol("r"), 1))
    name = "y'" * 60
    y = builder.input(name, "float32", (n, m))
    columns = x.im2col(
        pixel_box_lower_corner=(-1,),
        pixel_box_upper_corner=(-2,),
        channels_per_pixel=8,
        pixels_per_column=32,
        swizzle="32B",
    )
    builder.launch("k", (y.tiled(box_dim=(8, 16), oob_fill="NAN_REQUEST_ZERO_FMA"), columns), 1, 1)
    return builder.build(), name


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("cuTensorMapEncodeTiled", "TiledFields(address={}, element_bits=32, "),
        ("cuTensorMapEncodeIm2col", "Im2colFields(address={}, element_bits=16, "),
    ],
    ids=["tiled", "im2col"],
)
@pytest.mark.parametrize("way", ["call", "entry", "bind"])
def test_what_the_driver_refuses_to_encode_is_told_with_the_map_and_all_its_fields(
    with_sample, simulator, way, call, said
):
    """Which no rule of ours states: its words alone do not say which of the maps it was."""
    program, name = two_maps()
    x = TensorSpec(dtype="float16", shape=(2, 6, 32), strides=(1024, 64, 1))
    y = TensorSpec(dtype="float32", shape=(6, 32), strides=row_major((6, 32)))
    told = []
    with with_sample.loaded(program) as pair:
        args = pair.loaded[0][0].arguments((x, y))
        for _, loaded in pair.loaded:
            loaded.preload(0)
            ways = {"entry": partial(loaded.entry, *args)} | {
                one: partial(getattr(loaded, one), args) for one in ("call", "bind")
            }
            with simulator.fault(call, Status.NOT_SUPPORTED), pytest.raises(DriverError) as caught:
                simulator.call(ways[way])
            error = caught.value
            told.append((type(error), str(error), vars(error), notes_of(error)))
    assert all(one == told[0] for one in told), told
    (note,) = told[0][3]
    memory, tensor = (name, args[1]) if said.startswith("Tiled") else ("x", args[0])
    assert note.startswith(f"tensor map over {shorten(memory)}: {said.format(tensor.data_ptr())}")
