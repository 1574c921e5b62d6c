"""What sources for nvcc ask of the host and NVRTC lacks, as headers in memory.

No text of the projects is changed: their headers are read as they are, and what they declare for the host alone becomes
device code that nobody calls.
"""

from __future__ import annotations

HOST_AS_DEVICE = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#undef __host__
#define __host__ __device__
"""
"""Stands before a project's headers: NVRTC refuses every function marked for the host, CUDA's headers excepted."""

DEFAULT_DEVICE = "--device-as-default-execution-space"
"""The option that does the same for functions without a mark."""

STRING = """
#pragma once
namespace std {
struct string { __device__ string(const char*) {} };
}
"""
"""A type that functions return which nobody calls."""


def empty(*names: str) -> tuple[tuple[str, str], ...]:
    """Return headers of which nothing is used in device code."""
    return tuple((name, "#pragma once\n") for name in names)
