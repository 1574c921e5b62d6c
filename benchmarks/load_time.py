"""How long a built program takes to be ready again: `trunnion.load` and the launcher's own loading, for every backend.

Beside reading the artifact's files, which anybody has to do. It is processor time of a process that has imported
everything, so that other work on the machine counts little. Without a GPU it runs on the simulated driver, whose own
work is counted in: an upper bound. The status is 1 if the budget is not kept by a backend that it is for.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

import trunnion
from launching.findings import conclude, options_of
from launching.options import positive
from trunnion import examples, sim

MOST_LOADING = 0.005
"""The budget: seconds beyond reading the files."""

BUDGETED = frozenset({"tvm_ffi", "cutedsl"})
"""The backends whose launchers are compiled. A Python launcher's text is what runs: it is written anew and compared."""

PROGRAMS = ("vector_add", "hopper_gemm")
"""The examples that are loaded."""

_TARGET = "sm_90a"


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one program: medians, in seconds of processor time."""

    backend: str
    """Who launches it."""

    program: str
    """Its name."""

    reading: float
    """Of reading the artifact's files."""

    taken_up: float
    """Of `trunnion.load`, which verifies them."""

    loaded: float
    """Of `trunnion.load` and `CompiledProgram.entry`, after which it could launch."""

    @property
    def ok(self) -> bool:
        """Whether the budget is kept, if there is one."""
        return self.backend not in BUDGETED or self.loaded - self.reading <= MOST_LOADING

    def line(self) -> str:
        """Return the row for people."""
        beyond, allowed = (self.loaded - self.reading) * 1e3, f"at most {MOST_LOADING * 1e3:.0f}"
        budget = f" ({allowed}): {'ok' if self.ok else 'TOO SLOW'}" if self.backend in BUDGETED else ""
        taken_up = f"reading {self.reading * 1e3:.1f} ms, load {self.taken_up * 1e3:.1f} ms"
        loaded = f"ready to launch {self.loaded * 1e3:.1f} ms"
        return f"{self.backend} {self.program}: {taken_up}, {loaded}, {beyond:.1f} ms beyond reading{budget}"


def load_once(folder: Path) -> tuple[float, float, float]:
    """Read, take up and load an artifact; return the seconds of each."""
    start = time.process_time()
    for path in folder.iterdir():
        path.read_bytes()
    read = time.process_time()
    program = trunnion.load(folder)
    taken_up = time.process_time()
    _ = program.entry
    loaded = time.process_time()
    program.close()
    return read - start, taken_up - read, loaded - read


def measure(backend: str, name: str, rounds: int) -> Row:
    """Measure one example; the first loading, which imports everything, does not count."""
    program = trunnion.compile(examples.load(name).program, backend, target=_TARGET)
    with tempfile.TemporaryDirectory(prefix="trunnion-benchmark-") as folder:
        place = Path(folder, "artifact")
        program.artifact.save(place)
        load_once(place)
        samples = [load_once(place) for _ in range(rounds)]
    return Row(backend, name, *(statistics.median(values) for values in zip(*samples, strict=True)))


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = options_of(__doc__)
    parser.add_argument("--rounds", type=positive, default=15, help="loadings of each program")
    options = parser.parse_args(arguments)
    simulated = not torch.cuda.is_available()
    if simulated and sim.active() is None:
        sim.start()
    backends = [spec.name for spec in trunnion.default_registry().backends() if spec.probe().usable]
    rows = [measure(backend, name, options.rounds) for backend in backends for name in PROGRAMS]
    for row in rows:
        print(row.line())
    facts = {"benchmark": "load_time", "unit": "seconds of processor time", "simulated": simulated}
    return conclude(options.json, facts | {"limit": MOST_LOADING}, rows)


if __name__ == "__main__":
    sys.exit(main())
