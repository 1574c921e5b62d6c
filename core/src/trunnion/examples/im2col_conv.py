"""A 3 x 3 convolution with dilation and unequal padding, through an im2col tensor map with unequal corners."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trunnion.examples.example import Example, device_code
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, ceildiv, le

if TYPE_CHECKING:
    import torch

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelCall

__all__ = ["EXAMPLE"]

_TOP, _LEFT, _BOTTOM, _RIGHT = 1, 2, 3, 4
_DILATION = (1, 2)
_TAPS = 3
_REACH_H, _REACH_W = ((_TAPS - 1) * step for step in _DILATION)  # from the filter's first tap to its last
_PIXELS, _FILTERS, _CHANNELS = 64, 64, 32
_DEFINES = {"TOP": _TOP, "LEFT": _LEFT, "DILATION_H": _DILATION[0], "DILATION_W": _DILATION[1]}
_MOST = 2**31 - 1


def _program() -> KernelProgram:
    defines = tuple((name, str(value)) for name, value in _DEFINES.items())
    code = device_code("im2col_conv.cu", headers=("tensor_copy.cuh",), defines=defines, target="sm_90a")
    p = ProgramBuilder("im2col_conv", code)
    n, h, w = Symbol("n", min=1), Symbol("h", min=1), Symbol("w", min=1)
    c = Symbol("c", min=8, max=_MOST, multiple_of=8)  # a pixel's pitch is a multiple of 16 bytes
    k = Symbol("k", min=1, max=65535 * _FILTERS)
    pixels = p.input("pixels", "float16", (n, h, w, c), alignment=16)
    filters = p.input("filters", "float16", (k, _TAPS, _TAPS, c), alignment=16)
    rows, columns = h + (_TOP + _BOTTOM - _REACH_H), w + (_LEFT + _RIGHT - _REACH_W)
    out = p.output("out", "float32", (n, rows, columns, k))
    p.check(le(n * rows * columns, _MOST - _PIXELS), "fewer than 2^31 pixels")
    columns_of_pixels = pixels.im2col(
        pixel_box_lower_corner=(-_TOP, -_LEFT),
        pixel_box_upper_corner=(_BOTTOM - _REACH_H, _RIGHT - _REACH_W),
        channels_per_pixel=_CHANNELS,
        pixels_per_column=_PIXELS,
        l2_promotion="L2_128B",
    )
    boxes_of_filters = filters.tiled(box_dim=(_FILTERS, 1, 1, _CHANNELS), l2_promotion="L2_128B")
    p.launch(
        "im2col_conv",
        args=(columns_of_pixels, boxes_of_filters, out, *(e.cast("int32") for e in (n, rows, columns, c, k))),
        grid=(ceildiv(n * rows * columns, _PIXELS), ceildiv(k, _FILTERS)),
        block=128,
    )
    return p.build()


def _inputs(
    generator: torch.Generator, device: str, *, shape: tuple[int, int, int, int, int] = (2, 9, 7, 40, 72)
) -> tuple[torch.Tensor, ...]:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    *images, c, k = shape
    pixels = torch.randn(*images, c, generator=generator).half()
    filters = torch.randn(k, _TAPS, _TAPS, c, generator=generator).half()
    return pixels.to(device), filters.to(device)


def _reference(pixels: torch.Tensor, filters: torch.Tensor) -> torch.Tensor:
    import torch.nn.functional as nn  # noqa: PLC0415 - describing a program must not import torch

    images = nn.pad(pixels.double().permute(0, 3, 1, 2), (_LEFT, _RIGHT, _TOP, _BOTTOM))
    result = nn.conv2d(images, filters.double().permute(0, 3, 1, 2), dilation=_DILATION)
    return result.permute(0, 2, 3, 1).float().contiguous()


def _body(call: KernelCall) -> None:
    """Do what ``im2col_conv.cu`` does, tile by tile, with what the launch delivered."""
    import torch  # noqa: PLC0415 - describing a program must not import torch

    pixels, filters = call.im2col_map(0), call.tensor_map(1)
    n, rows, columns, c, k = (int(call.scalar(i, "int32")) for i in range(3, 8))
    out = call.memory.view(call.pointer(2), "float32", (n * rows * columns, k))
    for first in range(0, call.grid[0] * _PIXELS, _PIXELS):
        image, at = divmod(first, rows * columns)
        row, column = divmod(at, columns)
        start = (column - _LEFT, row - _TOP, image)
        collected = [
            pixels.load((channel, *start), (tap_w * _DILATION[1], tap_h * _DILATION[0])).float()
            for tap_h, tap_w, channel in _steps(c)
        ]
        for filter_ in range(0, call.grid[1] * _FILTERS, _FILTERS):
            tile = torch.zeros(_PIXELS, _FILTERS)
            for a, (tap_h, tap_w, channel) in zip(collected, _steps(c), strict=True):
                b = filters.load((channel, tap_w, tap_h, filter_))
                tile += a @ b.reshape(_FILTERS, _CHANNELS).float().T
            own = out[first : first + _PIXELS, filter_ : filter_ + _FILTERS]
            own.copy_(tile[: own.shape[0], : own.shape[1]])


def _steps(channels: int) -> list[tuple[int, int, int]]:
    """Return, in the kernel's order, each tap and the first channel of each chunk."""
    taps = range(_TAPS)
    return [
        (row, column, first) for row in taps for column in taps for first in range(0, channels, _CHANNELS)
    ]


EXAMPLE = Example(
    name="im2col_conv",
    summary="a dilated convolution with unequal padding, through an im2col map; fp16 in, fp32 out",
    program=_program(),
    inputs=_inputs,
    edges=tuple(
        partial(_inputs, shape=shape) for shape in ((1, 1, 1, 8, 1), (3, 5, 17, 64, 64), (1, 30, 3, 8, 130))
    ),
    reference=_reference,
    bodies={"im2col_conv": _body},
    tolerance=1e-5,
)
