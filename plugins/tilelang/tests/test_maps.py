"""Tensor maps: operands in the driver's order, and in TileLang's, become maps in tensor order."""

from __future__ import annotations

import pytest

from trunnion import Symbol, TensorParam, Workspace
from trunnion.model.expr import as_expr
from trunnion.model.expr_text import format_expr
from trunnion_tilelang.errors import Refusal
from trunnion_tilelang.maps import im2col_map, tiled_map

M, K = Symbol("m"), Symbol("k")
FLOAT16, UINT8, U4_ALIGN8B = 6, 0, 13
MODES = (0, 3, 2, 0)  # no interleave, swizzle 128B, L2 promotion 128B, no fill


def operands(*numbers):
    return [as_expr(number) for number in numbers]


def tiled(memory, *numbers, offset=0):
    return tiled_map(memory, as_expr(offset), operands(*numbers), "x_desc")


def texts(exprs):
    return exprs and [format_expr(expr) for expr in exprs]


def test_a_map_of_the_tensor_itself_has_no_layout_of_its_own():
    x = TensorParam("x", "float16", (M, 256))
    found = tiled(x, FLOAT16, 2, 256, M, 2, 512, 64, 128, 1, 1, *MODES)
    assert (found.tensor, found.box_dim, found.element_strides) == (x, (128, 64), (1, 1))
    assert (found.interleave.word, found.swizzle.word, found.l2_promotion.word) == ("NONE", "128B", "L2_128B")
    assert (found.shape, found.strides, found.dtype) == (None, None, None)


def test_strides_that_a_call_gives_are_compared_however_they_are_written():
    x = TensorParam("x", "float16", (M, K))
    found = tiled(x, FLOAT16, 2, K, M, 2, K * 2, 64, 128, 1, 1, *MODES)
    assert found.strides is None


def test_a_map_of_other_extents_says_so_in_elements():
    x = TensorParam("x", "float16", (2, 256, 4, 64))
    found = tiled(x, FLOAT16, 3, 64, 512, 4, 2, 512, 128, 64, 32, 1, 1, 1, 1, *MODES)
    assert texts(found.shape) == ["4", "512", "64"]
    assert texts(found.strides) == ["64", "256", "1"]
    assert found.box_dim == (1, 32, 64)


def test_a_map_over_a_part_begins_elements_later():
    x = TensorParam("x", "float16", (M, 256))
    found = tiled(x, FLOAT16, 2, 128, M, 2, 512, 64, 64, 1, 1, *MODES, offset=256)
    assert format_expr(found.element_offset) == "128"
    assert texts(found.strides) == ["256", "1"]


def test_a_type_that_the_driver_knows_by_its_bytes_only_is_read_as_bytes():
    x = TensorParam("x", "float8_e4m3fn", (M, 256))
    found = tiled(x, UINT8, 2, 256, M, 1, 256, 64, 64, 1, 1, 0, 2, 2, 0)
    assert (found.dtype, found.data_type_code) == (None, UINT8)


def test_packed_elements_are_read_as_the_driver_names_them():
    x = TensorParam("x", "float4_e2m1fn_x2", (M, 128))
    found = tiled(x, U4_ALIGN8B, 2, 256, M, 0, 128, 64, 64, 1, 1, 0, 1, 2, 0)
    assert found.element_word == "16U4_ALIGN8B"
    assert (texts(found.shape), texts(found.strides)) == (["m", "256"], ["256", "1"])


def test_a_workspace_can_be_mapped():
    w = Workspace("w", "float16", (64, 64))
    assert tiled(w, FLOAT16, 2, 64, 64, 2, 128, 64, 64, 1, 1, *MODES).tensor == w


def test_im2col_has_its_corners_outermost_first_and_pixels_before_channels():
    image = TensorParam("image", "float16", (4, 32, 48, 64))
    found = im2col_map(
        image,
        as_expr(0),
        operands(
            *(FLOAT16, 4, 64, 48, 32, 4, 2, 128, 6144, 196608, 1, 2, 3, 1),
            *(-1, -2, -3, -4, 128, 32, *MODES),
        ),
        "image_desc",
    )
    assert found.element_strides == (1, 3, 2, 1)
    assert (found.pixel_box_lower_corner, found.pixel_box_upper_corner) == ((-2, -1), (-4, -3))
    assert (found.pixels_per_column, found.channels_per_pixel) == (128, 32)
    assert found.shape is None


@pytest.mark.parametrize(
    ("numbers", "named"),
    [
        ((FLOAT16, 2, 256, M, 2, 512, 64, 128, 1, 1, 0, 3, 2), "too few"),
        ((FLOAT16, 2, 256, M, 2, 512, 64, 128, 1, 1, *MODES, 7), "more"),
        ((FLOAT16, 2, 256, M, 2, 512, M, 128, 1, 1, *MODES), "the box"),
        ((99, 2, 256, M, 2, 512, 64, 128, 1, 1, *MODES), "data type"),
        ((FLOAT16, 0, *MODES), "rank"),
        ((FLOAT16, 2, 256, M, 2, 512, 64, 128, 1, 1, 0, 9, 2, 0), "swizzle"),
        ((FLOAT16, 2, 256, M, 4, 512, 64, 128, 1, 1, *MODES), "contiguous"),
        ((FLOAT16, 2, 256, M, 2, 511, 64, 128, 1, 1, *MODES), "whole number"),
        ((FLOAT16, 2, 256, M, 2, 512, 128, 128, 1, 1, *MODES), "swizzle"),
    ],
)
def test_what_is_no_map_is_refused(numbers, named):
    with pytest.raises(Refusal) as caught:
        tiled(TensorParam("x", "float16", (M, 256)), *numbers)
    assert named in str(caught.value)


def test_an_offset_between_two_elements_is_refused():
    with pytest.raises(Refusal):
        tiled(
            TensorParam("x", "float16", (M, 256)), FLOAT16, 2, 256, M, 2, 512, 64, 128, 1, 1, *MODES, offset=3
        )
