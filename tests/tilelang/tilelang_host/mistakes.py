"""Arguments that are not what they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["mistakes"]


def mistakes(value: Any) -> Iterator[Any]:
    """Yield what else might be passed for an argument.

    Parameters
    ----------
    value
        What should be.
    """
    if isinstance(value, torch.Tensor):
        yield from (None, 3, value.unsqueeze(0))
        yield torch.zeros(value.shape, dtype=torch.float32 if value.dtype is torch.int64 else torch.int64)
        if value.dim():
            strides = tuple(2 * stride for stride in value.stride())
            last = sum((extent - 1) * stride for extent, stride in zip(value.shape, strides, strict=True))
            yield value.new_zeros((value.shape[0] + 1, *value.shape[1:]))
            yield value.new_zeros((*value.shape[:-1], value.shape[-1] + 1))
            yield value.new_zeros(last + 1).as_strided(value.shape, strides)
    else:
        yield from (None, "text", torch.zeros(3))
        if not isinstance(value, float):
            yield from (1.5, 2**70, -(2**70))
