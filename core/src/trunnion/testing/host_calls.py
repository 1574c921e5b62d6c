"""Drawn calls on the CPU: plain tensors in the place of a GPU's, and the facts that the oracle reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trunnion.testing.expected import CallFacts, TensorFacts
from trunnion.testing.harness import facts_of
from trunnion.testing.strategies.calls import BASE_ALIGNMENT, TensorSpec
from trunnion.testing.strategies.numbers import BytesSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["host_arguments", "host_facts"]

_USED = 0xA5  # what a call's tensors hold, so that neither zeros nor fills are there by chance


def host_arguments(given: Sequence[object]) -> list[Any]:
    """Return drawn arguments with every described tensor and struct made; the device of a description does not count.

    Parameters
    ----------
    given
        As a `CallSpec` has them.
    """
    specs = [value for value in given if isinstance(value, TensorSpec)]
    shared = _storage(max((_nbytes(spec) for spec in specs if spec.shared), default=1))

    def made(value: object) -> Any:
        if isinstance(value, BytesSpec):
            return value.make()
        if not isinstance(value, TensorSpec):
            return value
        storage = shared if value.shared else _storage(_nbytes(value))
        viewed = storage[: _nbytes(value)].view(_kind(value))
        # torch counts from the start of the memory, not of a view.
        return viewed.as_strided(value.shape, value.strides, viewed.storage_offset() + value.offset)

    return [made(value) for value in given]


def host_facts(args: Sequence[Any], out: Sequence[Any] | None = None, device: int | None = None) -> CallFacts:
    """Return a call as the oracle reads it; to it, the CPU is device 0.

    Parameters
    ----------
    args
        The arguments, as they are passed.
    out
        The destinations.
    device
        The ``device=`` of the call.
    """
    return CallFacts(
        args=tuple(map(_facts, args)), out=None if out is None else tuple(map(_facts, out)), device=device
    )


def _facts(value: Any) -> object:
    facts = facts_of(value)
    on_host = isinstance(facts, TensorFacts) and value.device.type == "cpu"
    return replace(facts, device=0) if on_host and isinstance(facts, TensorFacts) else facts


def _storage(nbytes: int) -> Any:
    """Return bytes that begin at a multiple of what a description counts on."""
    import torch  # noqa: PLC0415 - tensors are torch's

    storage = torch.full((nbytes + BASE_ALIGNMENT,), _USED, dtype=torch.uint8, device="cpu")
    start = -storage.data_ptr() % BASE_ALIGNMENT
    return storage[start : start + nbytes]


def _kind(spec: TensorSpec) -> Any:
    import torch  # noqa: PLC0415 - tensors are torch's

    return getattr(torch, spec.dtype)


def _nbytes(spec: TensorSpec) -> int:
    return int(max(spec.extent, 1) * _kind(spec).itemsize)
