"""Rounds that interleave what is compared, and what is said of the samples."""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from launching.trial import Trial

__all__ = [
    "MOST_UNSYNCHRONISED",
    "Rounds",
    "Summary",
    "interleave",
    "measure",
    "quiet_rounds",
    "summarise",
    "summarise_difference",
]

_Key = TypeVar("_Key")

MOST_UNSYNCHRONISED = 256
"""Launches between two synchronisations: far fewer than the driver queues before it makes the host wait."""

_WARM_CALLS = 16
_SEED = 20261120
_PASSES = 20
_QUIET = 1.15


@dataclass(frozen=True, slots=True)
class Rounds:
    """How much is measured."""

    rounds: int = 101
    """Samples of each trial."""

    launches: int = 200
    """Launches of one sample; the device is waited for before and after."""

    def __post_init__(self) -> None:
        if self.rounds < 1 or not 1 <= self.launches <= MOST_UNSYNCHRONISED:
            allowed = f"at least 1 round of 1 to {MOST_UNSYNCHRONISED} launches"
            raise ValueError(f"got {self.rounds} rounds of {self.launches} launches, expected {allowed}")


@dataclass(frozen=True, slots=True)
class Summary:
    """The samples of one trial, in microseconds of one call."""

    median: float
    """The median."""

    low: float
    """The first quartile."""

    high: float
    """The third quartile."""

    least: float
    """The least."""


def summarise(samples: Sequence[float]) -> Summary:
    """Return what is said of samples.

    Parameters
    ----------
    samples
        At least one, in microseconds.
    """
    if len(samples) == 1:
        return Summary(samples[0], samples[0], samples[0], samples[0])
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return Summary(median, low, high, min(samples))


def summarise_difference(ours: Sequence[float], theirs: Sequence[float]) -> Summary:
    """Return what is said of the difference of two trials, taken round by round, so that drift drops out."""
    return summarise([a - b for a, b in zip(ours, theirs, strict=True)])


def quiet_rounds(yardstick: Sequence[float]) -> tuple[int, ...]:
    """Return the rounds in which the machine was at its own full speed, by one yardstick that all rounds share.

    A shared machine has phases, seconds long, in which everything takes up to twice as long. They say nothing of the
    code, so the rounds are left out in which the yardstick took over 1.15 times its first decile.

    Parameters
    ----------
    yardstick
        Its samples, round by round.
    """
    limit = sorted(yardstick)[len(yardstick) // 10] * _QUIET
    return tuple(index for index, value in enumerate(yardstick) if value <= limit)


def interleave(
    groups: Mapping[_Key, Mapping[str, Trial]], synchronize: Callable[[], None], plan: Rounds
) -> dict[_Key, dict[str, list[float]]]:
    """Measure several groups in turn, a few rounds of each at a time, so that a slow phase hits all of them.

    Parameters
    ----------
    groups
        In each, what is compared.
    synchronize
        Waits for the device.
    plan
        How much is measured of each group.

    Returns
    -------
    dict
        For each group what `measure` returns.
    """
    samples: dict[_Key, dict[str, list[float]]] = {key: {name: [] for name in groups[key]} for key in groups}
    shuffler = random.Random(_SEED)  # noqa: S311 - an order, not a secret
    step = -(-plan.rounds // _PASSES)
    for done in range(0, plan.rounds, step):
        part = Rounds(min(step, plan.rounds - done), plan.launches)
        for key, trials in groups.items():
            for name, values in measure(trials, synchronize, part, shuffler).items():
                samples[key][name] += values
    return samples


def measure(
    trials: Mapping[str, Trial], synchronize: Callable[[], None], plan: Rounds, shuffler: random.Random
) -> dict[str, list[float]]:
    """Time every trial once in each round, in an order that changes from round to round.

    Parameters
    ----------
    trials
        What is compared.
    synchronize
        Waits for the device.
    plan
        How much is measured.
    shuffler
        Chooses the orders.

    Returns
    -------
    dict[str, list[float]]
        For each trial its samples in the order of the rounds: microseconds of one call.
    """
    order = list(trials)
    samples: dict[str, list[float]] = {name: [] for name in trials}
    for _ in range(plan.rounds):
        shuffler.shuffle(order)
        for name in order:
            trial = trials[name]
            trial.seconds(_WARM_CALLS)
            synchronize()
            samples[name].append(trial.seconds(plan.launches) * 1e6 / plan.launches)
            synchronize()
    return samples
