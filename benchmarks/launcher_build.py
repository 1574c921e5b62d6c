"""How long a C++ launcher takes to build: from a plan to a shared library with the image in it.

The budget is in seconds of wall time on an idle machine of two cores. Beside it stands the yardstick, the same compiler
making a library of one empty function, and our time in its terms. What launchers share is compiled before the first
round, as it is once for each user and toolchain. No GPU is needed. The status is 1 if the budget is not kept.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from launching.findings import conclude, options_of
from launching.options import positive
from trunnion import examples
from trunnion.codegen.cpp.build import build_launcher
from trunnion.codegen.cpp.emitter import emit_launcher
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ceildiv
from trunnion.testing.machine import synthetic_image
from trunnion.toolchain.host_compilation import HostCompilation, compile_host
from trunnion.toolchain.host_compiler import host_compiler

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion import KernelProgram

MOST = 0.2
"""The budget: seconds."""

_MIB = 1 << 20
_PLUGIN = "benchmark"


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one program."""

    program: str
    """What it is."""

    median: float
    """Seconds."""

    least: float
    """Seconds."""

    empty: float
    """Seconds that the same compiler takes for an empty library, in the same rounds: median."""

    @property
    def ok(self) -> bool:
        """Whether the budget is kept."""
        return self.median <= MOST

    def line(self) -> str:
        """Return the row for people."""
        ratio = f"{self.median / self.empty:.1f} x an empty library ({self.empty * 1e3:.0f} ms)"
        verdict = "ok" if self.ok else "TOO SLOW"
        times = f"{self.median * 1e3:.0f} ms (least {self.least * 1e3:.0f}, at most {MOST * 1e3:.0f})"
        return f"{self.program}: {times}, {ratio}: {verdict}"


def large_program(launches: int, tensors: int = 56, scalars: int = 8) -> KernelProgram:
    """Return a program with 64 parameters, all of which each launch is given."""
    p = ProgramBuilder("large", DeviceCode("cuda", "", name="large.cu"))
    n = Symbol("n", max=2**31 - 1)
    arrays = [p.input(f"t{index}", "float32", (n,)) for index in range(tensors)]
    numbers = [p.scalar(f"s{index}", "int32") for index in range(scalars)]
    for index in range(launches):
        p.launch(f"k{index}", (*arrays, *numbers), ceildiv(n, 256), 256)
    return p.build()


def subjects() -> dict[str, tuple[KernelProgram, int]]:
    """Return the programs that are built, and the bytes by which the image of each is made larger."""
    return {
        "vector_add": (examples.load("vector_add").program, 0),
        "hopper_gemm": (examples.load("hopper_gemm").program, 0),
        "vector_add, an image of 4 MiB": (examples.load("vector_add").program, 4 * _MIB),
        "64 parameters": (large_program(1), 0),
        "64 parameters, 50 launches": (large_program(50), 0),
        "64 parameters, 32 launches, an image of 4 MiB": (large_program(32), 4 * _MIB),
    }


def builder(program: KernelProgram, more: int) -> Callable[[Path], object]:
    """Return what builds a program's launcher in a folder."""
    plan, image = program.plan(), synthetic_image(program)
    image = replace(image, data=image.data + bytes(more))
    symbols = [kernel.symbol for kernel in image.kernels]
    return lambda folder: build_launcher(emit_launcher(plan), image, symbols, folder, plugin=_PLUGIN)


def empty_library(folder: Path) -> object:
    """Build the yardstick in a folder."""
    wanted = HostCompilation(
        source="empty.cc",
        text='extern "C" void empty() {}\n',
        output="empty.so",
        options=("-O1", "-fPIC", "-shared", "empty.cc"),
    )
    return compile_host(host_compiler(_PLUGIN), wanted, folder, _PLUGIN)


def seconds(build: Callable[[Path], object]) -> float:
    """Return how long one build takes, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="trunnion-benchmark-") as folder:
        start = time.perf_counter()
        build(Path(folder))
        return time.perf_counter() - start


def measure(name: str, build: Callable[[Path], object], rounds: int) -> Row:
    """Measure one program and the yardstick by turns; the first round does not count."""
    seconds(build), seconds(empty_library)
    taken = [(seconds(build), seconds(empty_library)) for _ in range(rounds)]
    ours, empty = zip(*taken, strict=True)
    return Row(name, statistics.median(ours), min(ours), statistics.median(empty))


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = options_of(__doc__)
    parser.add_argument("--rounds", type=positive, default=9, help="builds of each program")
    options = parser.parse_args(arguments)
    rows = [measure(name, builder(*subject), options.rounds) for name, subject in subjects().items()]
    for row in rows:
        print(row.line())
    facts = {"benchmark": "launcher_build", "unit": "seconds", "limit": MOST}
    return conclude(options.json, facts, rows)


if __name__ == "__main__":
    sys.exit(main())
