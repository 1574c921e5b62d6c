"""Arguments drawn from a seed: the same on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Draw"]


class Draw:
    """One call's drawn values.

    Parameters
    ----------
    seed
        Which values.
    device
        Where tensors are put; they are drawn on the CPU.
    """

    def __init__(self, seed: int, device: str) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._device = device
        self.seed = seed

    def size(self, low: int, high: int, multiple: int = 1) -> int:
        """Return a number from ``low`` to ``high`` that ``multiple`` divides; ``low`` is one itself."""
        steps = (high - low) // multiple + 1
        return low + multiple * int(torch.randint(steps, (1,), generator=self._generator))

    def number(self, low: float, high: float) -> float:
        """Return a number that float16 can hold: a multiple of 1/8 from ``low`` to ``high``."""
        return self.size(int(low * 8), int(high * 8)) / 8

    def tensor(self, shape: Sequence[int], dtype: str = "float32") -> torch.Tensor:
        """Return a tensor of small numbers: floating-point ones multiples of 1/8, so that sums are exact.

        Parameters
        ----------
        shape
            Its shape.
        dtype
            Its type, as torch names it.
        """
        kind = getattr(torch, dtype)
        if kind is torch.bool:
            drawn = torch.randint(2, tuple(shape), generator=self._generator)
        elif kind.is_floating_point:
            drawn = torch.randint(-16, 17, tuple(shape), generator=self._generator) / 8
        else:
            low = -100 if kind.is_signed else 0
            drawn = torch.randint(low, 101, tuple(shape), generator=self._generator)
        return drawn.to(kind).to(self._device)

    def packed(self, shape: Sequence[int], dtype: str) -> torch.Tensor:
        """Return a tensor of random bytes seen as a type of which two elements share a byte.

        Parameters
        ----------
        shape
            Its shape, in bytes along the last dimension.
        dtype
            The type of a byte, as torch names it.
        """
        drawn = torch.randint(256, tuple(shape), generator=self._generator, dtype=torch.int16).to(torch.uint8)
        return drawn.view(getattr(torch, dtype)).to(self._device)

    def empty(self, shape: Sequence[int], dtype: str = "float32") -> torch.Tensor:
        """Return a tensor whose contents do not matter: all zeros."""
        return torch.zeros(tuple(shape), dtype=getattr(torch, dtype), device=self._device)

    def either(self, value: Any) -> Any:
        """Return the value for odd seeds, and None for even ones."""
        return value if self.seed % 2 else None
