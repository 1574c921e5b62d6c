"""What the functions of ``module.cc`` take, as several tests describe it, and a tensor for them."""

from __future__ import annotations

import torch

from trunnion import symbols
from trunnion.model.params import ScalarParam, Signature, TensorParam

__all__ = ["AXPY", "VECTOR", "N", "ramp"]

(N,) = symbols("n")
VECTOR = TensorParam("x", "float32", (N,))
AXPY = Signature(
    params=(ScalarParam("a", "float32"), VECTOR, TensorParam("y", "float32", (N,))),
    outputs=(TensorParam("out", "float32", (N,)),),
)


def ramp(n: int = 5, start: int = 0) -> torch.Tensor:
    """Return a vector of ``n`` numbers that rise by 1."""
    return torch.arange(start, start + n, dtype=torch.float32)
