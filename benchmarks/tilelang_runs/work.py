"""What is done in a process of its own: a verdict, the host's time, the device's time."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from launching.timing import measure, summarise
from launching.trial import PythonCall
from tilelang_runs.isolation import attempted
from tilelang_runs.judging import REFUSED, RIGHT, SEEDS, Judgement, Place, called, judge
from tilelang_runs.launchers import LAUNCHERS, corpus_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from launching.timing import Rounds, Summary
    from launching.trial import Trial

__all__ = ["Timed", "judged", "time_on_device", "time_on_host"]

_SEED = 1
_BURST = 8


@dataclass(frozen=True)
class Timed:
    """The time of one launcher, or why there is none."""

    time: Summary | None = None
    """Microseconds: of the host for a call, or of the device for a kernel."""

    absent: str = ""
    """Why it was not measured; empty if it was."""


def judged(name: str, launcher: str, folder: Path) -> Judgement:
    """Compile a kernel, keep what is compiled, and say whether what a launcher does is right.

    Parameters
    ----------
    name
        The kernel's.
    launcher
        The launcher's.
    folder
        Where what is compiled is kept.
    """
    entry = corpus_entry(name)
    call, refusal = attempted(LAUNCHERS[launcher].made, entry, folder)
    if refusal:
        return Judgement(REFUSED, f"compiling: {refusal}")
    large = getattr(entry, "large", False)
    return judge(entry, call, Place("cuda:0"), SEEDS[:1] if large else SEEDS)


def time_on_host(
    kernels: Mapping[str, Sequence[str]], folder: Path, plan: Rounds
) -> dict[str, dict[str, Timed]]:
    """Return the host's time of a call, for several kernels, of several launchers of each, measured in turn.

    Parameters
    ----------
    kernels
        The launchers of each that are right.
    folder
        Where what was compiled is kept.
    plan
        How much is measured.
    """
    place, shuffler = Place("cuda:0"), random.Random(0)  # noqa: S311 - an order, not a secret
    found: dict[str, dict[str, Timed]] = {}
    for name, launchers in kernels.items():
        ready, absent = _ready(name, launchers, folder, place)
        trials: dict[str, Trial] = {launcher: _trial(*one) for launcher, one in ready.items()}
        samples = measure(trials, place.synchronize, plan, shuffler)
        found[name] = absent | {launcher: Timed(summarise(values)) for launcher, values in samples.items()}
    return found


def _ready(
    name: str, launchers: Sequence[str], folder: Path, place: Place
) -> tuple[dict[str, tuple[Callable[..., Any], tuple[Any, ...]]], dict[str, Timed]]:
    """Take up what was compiled, and see once more that it is right."""
    entry = corpus_entry(name)
    ready: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
    absent: dict[str, Timed] = {}
    given = entry.passed(tuple(place.put(value) for value in entry.arguments(_SEED)))
    for launcher in launchers:
        call, refusal = attempted(LAUNCHERS[launcher].made, entry, folder)
        if refusal:
            absent[launcher] = Timed(absent=f"taking up what was compiled: {refusal}")
            continue
        again = called(entry, call, place, _SEED)
        if again.verdict == RIGHT:
            ready[launcher] = call, given
        else:
            absent[launcher] = Timed(absent=f"{again.verdict} when it was taken up again: {again.reason}")
    return ready, absent


def _trial(call: Callable[..., Any], given: Sequence[Any]) -> PythonCall:
    named = {f"a{index}": value for index, value in enumerate(given)}
    return PythonCall(f"call({', '.join(named)})", {"call": call, **named})


def time_on_device(name: str, launchers: Sequence[str], folder: Path, rounds: int) -> dict[str, Timed]:
    """Return the device's time of a kernel, between events around several launches; the launchers take turns.

    Parameters
    ----------
    name
        The kernel's.
    launchers
        Those that are right.
    folder
        Where what was compiled is kept.
    rounds
        Samples of each.
    """
    place, shuffler = Place("cuda:0"), random.Random(0)  # noqa: S311 - an order, not a secret
    ready, absent = _ready(name, launchers, folder, place)
    samples: dict[str, list[float]] = {launcher: [] for launcher in ready}
    order = list(ready)
    for _ in range(rounds):
        shuffler.shuffle(order)
        for launcher in order:
            samples[launcher].append(_device_time(*ready[launcher]))
    return absent | {launcher: Timed(summarise(values)) for launcher, values in samples.items() if values}


def _device_time(call: Callable[..., Any], given: Sequence[Any]) -> float:
    """Return microseconds of one launch; one that is not timed keeps the device busy until the others are queued."""
    event: Any = torch.cuda.Event
    begin, end = event(enable_timing=True), event(enable_timing=True)
    call(*given)
    begin.record()
    for _ in range(_BURST):
        call(*given)
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e3 / _BURST
