"""A shard: a seeded run of many trials in a child process, which its parent watches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MOST_SECONDS", "Journal", "run_shard"]

MOST_SECONDS = 2.0
"""Seconds of the processor that one trial may take: a busy machine makes no trial longer."""

_STALLED = 120.0  # seconds without a new trial, by the clock: a loop in C, a lock
_BEGINNING = 300.0  # seconds before the first trial: programs are compiled
_WIDTH = 16


class Journal:
    """Says which trial is under way, so that whoever finds the process dead knows it, and keeps what went wrong.

    Parameters
    ----------
    path
        A file that the parent reads.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)
        self.trials = 0
        self.slowest = 0.0
        self.problems: list[str] = []

    def attempt(self, trial: Callable[[], str], show: Callable[[], str]) -> None:
        """Run one trial, which returns what is wrong; ``show`` tells the trial to people."""
        os.pwrite(self._file, str(self.trials).ljust(_WIDTH).encode(), 0)
        before = time.process_time()
        wrong = trial()
        took = time.process_time() - before
        self.slowest = max(self.slowest, took)
        if took > MOST_SECONDS:
            wrong = f"{wrong} took {took:.1f} s"
        if wrong:
            self.problems.append(f"trial {self.trials}: {wrong}: {show()[:2000]}")
        self.trials += 1


@dataclass(frozen=True)
class Outcome:
    """What became of a shard."""

    trials: int
    slowest: float
    problems: tuple[str, ...]
    counts: dict[str, int]


def run_shard(kind: str, seed: int, count: int, folder: Path, *more: str) -> Outcome:
    """Run a shard of ``count`` trials in a new process, and return what became of it.

    Parameters
    ----------
    kind
        The module of this package whose ``main`` runs the trials.
    seed, count
        What is tried.
    folder
        For the shard's files.
    *more
        Further words for it.
    """
    journal, said = folder / f"{kind}-{seed}", folder / f"{kind}-{seed}.err"
    path = os.pathsep.join([str(Path(__file__).resolve().parents[1]), *filter(None, sys.path)])
    command = [sys.executable, "-X", "faulthandler", "-m", f"stress_trials.{kind}", str(journal), str(seed)]
    with said.open("wb") as errors, subprocess.Popen(
        [*command, str(count), *more],
        stdout=subprocess.PIPE, stderr=errors, env={**os.environ, "PYTHONPATH": path},
    ) as process:  # fmt: skip
        reader = _Watch(process, journal)
        out = reader.finish()
    if process.returncode or reader.stalled:
        verdict = "stands still" if reader.stalled else f"ended with {process.returncode}"
        tail = said.read_text("utf-8", "replace")[-4000:]
        problem = f"seed {seed}, trial {reader.trial() or 'none yet'}: the process {verdict}\n{tail}"
        return Outcome(0, 0.0, (problem,), {})
    document: dict[str, Any] = json.loads(out)
    problems = tuple(f"seed {seed}, {problem}" for problem in document["problems"])
    return Outcome(document["trials"], document["slowest"], problems, document["counts"])


def finish(journal: Journal, counts: dict[str, int]) -> None:
    """Tell the parent what became of a shard."""
    document = {
        "trials": journal.trials,
        "slowest": journal.slowest,
        "problems": journal.problems[:200],
        "counts": counts,
    }
    print(json.dumps(document))  # noqa: T201 - that is how a shard answers


class _Watch:
    """Waits for a shard, and ends it if it stands still."""

    def __init__(self, process: subprocess.Popen[bytes], journal: Path) -> None:
        self.process, self.journal, self.stalled = process, journal, False

    def trial(self) -> str:
        """Return the number of the trial under way."""
        return self.journal.read_text("ascii").strip() if self.journal.exists() else ""

    def finish(self) -> bytes:
        """Return what the shard said, as soon as it ends or stands still."""
        seen, since = self.trial(), time.monotonic()
        while True:
            try:
                out, _ = self.process.communicate(timeout=1)
            except subprocess.TimeoutExpired:
                now, clock = self.trial(), time.monotonic()
                seen, since = now, since if now == seen else clock
                if clock - since > (_STALLED if now else _BEGINNING):
                    self.stalled = True
                    self.process.kill()
                continue
            return out
