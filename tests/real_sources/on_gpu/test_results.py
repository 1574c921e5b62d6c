"""What each program returns on a device, against torch, for every shape and within the tolerance stated beforehand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from cuda.bindings import nvrtc
from real_programs import convolution, cutlass_gemm, flash_attention, kittens_gemm, paged_decode, reduction

import trunnion

pytestmark = pytest.mark.gpu

SUBJECTS = {
    subject.__name__.rpartition(".")[2]: subject
    for subject in (convolution, reduction, paged_decode, kittens_gemm, cutlass_gemm)
}

ASSEMBLES = (13, 5)
"""The version of NVRTC that makes a cubin of FlashAttention; 13.0's ends the process with a segmentation fault."""


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
@pytest.mark.parametrize("name", SUBJECTS)
def test_results_are_those_of_torch(name, backend):
    subject = SUBJECTS[name]
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    with trunnion.compile(subject.program(), backend) as program:
        for shape in subject.SHAPES:
            given = subject.arguments(shape, "cuda")
            expected = subject.reference(*given)
            for _ in range(2):  # the second call finds what the first one left
                torch.testing.assert_close(program(*given).to(expected.dtype), expected, **subject.TOLERANCE)


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_that_of_torch(causal, backend):
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    with attention(flash_attention.program(causal=causal), backend) as built:
        for shape in flash_attention.SHAPES:
            given = flash_attention.arguments(shape, "cuda")
            expected = flash_attention.reference(*given, causal=causal)
            for _ in range(2):
                for found, wanted in zip(built(*given), expected, strict=True):
                    torch.testing.assert_close(found.float(), wanted, **flash_attention.TOLERANCE)


def attention(program, backend):
    """Return what was built elsewhere, in ``TRUNNION_PREBUILT``, or what the NVRTC of this machine makes of it."""
    prebuilt = Path(os.environ.get("TRUNNION_PREBUILT", "")) / f"{program.name}-{backend}"
    if prebuilt.is_dir():
        return trunnion.load(prebuilt)
    _, *version = nvrtc.nvrtcVersion()
    if tuple(version) < ASSEMBLES:
        pytest.fail(f"NVRTC {version} and the driver's assembler of its time crash on it: take {ASSEMBLES}")
    return trunnion.compile(program, backend, target="sm_90a")
