"""TileLang's kernels through trunnion's backends and through TileLang's own adapters, in one run.

Each kernel of the corpus (``tests/tilelang/tilelang_corpus``) is compiled and called by each launcher in a process of
its own, over poisoned memory, and what comes out is compared with torch: right, wrong, refused, crashed or hung. Then
the host's time of one call is measured, of all launchers that are right in turn; and the device's time of a large
matrix product and of attention. Needs TileLang and a GPU; without them it says so and ends with status 77. The status
is 1 if something of ours is not right, is slower than TileLang's, or takes another time on the device.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from launching.findings import options_of
from launching.machine import Machine
from launching.options import new_file, positive
from launching.stage import Device
from launching.timing import Rounds
from tilelang_runs.isolation import Job, Outcome, run_jobs, start_from
from tilelang_runs.judging import RIGHT, Judgement
from tilelang_runs.launchers import LAUNCHERS, corpus_entry, device_name, large_names, names
from tilelang_runs.results import Kernel, Results
from tilelang_runs.toolkit import point_to_toolkit
from tilelang_runs.work import Timed, judged, time_on_device, time_on_host

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

NO_GPU = 77
"""The status of a program that cannot do here what it is for."""

_ROOT = Path(__file__).resolve().parents[1]
_FOLDERS = (_ROOT / "benchmarks", _ROOT / "tests" / "tilelang", _ROOT / "tests" / "gpu")
_LIGHT = ("tilelang_runs.work",)
_HEAVY = (
    *_LIGHT,
    "tilelang_corpus.corpus",
    "tilelang_corpus.large",
    "tilelang.jit.kernel",
    "trunnion_tilelang",
)
_TOGETHER = 6
_JOB_SECONDS = 75.0
_FOR_VERDICTS = 0.6
"""The part of the time after which no verdict is begun any more."""


@dataclass
class _Run:
    """One run, and what it has found so far."""

    options: argparse.Namespace
    plan: Rounds
    folder: Path
    began: float = field(default_factory=time.monotonic)
    kernels: dict[str, Kernel] = field(default_factory=dict)

    def until(self, part: float) -> float:
        """Return when that part of the time is over."""
        return self.began + part * float(self.options.seconds)

    def tell(self, outcome: Outcome) -> None:
        """Say on the terminal what became of a job."""
        value = outcome.value.verdict if isinstance(outcome.value, Judgement) else outcome.how
        passed = time.monotonic() - self.began
        print(
            f"{passed:5.0f} s  {outcome.name}: {value} ({outcome.seconds:.1f} s)", file=sys.stderr, flush=True
        )

    def jobs(self, jobs: Iterable[Job], workers: int, part: float) -> dict[str, Outcome]:
        """Run jobs, and say what becomes of each."""
        return run_jobs(jobs, workers, self.until(part), self.tell)


def judge_all(run: _Run) -> None:
    """Find out what is right, each kernel and launcher in a process of its own."""
    pairs = [(kernel, launcher) for kernel in run.kernels for launcher in LAUNCHERS]
    jobs = [
        Job(f"{kernel}, {launcher}", judged, (kernel, launcher, run.folder), _JOB_SECONDS)
        for kernel, launcher in pairs
    ]
    outcomes = run.jobs(jobs, run.options.workers, _FOR_VERDICTS)
    for kernel, launcher in pairs:
        outcome = outcomes[f"{kernel}, {launcher}"]
        how = {"raised": "not run"}.get(outcome.how, outcome.how)  # the launcher itself is not what raised
        judgement = outcome.value if outcome.how == "returned" else Judgement(how, outcome.reason)
        run.kernels[kernel].verdicts[launcher] = judgement


def _right(kernel: Kernel) -> tuple[str, ...]:
    return tuple(name for name, judgement in kernel.verdicts.items() if judgement.verdict == RIGHT)


def time_large(run: _Run) -> None:
    """Measure the device's time of the large kernels."""
    large = [kernel for kernel in run.kernels.values() if kernel.operations]
    jobs = [
        Job(
            f"device time of {kernel.name}",
            time_on_device,
            (kernel.name, _right(kernel), run.folder, 25),
            120,
        )
        for kernel in large
    ]
    outcomes = run.jobs(jobs, 1, 1.0)
    for kernel in large:
        outcome = outcomes[f"device time of {kernel.name}"]
        missing = Timed(absent=f"{outcome.how}: {outcome.reason}")
        kernel.device = outcome.value or dict.fromkeys(_right(kernel), missing)


def time_small(run: _Run) -> None:
    """Measure the host's time of the others, several kernels in one process; each alone where that process ends."""
    small = [kernel for kernel in run.kernels.values() if not kernel.operations and _right(kernel)]
    groups = [small[first : first + _TOGETHER] for first in range(0, len(small), _TOGETHER)]
    again = _time_groups(run, groups)
    _time_groups(run, [[kernel] for group in again for kernel in group])


def _time_groups(run: _Run, groups: Sequence[Sequence[Kernel]]) -> list[Sequence[Kernel]]:
    """Measure each group in one process; return those whose process ended too early."""
    named = {f"host time of {', '.join(kernel.name for kernel in group)}": group for group in groups}
    jobs = [
        Job(
            name,
            time_on_host,
            ({one.name: _right(one) for one in group}, run.folder, run.plan),
            20 + 20 * len(group),
        )
        for name, group in named.items()
    ]
    failed = []
    for name, outcome in run.jobs(jobs, 1, 1.0).items():
        group = named[name]
        for kernel in group:
            missing = Timed(absent=f"{outcome.how}: {outcome.reason}")
            kernel.host = (outcome.value or {}).get(kernel.name) or dict.fromkeys(_right(kernel), missing)
        if outcome.how not in ("returned", "not run") and len(group) > 1:
            failed.append(group)
    return failed


def _forks_well(modules: Sequence[str], folders: Sequence[Path]) -> bool:
    """Whether a process that has imported modules can be forked, and the other then use the device."""
    imports = "\n".join(f"import {module}" for module in modules)
    program = f"""
import os, sys
sys.path[:0] = {[str(folder) for folder in folders]!r}
{imports}
import torch
child = os.fork()
if not child:
    try:
        torch.zeros(8, device="cuda").add_(1).cpu()
        os._exit(0)
    except BaseException:  # whatever it is, this child must not go on as its parent
        os._exit(1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = options_of(__doc__)
    parser.add_argument("--markdown", type=new_file, help="write the tables to this file")
    parser.add_argument("--rounds", type=positive, default=31, help="samples of each launcher")
    parser.add_argument("--launches", type=positive, default=100, help="launches of one sample, at most 256")
    parser.add_argument(
        "--kernels", default="*", help="only those whose name matches a pattern, such as 'gemm*'"
    )
    parser.add_argument("--seconds", type=positive, default=460, help="what is not begun by then is left out")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--workers", type=positive, default=cores, help="processes that compile at once")
    return parser.parse_args(arguments)


def _chosen(pattern: str) -> dict[str, Kernel]:
    """Return the kernels whose names match, those that take longest first."""
    found = [name for name in (*large_names(), *names()) if fnmatch.fnmatchcase(name, pattern)]
    entries = [corpus_entry(name) for name in found]
    return {
        entry.name: Kernel(entry.name, entry.covers, entry.refused, getattr(entry, "operations", 0))
        for entry in entries
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    options = parse(arguments)
    if importlib.util.find_spec("tilelang") is None:
        print("no TileLang: its kernels cannot be compiled here; pip install tilelang", file=sys.stderr)
        return NO_GPU
    with tempfile.TemporaryDirectory(prefix="trunnion-benchmark-") as folder:
        run = _Run(options, Rounds(options.rounds, options.launches), Path(folder))
        name = _prepare(run)
        if not name:
            print("no GPU that torch can use: launches cannot be timed here", file=sys.stderr)
            return NO_GPU
        run.kernels = _chosen(options.kernels)
        results = Results(Machine.here(Device(name)), run.plan, run.kernels)
        for stage in (judge_all, time_large, time_small):
            stage(run)
            write(results, options)  # whoever ends this early has what was found
    print(results.markdown())
    for failure in results.failures:
        print(f"NOT MET: {failure}")
    return 1 if results.failures else 0


def _prepare(run: _Run) -> str:
    """Set up the processes that do the work, and return the GPU's name, which one of them finds; empty without one."""
    point_to_toolkit(run.folder)
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = (
        "1"  # to look for a GPU is not to use it: processes are forked
    )
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # many processes at once compute references
    sys.path[:0] = [str(folder) for folder in _FOLDERS]
    start_from(_HEAVY if _forks_well(_HEAVY, _FOLDERS) else _LIGHT, _FOLDERS)
    outcome = run_jobs([Job("device", device_name, (), 120)], 1, time.monotonic() + 1)["device"]
    return str(outcome.value or "")


def write(results: Results, options: argparse.Namespace) -> None:
    """Write the files that are asked for."""
    for path, text in ((options.json, results.json()), (options.markdown, results.markdown())):
        if path:
            path.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
