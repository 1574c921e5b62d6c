"""Tensor maps encoded by hand, straight from the driver's documentation, to compare what a launch delivered with.

Source: CUDA Driver API, "Tensor Map Object Management".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda.bindings import driver as cu

if TYPE_CHECKING:
    import torch


def _ok(result: tuple[Any, ...]) -> Any:
    status, value = result
    assert status == cu.CUresult.CUDA_SUCCESS, status
    return value


def tiled(
    tensor: torch.Tensor,
    data_type: str,
    box: tuple[int, ...],
    swizzle: str = "NONE",
    l2_promotion: str = "NONE",
) -> bytes:
    """Return the 128 bytes of a tiled map over a whole tensor; the box is in the tensor's order."""
    return _opaque(
        cu.cuTensorMapEncodeTiled(
            *_whole(tensor, data_type),
            [cu.cuuint32_t(extent) for extent in reversed(box)],
            *_rest(tensor, swizzle, l2_promotion),
        )
    )


def im2col(  # noqa: PLR0913 - the driver's own parameters
    tensor: torch.Tensor,
    data_type: str,
    *,
    lower: tuple[int, ...],
    upper: tuple[int, ...],
    channels: int,
    pixels: int,
    l2_promotion: str = "NONE",
) -> bytes:
    """Return the 128 bytes of an im2col map over a whole tensor; the corners are in the tensor's order."""
    return _opaque(
        cu.cuTensorMapEncodeIm2col(
            *_whole(tensor, data_type),
            list(reversed(lower)),
            list(reversed(upper)),
            channels,
            pixels,
            *_rest(tensor, "NONE", l2_promotion),
        )
    )


def _whole(tensor: torch.Tensor, data_type: str) -> tuple[Any, ...]:
    pitches = [step * tensor.element_size() for step in tensor.stride()[:-1]]
    return (
        getattr(cu.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{data_type}"),
        tensor.dim(),
        tensor.data_ptr(),
        [cu.cuuint64_t(extent) for extent in reversed(tensor.shape)],
        [cu.cuuint64_t(pitch) for pitch in reversed(pitches)],
    )


def _rest(tensor: torch.Tensor, swizzle: str, l2_promotion: str) -> tuple[Any, ...]:
    return (
        [cu.cuuint32_t(1)] * tensor.dim(),
        cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(cu.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
        getattr(cu.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{l2_promotion}"),
        cu.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )


def _opaque(result: tuple[Any, ...]) -> bytes:
    return b"".join(int(word).to_bytes(8, "little") for word in _ok(result).opaque)
