"""Our own time around a bare ``nvrtcCompileProgram``: the whole of `NvrtcCompiler.compile` but that one call.

Several kernels, each in fresh processes: the first compilation of a process, with the first look for headers, and the
later ones. What a bare program would have to do too (import the bindings, load the library) is shown beside it, not in
it. With it, what option ``pch`` gains. Processor time, so that other work on the machine counts little; for a named
target, so that no GPU is needed. Kernels that cannot be compiled here, for want of headers, are listed as not measured,
with the reason. The status is 1 if the budget is not kept, or a measurement fails in another way.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from launching.findings import conclude, options_of
from launching.options import positive
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import CompileError
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelSignature

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_OWN = 0.030
"""The budget: seconds of a compilation outside of ``nvrtcCompileProgram``, the first one of a process too."""

TARGET = "sm_90a"
"""What is compiled for."""

_ADD = 'extern "C" __global__ void k(const float* a, float* b, int n) { if (n) b[0] = a[0]; }'
KERNELS = {
    "no headers": _ADD,
    "cuda_fp16.h": "#include <cuda_fp16.h>\n" + _ADD,
    "cuda/barrier, mma.h": "#include <cuda/barrier>\n#include <mma.h>\n" + _ADD,
    "cuda/barrier, cuda/ptx, mma.h, cuda_fp8.h": (
        "#include <cuda/barrier>\n#include <cuda/ptx>\n#include <mma.h>\n#include <cuda_fp8.h>\n" + _ADD
    ),
}
"""The kernels, by what they include."""


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one kernel: medians, in seconds of processor time."""

    kernel: str
    """What it includes."""

    headers: int
    """How many headers it can reach."""

    bindings: float
    """Importing ``cuda.bindings.nvrtc`` and loading the library."""

    first: float
    """Own time of the first compilation of a process."""

    first_compiler: float
    """Within ``nvrtcCompileProgram`` of that compilation."""

    later: float
    """Own time of later ones."""

    later_compiler: float
    """Within ``nvrtcCompileProgram`` of later ones."""

    pch_made: float
    """Of the whole compilation that makes a precompiled header."""

    pch_used: float
    """Of the whole compilation that uses it."""

    @property
    def ok(self) -> bool:
        """Whether the budget is kept."""
        return max(self.first, self.later) <= MOST_OWN

    def cells(self) -> tuple[str, ...]:
        """Return the row of a table for people; milliseconds."""
        numbers = (
            self.bindings,
            self.first,
            self.first_compiler,
            self.later,
            self.later_compiler,
            self.pch_made,
            self.pch_used,
        )
        texts = (f"{number * 1e3:.1f}" for number in numbers)
        return (self.kernel, str(self.headers), *texts, "ok" if self.ok else "TOO SLOW")


HEAD = (
    "kernel includes",
    "headers",
    "bindings",
    "own, first",
    "NVRTC, first",
    "own, later",
    "NVRTC, later",
    "makes PCH",
    "uses PCH",
    f"at most {MOST_OWN * 1e3:.0f}",
)
"""The head of the table; milliseconds of processor time."""


_NO_HEADERS = "CUDA's headers are not on this machine; see: trunnion doctor"


def table(rows: list[Row], missing: Iterable[str] = ()) -> str:
    """Return rows as a Markdown table; of kernels that were not measured it says that."""
    lines = [HEAD, tuple("---" for _ in HEAD), *(row.cells() for row in rows)]
    lines += [(kernel, *["-"] * (len(HEAD) - 2), "not measured") for kernel in missing]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def sample(kernel: str, later: int) -> dict[str, Any]:
    """Measure one kernel in this process, which must be a fresh one.

    Parameters
    ----------
    kernel
        Its key in `KERNELS`.
    later
        How many compilations follow the first one.

    Returns
    -------
    dict[str, Any]
        Seconds by the names of `Row`; or ``problem``, why it cannot be compiled here.
    """
    # trunnion's own modules are imported beforehand, as in any process that has a program to compile.
    compiler_module: Any = importlib.import_module("trunnion_nvrtc.compiler.compiler")
    start = time.process_time()
    bindings: Any = importlib.import_module("cuda.bindings.nvrtc")
    bindings.nvrtcVersion()
    loaded = time.process_time() - start
    compiler = compiler_module.NvrtcCompiler()
    if (
        kernel != "no headers"
        and not importlib.import_module("trunnion_nvrtc.compiler.headers").toolkit_directories()
    ):
        return {"problem": _NO_HEADERS}
    try:
        return _measured(compiler, bindings, kernel, later) | {"bindings": loaded}
    except CompileError as error:
        return {"problem": "".join(traceback.format_exception_only(error)).strip()}


def _measured(compiler: Any, bindings: Any, kernel: str, later: int) -> dict[str, Any]:
    first = _compile(compiler, bindings, kernel)
    rest = [_compile(compiler, bindings, kernel) for _ in range(later)]
    made = _compile(compiler, bindings, kernel, pch=True)
    used = [_compile(compiler, bindings, kernel, pch=True) for _ in range(later)]
    return {
        "headers": first[2],
        "first": first[0] - first[1],
        "first_compiler": first[1],
        "later": statistics.median(whole - within for whole, within, _ in rest),
        "later_compiler": statistics.median(within for _, within, _ in rest),
        "pch_made": made[0],
        "pch_used": statistics.median(whole for whole, _, _ in used),
    }


def _compile(compiler: Any, bindings: Any, kernel: str, **options: bool) -> tuple[float, float, int]:
    """Return the seconds of a compilation, those within NVRTC's, and how many headers there are."""
    request = _request(kernel, options)
    within = [0.0]
    compile_program = bindings.nvrtcCompileProgram

    def timed(*arguments: Any) -> Any:
        start = time.process_time()
        try:
            return compile_program(*arguments)
        finally:
            within.append(time.process_time() - start)

    with patch.object(bindings, "nvrtcCompileProgram", timed):
        start = time.process_time()
        image = compiler.compile(request)
        whole = time.process_time() - start
    # The kernel's own compilation comes first; any other is ours.
    return whole, within[1], len(image.headers_read)


def _request(kernel: str, options: dict[str, bool]) -> CompileRequest:
    return CompileRequest(
        code=(DeviceCode("cuda", KERNELS[kernel]),),
        kernels=(KernelSignature("k", ()),),
        target=Target("cuda", TARGET),
        options=options,
    )


def measure(kernel: str, processes: int, later: int) -> Row | str:
    """Measure one kernel in fresh processes; return why it cannot be, if it cannot.

    Raises
    ------
    RuntimeError
        If a process fails in another way than that the kernel cannot be compiled.
    """
    samples = []
    for _ in range(processes + 1):
        command = [sys.executable, __file__, "--child", kernel, "--later", str(later)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
        if done.returncode != 0:
            raise RuntimeError(f"a process ended with status {done.returncode}\n{done.stderr.strip()}")
        found = json.loads(done.stdout)
        if "problem" in found:
            return str(found["problem"])
        samples.append(found)
    # The first process warms the file cache.
    medians = {name: statistics.median(one[name] for one in samples[1:]) for name in samples[0]}
    return Row(kernel, **{**medians, "headers": int(medians["headers"])})


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = options_of(__doc__)
    parser.add_argument("--processes", type=positive, default=5, help="fresh processes for each kernel")
    parser.add_argument(
        "--later", type=positive, default=5, help="compilations after the first, in each process"
    )
    parser.add_argument("--child", choices=KERNELS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(sample(options.child, options.later)))
        return 0
    rows, missing, failed = [], {}, False
    for kernel in KERNELS:
        try:
            found = measure(kernel, options.processes, options.later)
        except RuntimeError as error:
            found, failed = str(error), True
        if isinstance(found, Row):
            rows.append(found)
        else:
            missing[kernel] = found
            print(f"{kernel} is not measured: {found}")
    print(table(rows, missing))
    facts = {
        "benchmark": "nvrtc_overhead",
        "unit": "seconds of processor time",
        "python": platform.python_version(),
        "target": TARGET,
        "limits": {"own": MOST_OWN},
        "not_measured": missing,
    }
    return conclude(options.json, facts, rows) or int(failed)


if __name__ == "__main__":
    sys.exit(main())
