"""The projects whose host code is timed."""

from __future__ import annotations

import struct
from typing import Any

import torch
from real_programs import convolution, cutlass_gemm, kittens_gemm, paged_decode, reduction

from real_hosts.project import Project, Way

__all__ = ["PROJECTS"]

_SAMPLES = "Samples/2_Concepts_and_Techniques"


def _convolution(given: Any, out: torch.Tensor) -> tuple[torch.Tensor, ...]:
    image, taps = given
    return image, taps, torch.empty_like(image), out, taps.cpu()


def _reduction(given: Any, out: torch.Tensor) -> tuple[torch.Tensor, ...]:
    (x,) = given
    return x, torch.empty(-(-len(x) // reduction.THREADS), device=x.device), out


def _paged_decode(given: Any, out: torch.Tensor) -> tuple[torch.Tensor, ...]:
    tiles, chunk = (torch.zeros(size, dtype=torch.int32, device=out.device) for size in (len(out), 1))
    return *given, tiles, chunk, out


def _matrices(given: Any, out: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return given[0], given[1], out


def _cutlass_numbers(given: Any) -> tuple[int, ...]:
    a, b, alpha = given
    return len(a), len(b), a.shape[1], int.from_bytes(struct.pack("<f", alpha), "little", signed=True)


PROJECTS = (
    Project(
        convolution,
        convolution.SHAPES[0],
        ("Common", f"{_SAMPLES}/convolutionSeparable"),
        (
            Way("taps_of_the_device", "copies the taps from the device, as the program does; two launches"),
            Way("taps_of_the_host", "sets the taps from the host, which waits for the device; two launches"),
            Way("launches_alone", "two launches; the taps were set before"),
        ),
        _convolution,
        lambda given: tuple(given[0].shape),
    ),
    Project(
        reduction,
        reduction.SHAPES[1],
        ("Common", f"{_SAMPLES}/reductionMultiBlockCG"),
        (Way("two_launches", "is called twice, as the program launches; the grid was chosen before"),),
        _reduction,
        lambda given: (len(given[0]), reduction.THREADS),
    ),
    Project(
        paged_decode,
        paged_decode.SHAPES[0],
        ("include",),
        (
            Way("zeroed", "clears two arrays, as the program does; makes the parameters, launches"),
            Way("one_launch", "makes the parameters, launches"),
        ),
        _paged_decode,
        lambda given: (len(given[0]), paged_decode.HEADS, paged_decode.GROUPS, paged_decode.PAGE),
        ("-std=c++17", f"-DTRUNNION_DIM={paged_decode.DIM}"),
    ),
    Project(
        kittens_gemm,
        kittens_gemm.SHAPES[0],
        ("", "include", "prototype"),
        (Way("maps_each_time", "makes three layouts and their tensor maps, launches"),),
        _matrices,
        lambda given: (*given[0].shape[:1], *given[1].shape[1:], *given[1].shape[:1]),
        ("-std=c++20", "--use_fast_math", "--extended-lambda", "-DKITTENS_HOPPER"),
    ),
    Project(
        cutlass_gemm,
        cutlass_gemm.SHAPES[0],
        ("include",),
        (
            Way("arguments_each_time", "makes arguments, parameters and two tensor maps, launches"),
            Way(
                "arguments_each_time",
                "the same, with CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL: does not look the driver's function up",
                ("CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL",),
            ),
            Way("parameters_kept", "launches with parameters that were made before"),
        ),
        _matrices,
        _cutlass_numbers,
        texts={"described.h": cutlass_gemm.SOURCE},
    ),
)
"""All of them."""
