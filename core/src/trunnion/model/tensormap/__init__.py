"""Tensor maps: their descriptions, and every rule that the driver has for them."""

from __future__ import annotations

from trunnion.model.tensormap.descriptions import (
    Im2colTensorMap,
    Interleave,
    L2Promotion,
    OobFill,
    Swizzle,
    TensorMap,
    TensorMapDataType,
    TiledTensorMap,
)

__all__ = [
    "Im2colTensorMap",
    "Interleave",
    "L2Promotion",
    "OobFill",
    "Swizzle",
    "TensorMap",
    "TensorMapDataType",
    "TiledTensorMap",
]
