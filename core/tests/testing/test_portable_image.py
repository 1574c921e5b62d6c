"""The image that every device can run."""

from __future__ import annotations

from trunnion.image import read_ptx
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.testing.portable_image import portable_image


def test_the_kernels_take_what_the_program_passes():
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = builder.input("x", "float32", (4, 16))
    builder.launch("k", (x, builder.scalar("b", "bool"), x.tiled(box_dim=(4, 8))), 1, 32)
    builder.launch("empty", (), 1, 32)
    image = portable_image(builder.build())
    assert (image.kind, str(image.target.arch)) == ("ptx", "compute_80")
    assert [kernel.name for kernel in image.kernels] == ["k", "empty"]
    sizes = [[parameter.size for parameter in kernel.parameters] for kernel in read_ptx(image.data).kernels]
    assert sizes == [[8, 1, 128], []]
