"""Our own time around the compiler: all of `trunnion.compile` but the driver's ``nvrtcCompileProgram``.

For every example, for a named target, so that no GPU is needed. With it, how long it takes to find the same program
in a store, beside reading the store's files. It is processor time, so that other work on the machine counts little.
The status is 1 if a budget is not kept.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import trunnion
from launching.findings import conclude, options_of
from launching.options import positive
from trunnion import examples

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion import KernelProgram

MOST_OWN = 0.030
"""The budget: seconds of a compilation outside of ``nvrtcCompileProgram``."""

MOST_LOADING = 0.005
"""The budget: seconds to find a program in a store, beyond reading its files."""

_TARGET = "sm_90a"


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one program: medians, in seconds of processor time."""

    program: str
    """Its name."""

    compiler: float
    """Within ``nvrtcCompileProgram``."""

    own: float
    """Of `trunnion.compile` outside of it."""

    found: float
    """Of `trunnion.compile` if a store has the program."""

    reading: float
    """Of reading the store's files of it."""

    @property
    def ok(self) -> bool:
        """Whether both budgets are kept."""
        return self.own <= MOST_OWN and self.found - self.reading <= MOST_LOADING

    def line(self) -> str:
        """Return the row for people."""
        own = (
            f"NVRTC {self.compiler * 1e3:.1f} ms, ours {self.own * 1e3:.1f} ms (at most {MOST_OWN * 1e3:.0f})"
        )
        beyond = (self.found - self.reading) * 1e3
        allowed = f"(at most {MOST_LOADING * 1e3:.0f})"
        found = f"from a store {self.found * 1e3:.1f} ms, {beyond:.1f} ms beyond reading {allowed}"
        return f"{self.program}: {own}; {found}: {'ok' if self.ok else 'TOO SLOW'}"


class _Stopwatch:
    """A function, and the seconds spent in it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.seconds = 0.0

    def __call__(self, *args: Any) -> Any:
        start = time.process_time()
        try:
            return self.function(*args)
        finally:
            self.seconds += time.process_time() - start


def compile_once(program: KernelProgram) -> tuple[float, float]:
    """Compile, and return the seconds within NVRTC's compilation and those around it."""
    bindings: Any = importlib.import_module("cuda.bindings.nvrtc")
    within = _Stopwatch(bindings.nvrtcCompileProgram)
    with patch.object(bindings, "nvrtcCompileProgram", within):
        start = time.process_time()
        trunnion.compile(program, "nvrtc", target=_TARGET, cache=False)
        whole = time.process_time() - start
    return within.seconds, whole - within.seconds


def find_once(program: KernelProgram, store: Path) -> tuple[float, float]:
    """Take a program from a store that has it; return the seconds, and those of reading the store's files."""
    start = time.process_time()
    trunnion.compile(program, "nvrtc", target=_TARGET, cache=store)
    found = time.process_time() - start
    start = time.process_time()
    for path in store.rglob("*"):
        if path.is_file():
            path.read_bytes()
    return found, time.process_time() - start


def measure(name: str, rounds: int) -> Row:
    """Measure one example; the first compilation, which imports everything, does not count."""
    program = examples.load(name).program
    compile_once(program)
    compiled = [compile_once(program) for _ in range(rounds)]
    with tempfile.TemporaryDirectory(prefix="trunnion-benchmark-") as folder:
        find_once(program, Path(folder))
        found = [find_once(program, Path(folder)) for _ in range(rounds)]
    medians = (statistics.median(values) for values in zip(*compiled, strict=True))
    return Row(name, *medians, *(statistics.median(values) for values in zip(*found, strict=True)))


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = options_of(__doc__)
    parser.add_argument("--rounds", type=positive, default=9, help="compilations of each example")
    options = parser.parse_args(arguments)
    rows = [measure(name, options.rounds) for name in examples.EXAMPLES]
    for row in rows:
        print(row.line())
    limits = {"own": MOST_OWN, "loading": MOST_LOADING}
    facts = {
        "benchmark": "compile_time",
        "unit": "seconds of processor time",
        "limits": limits,
        "target": _TARGET,
    }
    return conclude(options.json, facts, rows)


if __name__ == "__main__":
    sys.exit(main())
