"""Host time of one call of kernels of other projects: their own host code beside our programs, in one run.

Needs an H100 or H200, nvcc, and copies of the projects in the folder that TRUNNION_SOURCES names; where one is missing
it says so and ends with status 77. ``--compile-only`` compiles the projects' host code and runs nothing, so it needs no
GPU. The status is 1 if something could not be compiled or measured, or a result is wrong.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from launching.findings import options_of
from launching.machine import Machine
from launching.options import new_file, positive
from launching.stage import Device
from launching.timing import MOST_UNSYNCHRONISED, Rounds, interleave
from real_hosts.bench import BACKENDS, Bench
from real_hosts.building import MissingCopyError, NoCompilerError, libraries, start
from real_hosts.projects import PROJECTS
from real_hosts.table import Report, Section, rows_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from concurrent.futures import Future

    from real_hosts.building import Built, Library
    from real_hosts.project import Project

UNABLE = 77
"""The status of a program that cannot do here what it is for."""

CALLS = MOST_UNSYNCHRONISED // 4
"""Calls of one sample: each has the device do at most three things, and the benchmark warms up with some."""


def measure_all(
    projects: tuple[Project, ...], built: Mapping[Library, Future[Built]], plan: Rounds
) -> Report:
    """Make every way to launch ready, ours while nvcc runs, then measure them in turn."""
    benches = [Bench(project) for project in projects]
    for bench in benches:
        for backend in BACKENDS:
            bench.add_ours(backend)
    for bench in benches:
        bench.add_theirs(built)
    trials = {bench.project.name: bench.trials for bench in benches}
    samples = interleave(trials, torch.cuda.synchronize, plan)
    sections = [
        Section(
            bench.project.name,
            str(bench.project.shape),
            rows_of(bench.does, samples[bench.project.name], bench.problems, bench.first),
        )
        for bench in benches
    ]
    return Report(Machine.here(Device(torch.cuda.get_device_name(0))), plan, tuple(sections))


def report_builds(built: Mapping[Library, Future[Built]]) -> int:
    """Print what became of each library, and return the exit status."""
    problems = 0
    for library, future in built.items():
        done = future.result()
        print(f"{library.name}: {done.seconds:.0f} s{', FAILED' if done.problem else ''}", flush=True)
        if done.problem:
            problems += 1
            print(done.problem, file=sys.stderr)
    return 1 if problems else 0


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = options_of(__doc__)
    names = [project.name for project in PROJECTS]
    parser.add_argument("--markdown", type=new_file, help="write the tables to this file")
    parser.add_argument("--rounds", type=positive, default=101, help="samples of each way to launch (101)")
    parser.add_argument("--compile-only", action="store_true", help="compile the projects' host code alone")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=positive, default=cores, help=f"compilers at once ({cores})")
    parser.add_argument("--only", choices=names, nargs="+", default=names, help="the programs to take")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Compile, measure, print, and return the exit status."""
    options = parse(arguments)
    if not options.compile_only and not (
        torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
    ):
        print("no GPU of compute capability 9.0 that torch can use; see --compile-only", file=sys.stderr)
        return UNABLE
    projects = tuple(project for project in PROJECTS if project.name in options.only)
    with tempfile.TemporaryDirectory(prefix="trunnion-benchmark-") as folder:
        try:
            built = start(libraries(projects), Path(folder), options.jobs)
        except (MissingCopyError, NoCompilerError) as error:
            print(error, file=sys.stderr)
            return UNABLE
        if options.compile_only:
            return report_builds(built)
        report = measure_all(projects, built, Rounds(options.rounds, CALLS))
    print(report.markdown())
    for path, text in ((options.json, report.json()), (options.markdown, report.markdown())):
        if path:
            path.write_text(text, "utf-8")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
