"""Our own time around ``cute.compile``: the whole of `CuteDslCompiler.compile` but that one call.

Wall time, because the work is done by two processes. The first compilation of a process also waits for one that imports
CuTeDSL, which any program would have to do: it is shown, and not in the budget. For a named target, so that no GPU is
needed. The status is 1 if the budget is not kept.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from launching.findings import conclude, options_of
from launching.options import positive
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion_cutedsl.compiler.compiler import CuteDslCompiler
from trunnion_cutedsl.compiler.workers import Workers
from trunnion_cutedsl.release import components

MOST_OWN = 0.3
"""The budget: seconds of a compilation outside of ``cute.compile``."""

TARGET = "sm_90a"
"""What is compiled for."""

PROGRAMS = ("cutedsl_vector_add", "cutedsl_pdl_pair", "cutedsl_split_k", "cutedsl_hopper_gemm")
"""The examples that are compiled."""


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one program, in seconds."""

    program: str
    """The example's name."""

    first: float
    """The first compilation of a process, with the import."""

    later: float
    """A later one outside of ``cute.compile``: the median."""

    later_compiler: float
    """``cute.compile`` in these: the median."""

    @property
    def ok(self) -> bool:
        """Whether the budget is kept."""
        return self.later <= MOST_OWN


class _Timed(Workers):
    """Workers that note how long ``cute.compile`` took of the last job."""

    within = 0.0

    def run(self, arch: str, job: dict[str, Any], seconds: float) -> tuple[dict[str, Any], bytes]:
        """Return the answer to a job."""
        answer, data = super().run(arch, job, seconds)
        self.within = float(answer["seconds"])
        return answer, data


def measure(name: str, later: int) -> Row:
    """Measure one program with workers of its own."""
    program = import_module(f"trunnion_cutedsl.examples.{name}").EXAMPLE.program
    plan = program.plan()
    request = CompileRequest(
        code=program.code, kernels=plan.kernels, target=Target("cuda", TARGET), plan=plan
    )
    pool = _Timed()
    try:
        samples = []
        for _ in range(later + 1):
            start = time.perf_counter()
            CuteDslCompiler(pool).compile(request)
            samples.append((time.perf_counter() - start, pool.within))
    finally:
        pool.close()
    own = statistics.median(whole - within for whole, within in samples[1:])
    return Row(name, samples[0][0], own, statistics.median(within for _, within in samples[1:]))


def table(rows: list[Row]) -> str:
    """Return the report as a table."""
    lines = ["| program | first, with the import | own | cute.compile | |", "|---|---|---|---|---|"]
    for row in rows:
        verdict = "ok" if row.ok else "TOO SLOW"
        lines.append(
            f"| {row.program} | {row.first:.2f} s | {row.later * 1e3:.0f} ms | {row.later_compiler * 1e3:.0f} ms "
            f"| {verdict} |"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = options_of(__doc__)
    parser.add_argument("--later", type=positive, default=5, help="compilations after the first")
    options = parser.parse_args(arguments)
    rows = [measure(name, options.later) for name in PROGRAMS]
    print(table(rows))
    facts = {
        "benchmark": "cutedsl_overhead",
        "unit": "seconds",
        "python": platform.python_version(),
        "components": components(),
        "target": TARGET,
        "limits": {"own": MOST_OWN},
    }
    return conclude(options.json, facts, rows)


if __name__ == "__main__":
    sys.exit(main())
