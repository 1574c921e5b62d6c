"""CUDA's device runtime (``libcudadevrt.a``): kernels that launch kernels are linked with it."""

from __future__ import annotations

from pathlib import Path

from trunnion.storage.stamps import stamp
from trunnion_nvrtc.compiler.headers import file_digest

__all__ = ["DEVICE_RUNTIME_HINT", "device_runtime", "device_runtime_digest", "wants_device_runtime"]

DEVICE_RUNTIME_HINT = (
    "a kernel that launches kernels needs CUDA's device runtime, libcudadevrt.a, which is not found: "
    "pip install nvidia-cuda-runtime"
)


def wants_device_runtime(log: str) -> bool:
    """Whether nvJitLink misses what the device runtime defines.

    Its log is asked, because the names cannot be seen in LTO-IR.
    """
    return "__cudaCDP2" in log


def device_runtime() -> bytes | None:
    """Return the library, from a wheel, a conda environment or a toolkit; None if there is none."""
    path = _path()
    return Path(path).read_bytes() if path else None


def device_runtime_digest() -> str:
    """Return the library's SHA-256, for a cache's key; empty if there is none."""
    path = _path()
    version = stamp(path) if path else None
    return file_digest(path, version) if version else ""


def _path() -> str:
    from cuda import pathfinder  # noqa: PLC0415 - only links need it

    try:
        return str(pathfinder.find_static_lib("cudadevrt"))
    except (AttributeError, RuntimeError):  # of an older pathfinder, and where there is no library
        return ""
