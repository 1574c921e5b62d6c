"""The separable convolution: its taps are copied to ``__constant__`` memory, and both kernels read them there."""

from __future__ import annotations

import pytest
import torch
from real_programs import convolution as SUBJECT  # noqa: N812 - what the fixtures build

AXES = {"convolutionRowsKernel": 1, "convolutionColumnsKernel": 0}


@pytest.fixture
def bodies(built, simulator):
    """Do on the simulated device what the kernels do."""
    (taps,) = (one.symbol for one in built.artifact.manifest.variables)

    def along(axis):
        def body(call):
            w, h, pitch = (call.scalar(i, "int32") for i in (2, 3, 4))
            assert w == pitch
            out, image = (call.memory.view(call.pointer(i), "float32", (h, w)) for i in (0, 1))
            kernel = call.variable(taps, "float32", (SUBJECT.TAPS,)).flip(0)
            view, padding = ((1, 1, 1, -1), (0, 8)) if axis else ((1, 1, -1, 1), (8, 0))
            out[:] = torch.nn.functional.conv2d(image[None, None], kernel.view(view), padding=padding)[0, 0]

        return body

    for kernel in built.artifact.manifest.kernels:
        simulator.register_body(kernel.symbol, along(AXES[kernel.name]))


@pytest.mark.parametrize("shape", SUBJECT.SHAPES[:2])
def test_both_kernels_read_the_taps_of_the_call(bodies, launched, shape):
    given, out, (rows, columns) = launched(SUBJECT, shape)
    height, width = shape
    assert (rows.grid, rows.block) == ((width // 128, height // 4, 1), (16, 4, 1))
    assert (columns.grid, columns.block) == ((width // 16, height // 64, 1), (16, 8, 1))
    expected = SUBJECT.reference(*(one.cpu() for one in given))
    torch.testing.assert_close(out.cpu().double(), expected, **SUBJECT.TOLERANCE)
