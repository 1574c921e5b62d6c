"""Whether what a launcher does is right: calls over poisoned memory, compared with a reference."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from tilelang_runs.isolation import attempted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["CRASHED", "REFUSED", "RIGHT", "SEEDS", "WRONG", "Judgement", "Place", "called", "judge"]

RIGHT, WRONG, REFUSED, CRASHED = "right", "wrong", "refused", "crashed"
_WORST_FIRST = (CRASHED, WRONG, REFUSED, RIGHT)

SEEDS = range(1, 6)
"""The calls that are tried: sizes differ, and for even seeds None is passed where a tensor may be missing."""


@dataclass(frozen=True)
class Judgement:
    """What a launcher does."""

    verdict: str
    """One of the four words."""

    reason: str = ""
    """Why it is not right."""


class Place:
    """Where calls are made: a device, or the host in the place of one, for those who have none."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._cuda = device != "cpu"

    def put(self, value: Any) -> Any:
        """Return a tensor's copy on the device, with its strides, and anything else as it is."""
        if not isinstance(value, torch.Tensor):
            return value
        memory = torch.empty(0, dtype=torch.uint8).set_(value.untyped_storage()).clone().to(self.device)
        return memory.view(value.dtype).as_strided(value.shape, value.stride(), value.storage_offset())

    def poison(self) -> None:
        """Let what is allocated next hold no zeros."""
        if self._cuda:
            importlib.import_module("gpu_reading.trials").poison_free_memory(self.device)

    def synchronize(self) -> None:
        """Wait for the device."""
        if self._cuda:
            torch.cuda.synchronize()


def judge(entry: Any, call: Callable[..., Any], place: Place, seeds: Iterable[int] = SEEDS) -> Judgement:
    """Make several calls and return the worst that came of one.

    Parameters
    ----------
    entry
        The kernel, as the corpus describes it.
    call
        Launches it.
    place
        Where.
    seeds
        Which calls.
    """
    found: dict[int, Judgement] = {}
    for seed in seeds:
        found[seed] = called(entry, call, place, seed)
        if found[seed].verdict == CRASHED:  # nothing that this process does on its device means anything now
            break
    worst = min(found.values(), key=lambda one: _WORST_FIRST.index(one.verdict))
    alike = [seed for seed, one in found.items() if one.verdict == worst.verdict]
    if worst.verdict == RIGHT or len(alike) == len(found):
        return worst
    return Judgement(worst.verdict, f"{len(alike)} of {len(found)} calls: {worst.reason}")


def called(entry: Any, call: Callable[..., Any], place: Place, seed: int) -> Judgement:
    """Make one call and return what came of it.

    Parameters
    ----------
    entry, call, place
        As for `judge`.
    seed
        Which call.
    """
    drawn = entry.arguments(seed)
    given = tuple(place.put(value) for value in drawn)
    expected = entry.reference(*(given if getattr(entry, "large", False) else drawn))
    place.synchronize()
    place.poison()
    returned, refusal = attempted(call, *entry.passed(given))
    _, fault = attempted(place.synchronize)
    if fault:
        return Judgement(CRASHED, fault)
    if refusal:
        return Judgement(REFUSED, refusal)
    difference = _difference(entry.results(given, returned), expected, entry.tolerance)
    return Judgement(WRONG, difference) if difference else Judgement(RIGHT)


def _difference(results: Sequence[Any], expected: Sequence[torch.Tensor], tolerance: float) -> str:
    if len(results) != len(expected):
        return f"{len(results)} results, expected {len(expected)}"
    for index, (got, want) in enumerate(zip(results, expected, strict=True)):
        what = f"result {index}"
        if not isinstance(got, torch.Tensor):
            return f"{what} is {type(got).__name__}, expected a tensor"
        if (got.shape, got.dtype) != (want.shape, want.dtype):
            return f"{what} is {_form(got)}, expected {_form(want)}"
        off = _off(got, want.to(got.device), tolerance)
        if off:
            return f"{what} differs in {off} of {want.numel()} elements"
    return ""


def _form(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _off(got: torch.Tensor, want: torch.Tensor, tolerance: float) -> int:
    """Return how many elements are not what they should be; those that are not numbers never are."""
    if got.dtype.itemsize == 1:  # of many such types torch compares nothing but the bytes
        return int((got.contiguous().view(torch.uint8) != want.contiguous().view(torch.uint8)).sum())
    if not tolerance:
        return int((got != want).sum())
    wide = torch.float32 if want.dtype.itemsize < torch.float32.itemsize else torch.float64
    right = want.to(wide)
    close = (got.to(wide) - right).abs() <= tolerance * (1 + right.abs())
    return int((~close).sum())
