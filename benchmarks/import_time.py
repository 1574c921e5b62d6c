"""How long ``import trunnion`` takes, beside ``import pluggy``.

Both are timed inside fresh interpreters, in turn, so that a machine that becomes slower slows both. Prints a line for
people and writes, if asked, a JSON report; exits with 1 if the ratio of the medians is over the limit.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass

from launching.options import new_file, positive

LIMIT = 1.5
"""The budget: the median import of trunnion over the median import of pluggy."""

_TIMED = "import time; start = time.perf_counter_ns(); import {}; print(time.perf_counter_ns() - start)"


def import_seconds(module: str) -> float:
    """Return how long a fresh interpreter takes to import ``module``, in seconds.

    Raises
    ------
    subprocess.CalledProcessError
        If the module cannot be imported.
    """
    command = [sys.executable, "-c", _TIMED.format(module)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout) * 1e-9


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured."""

    rounds: int
    """Fresh interpreters for each module."""

    trunnion_seconds: float
    """The median import of trunnion."""

    pluggy_seconds: float
    """The median import of pluggy."""

    @property
    def ratio(self) -> float:
        """The one median over the other."""
        return self.trunnion_seconds / self.pluggy_seconds

    @property
    def ok(self) -> bool:
        """Whether the ratio is within the budget."""
        return self.ratio <= LIMIT

    def line(self) -> str:
        """Return the report for people."""
        ours, theirs = self.trunnion_seconds * 1e3, self.pluggy_seconds * 1e3
        medians = f"import trunnion {ours:.2f} ms, import pluggy {theirs:.2f} ms"
        return f"{medians}, ratio {self.ratio:.2f} (at most {LIMIT}): {'ok' if self.ok else 'TOO SLOW'}"

    def json(self) -> str:
        """Return the report for programs."""
        facts = {"benchmark": "import_time", "python": platform.python_version(), "limit": LIMIT}
        verdict = {"ratio": self.ratio, "ok": self.ok}
        return json.dumps(facts | asdict(self) | verdict, indent=2, sort_keys=True) + "\n"


def measure(rounds: int) -> Report:
    """Time ``rounds`` imports of each module, after one of each to warm the file cache."""
    samples: dict[str, list[float]] = {"trunnion": [], "pluggy": []}
    for module in samples:
        import_seconds(module)
    for _ in range(rounds):
        for module, seconds in samples.items():
            seconds.append(import_seconds(module))
    return Report(rounds, *map(statistics.median, samples.values()))


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=positive, default=21, help="fresh interpreters for each module")
    parser.add_argument("--json", type=new_file, help="write the report to this file")
    options = parser.parse_args(arguments)
    report = measure(options.rounds)
    print(report.line())
    if options.json:
        options.json.write_text(report.json(), "utf-8")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
