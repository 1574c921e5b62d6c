"""Drawn calls on the CPU: plain tensors in the place of a GPU's, and the facts that the oracle reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trunnion.testing.expected import TensorFacts
from trunnion.testing.harness import call_facts, facts_of
from trunnion.testing.strategies.calls import BASE_ALIGNMENT, USED, arguments_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.testing.expected import CallFacts

__all__ = ["host_arguments", "host_facts"]


def host_arguments(given: Sequence[object]) -> list[Any]:
    """Return drawn arguments with every described tensor and struct made; the device of a description does not count.

    Parameters
    ----------
    given
        As a `CallSpec` has them.
    """
    return arguments_of(given, _storage)


def host_facts(args: Sequence[Any], out: Sequence[Any] | None = None, device: int | None = None) -> CallFacts:
    """Return a call as the oracle reads it, to which the CPU is device 0; see `call_facts`."""
    return call_facts(_facts, args, out=out, device=device)


def _facts(value: Any) -> object:
    facts = facts_of(value)
    on_host = isinstance(facts, TensorFacts) and value.device.type == "cpu"
    return replace(facts, device=0) if on_host and isinstance(facts, TensorFacts) else facts


def _storage(nbytes: int, _device: int | None) -> Any:
    """Return bytes that begin at a multiple of what a description counts on."""
    import torch  # noqa: PLC0415 - tensors are torch's

    storage = torch.full((nbytes + BASE_ALIGNMENT,), USED, dtype=torch.uint8, device="cpu")
    start = -storage.data_ptr() % BASE_ALIGNMENT
    return storage[start : start + nbytes]
