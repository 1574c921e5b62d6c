"""How long it takes to get a program that was compiled before: from the store, from behind it, among many others.

Seconds of processor time, compilers that are started included, of the sum of two vectors, for every backend: compiled
into an empty store (cold); found by the process that compiled it (warm); found by a new process, beyond what it has to
import anyway (fresh); found behind the store and kept (remote); and found among very many, beside among one. What is
beyond reading the artifact's files has a budget. Triton's and TileLang's caches stand beside it, each for a kernel that
adds two vectors, where they are installed. No GPU is needed. The status is 1 if a budget is not kept.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec

import trunnion
from caching.clock import spent
from caching.first_hit import TARGET
from launching.findings import conclude, options_of
from launching.options import positive
from launching.subject import version_of
from trunnion import examples
from trunnion.artifacts.store import ArtifactStore

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BEYOND = 0.005
"""The budget: seconds of finding a program in a new process, beyond imports and reading."""

MOST_AMONG = 1.2
"""The budget: how many times as long finding takes among very many as among one."""

OTHERS = {
    "Triton": ("triton", "caching.triton_kernel", "TRITON_CACHE_DIR"),
    "TileLang": ("tilelang", "caching.tilelang_kernel", "TILELANG_CACHE_DIR"),
}
"""Who has such a cache, too: the distribution, the module that measures it, the variable that says where it is."""

_PROGRAM = "vector_add"
_URL = "memory://trunnion-benchmark"


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one backend: medians, in seconds."""

    backend: str
    """Who launches the program."""

    cold: float
    """Of compiling it into an empty store."""

    warm: float
    """Of finding it in the process that compiled it."""

    imports: float
    """Of what a new process has to import."""

    fresh: float
    """Of finding it there for the first time, after that."""

    confirming: float
    """Of taking what was found: its launcher is written once more, to compare the two, as before a first call."""

    reading: float
    """Of reading the artifact's files."""

    remote: float
    """Of finding it behind an empty store, and keeping it."""

    among: float
    """Of finding it among very many, divided by finding it among one."""

    @property
    def ok(self) -> bool:
        """Whether the budgets are kept."""
        return self.fresh - self.reading <= MOST_BEYOND and self.among <= MOST_AMONG

    def line(self) -> str:
        """Return the row for people."""
        beyond = (self.fresh - self.reading) * 1e3
        fresh = f"in a new process {beyond:.1f} ms beyond reading (at most {MOST_BEYOND * 1e3:.0f})"
        among = f"among many {self.among:.2f} x (at most {MOST_AMONG})"
        known = (
            f"cold {self.cold * 1e3:.0f} ms, warm {self.warm * 1e3:.1f} ms, remote {self.remote * 1e3:.1f} ms"
        )
        imports = f"after {self.imports * 1e3:.0f} ms of imports, confirmed in {self.confirming * 1e3:.1f} ms"
        return f"{self.backend}: {known}, {fresh} {imports}, {among}: {'ok' if self.ok else 'TOO SLOW'}"


def compiled(backend: str, store: ArtifactStore | Path) -> tuple[float, Any]:
    """Compile the program or find it; return the seconds, and the artifact."""
    program = examples.load(_PROGRAM).program
    began = spent()
    found = trunnion.compile(program, backend, target=TARGET, cache=store)
    return spent() - began, found.artifact


def measured(module: str, *words: str, environment: Mapping[str, str] = os.environ) -> dict[str, float]:
    """Run a module in a new process, and return what it says that it took.

    Raises
    ------
    RuntimeError
        If it cannot say.
    """
    here = str(Path(__file__).parent)
    path = os.pathsep.join(filter(None, (here, environment.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", module, *words],
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def fresh(backend: str, folder: Path, rounds: int) -> dict[str, float]:
    """Return what the first compilation of a new process takes, which a store has, after all that it imports."""
    store, modules = folder / "fresh", folder / f"{backend}.json"
    compiled(backend, ArtifactStore(store))
    words = (str(store), backend, str(modules))
    measured("caching.first_hit", *words)
    found = [measured("caching.first_hit", *words) for _ in range(rounds)]
    return {name: statistics.median(one[name] for one in found) for name in found[0]}


def remote(backend: str, folder: Path, rounds: int) -> float:
    """Return the seconds that a program takes which lies behind an empty store, in this process' memory."""
    shared = ArtifactStore(folder / "shared")
    compiled(backend, shared)
    files = fsspec.filesystem("memory")
    files.put(str(shared.root), _URL, recursive=True)
    try:
        stores = (ArtifactStore(folder / f"mine {place}", behind=_URL) for place in range(rounds))
        return statistics.median(compiled(backend, store)[0] for store in stores)
    finally:
        files.rm(_URL, recursive=True)


def crowded(root: Path, artifact: Any, entries: int) -> ArtifactStore:
    """Return a store of so many artifacts: the files of the one, each time with another manifest and key."""
    store = ArtifactStore(root, max_bytes=None, max_age_seconds=None)
    store.get_or_build(artifact.manifest.key, lambda _: artifact)
    place = root / "entries"
    first = place / artifact.manifest.key
    for _ in range(entries - 1):
        other = artifact.keyed({**artifact.manifest.key_inputs, "another": uuid.uuid4().hex})
        folder = place / other.manifest.key
        folder.mkdir(mode=0o700)
        for file in first.iterdir():
            if file.name == "manifest.json":
                (folder / file.name).write_bytes(other.manifest.to_json())
            else:
                (folder / file.name).hardlink_to(file)
    return store


def among(backend: str, folder: Path, entries: int, rounds: int) -> float:
    """Return how many times as long finding takes among so many as among one: the two take turns."""
    alone = ArtifactStore(folder / "alone")
    _, artifact = compiled(backend, alone)
    many = crowded(folder / "many", artifact, entries)
    taken = [(compiled(backend, alone)[0], compiled(backend, many)[0]) for _ in range(rounds)]
    one, several = zip(*taken, strict=True)
    ratio: float = statistics.median(several) / statistics.median(one)
    return ratio


def measure(backend: str, rounds: int, entries: int) -> Row:
    """Measure one backend; what launchers share, and what is imported, is made before."""
    with tempfile.TemporaryDirectory(prefix="trunnion-benchmark-") as name:
        folder = Path(name)
        trunnion.compile(examples.load("affine").program, backend, target=TARGET, cache=False)
        stores = [ArtifactStore(folder / f"cold {place}") for place in range(rounds)]
        cold = statistics.median(compiled(backend, store)[0] for store in stores)
        warm = statistics.median(compiled(backend, stores[0])[0] for _ in range(rounds))
        new = fresh(backend, folder, rounds)
        behind = remote(backend, folder, rounds)
        ratio = among(backend, folder, entries, max(rounds * 4, 8))
    return Row(
        backend, cold, warm, new["imports"], new["first"], new["confirming"], new["reading"], behind, ratio
    )


def others(rounds: int) -> dict[str, str]:
    """Return a line for each other cache: what it took, or why nobody knows."""
    lines = {}
    for name, (distribution, module, variable) in OTHERS.items():
        if find_spec(distribution) is None:
            lines[name] = "not installed"
            continue
        with tempfile.TemporaryDirectory(prefix="trunnion-benchmark-") as folder:
            environment = {**os.environ, variable: folder}
            try:
                cold = measured(module, environment=environment)
                found = [measured(module, environment=environment) for _ in range(rounds)]
            except RuntimeError as error:
                lines[name] = f"cannot be measured here: {error}"
                continue
        first, again = (statistics.median(one[key] for one in found) * 1e3 for key in ("first", "again"))
        version = version_of(distribution)
        lines[name] = (
            f"{version}: cold {cold['first'] * 1e3:.0f} ms, in a new process {first:.1f} ms, "
            f"once more there {again:.1f} ms"
        )
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = options_of(__doc__)
    parser.add_argument("--rounds", type=positive, default=9, help="times that each is measured")
    parser.add_argument("--entries", type=positive, default=10_000, help="how many very many are")
    options = parser.parse_args(arguments)
    backends = [spec.name for spec in trunnion.default_registry().backends() if spec.probe().usable]
    rows = []
    for backend in backends:
        rows.append(measure(backend, options.rounds, options.entries))
        print(rows[-1].line(), flush=True)
    beside = others(options.rounds)
    for name, line in beside.items():
        print(f"{name} {line}")
    limits = {"beyond reading": MOST_BEYOND, "among": MOST_AMONG, "entries": options.entries}
    facts = {"benchmark": "cache", "unit": "seconds of processor time", "limits": limits, "others": beside}
    return conclude(options.json, facts, rows)


if __name__ == "__main__":
    sys.exit(main())
