"""NVIDIA's convolutionSeparable: a filter of 17 taps in ``__constant__`` memory, along rows and then columns."""

from __future__ import annotations

import torch
from real_programs.copies import Copy
from real_programs.excerpts import without_functions

from trunnion import DeviceCode, KernelProgram, ProgramBuilder, Symbol

COPY = Copy(
    "cuda-samples",
    "13.0",
    "https://github.com/NVIDIA/cuda-samples",
    "v13.0",
    tuple(
        f"Samples/2_Concepts_and_Techniques/convolutionSeparable/{name}"
        for name in ("convolutionSeparable.cu", "convolutionSeparable_common.h")
    ),
)
TAPS = 17
SHAPES = ((64, 128), (1024, 768), (3072, 3072))
"""Rows and columns."""
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}
"""Of sums of 17 products in float32, against the same in float64."""

_HOST = (
    'extern "C" void setConvolutionKernel(',
    'extern "C" void convolutionRowsGPU(',
    'extern "C" void convolutionColumnsGPU(',
)


def code() -> DeviceCode:
    """Return the sample's kernels; what its header declares for the host becomes device code that nobody calls."""
    return DeviceCode(
        "cuda",
        without_functions(COPY.text(COPY.files[0]), *_HOST),
        name="convolutionSeparable.cu",
        includes=(("helper_cuda.h", ""), ("convolutionSeparable_common.h", COPY.text(COPY.files[1]))),
        options=(*COPY.includes(), "--device-as-default-execution-space"),
        target="sm_90a",
    )


def program() -> KernelProgram:
    """Return the image convolved along both axes; zeros lie around it."""
    p = ProgramBuilder("real_convolution", code())
    h, w = Symbol("h", min=1, multiple_of=64), Symbol("w", min=1, multiple_of=128)
    image, taps = p.input("image", "float32", (h, w)), p.input("taps", "float32", (TAPS,))
    half, out = p.workspace("half", "float32", (h, w)), p.output("out", "float32", (h, w))
    sizes = tuple(size.cast("int32") for size in (w, h, w))
    p.copy(p.variable("c_Kernel", "float32", (TAPS,)), taps)
    p.launch("convolutionRowsKernel", (half, image, *sizes), grid=(w // 128, h // 4), block=(16, 4))
    p.launch("convolutionColumnsKernel", (out, half, *sizes), grid=(w // 16, h // 64), block=(16, 8))
    return p.build()


def arguments(shape: tuple[int, int], place: str) -> tuple[torch.Tensor, ...]:
    """Return an image and a filter."""
    return torch.rand(shape, device=place), torch.rand(TAPS, device=place)


def reference(image: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
    """Return what the program returns, in float64: the taps run backwards, as a convolution's do."""
    wide, kernel = image.double()[None, None], taps.double().flip(0)
    rows = torch.nn.functional.conv2d(wide, kernel.view(1, 1, 1, TAPS), padding=(0, TAPS // 2))
    return torch.nn.functional.conv2d(rows, kernel.view(1, 1, TAPS, 1), padding=(TAPS // 2, 0))[0, 0]
