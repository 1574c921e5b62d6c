"""What the tests of the examples share: compiled programs, fresh inputs, poisoned memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from trunnion.examples.histogram import Address

if TYPE_CHECKING:
    from trunnion.examples import Example

_POISONED_BYTES = 64 << 20


def poison_free_memory(device: str = "cuda:0") -> None:
    """Fill memory with NaN and -1, byte by byte, and free it: what is allocated next holds no zeros."""
    pieces = [
        torch.full((nbytes,), 0xFF, dtype=torch.uint8, device=device) for nbytes in (512, 4096, 1 << 20)
    ]
    pieces.append(torch.full((_POISONED_BYTES,), 0xFF, dtype=torch.uint8, device=device))
    del pieces


def poisoned_like(results: Any, device: str = "cuda:0") -> tuple[torch.Tensor, ...]:
    """Return tensors of the shapes and types of a reference's results, every byte 0xFF."""
    members = results if isinstance(results, tuple) else (results,)
    return tuple(
        torch.full((one.numel() * one.element_size(),), 0xFF, dtype=torch.uint8, device=device)
        .view(one.dtype)
        .reshape(one.shape)
        for one in members
    )


def host_reference(example: Example, args: tuple[Any, ...]) -> Any:
    """Return the reference's results, computed on the host."""
    return example.reference(*(arg.cpu() if isinstance(arg, torch.Tensor) else arg for arg in args))


def tensors_of(args: tuple[Any, ...]) -> list[torch.Tensor]:
    """Return all tensors of a call, those behind addresses too."""
    found = [arg.tensor if isinstance(arg, Address) else arg for arg in args]
    return [one for one in found if isinstance(one, torch.Tensor)]


def assert_right(example: Example, results: Any, args: tuple[Any, ...]) -> None:
    """Fail unless the results are those of the reference, within the example's tolerance."""
    error = example.largest_error(results, args)
    assert not math.isnan(error)
    assert error <= example.tolerance, f"{example.name}: {error} > {example.tolerance}"
