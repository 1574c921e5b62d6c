"""What an access-policy window is worth: kernels with one and without, over buffers that fit into the L2 cache.

Two experiments. In ``one kernel``, the example ``segment_sum`` adds 512 MiB of rows into a table: the table is read
and written again and again while the rows stream past it. In ``two kernels``, one reads a buffer ten times while
another, on a stream of its own, streams through 512 MiB; what is timed is the first.

Each phase takes some samples with CUDA events and closes its program, so that the part of the cache that was set aside
is given back; phases without and with a window take turns. Needs a GPU; without one it says so and ends with status 77.
The status is 1 if no size of an experiment gains enough from its window.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

import trunnion
from launching.findings import options_of, write
from launching.options import positive
from trunnion.examples.segment_sum import segment_sum_program
from trunnion.model.expr import Symbol

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.compiled import CompiledProgram
    from trunnion.model.program import KernelProgram

NO_GPU = 77
"""The status of a program that cannot do here what it is for."""

LEAST_GAIN = 1.1
"""How much faster the best size of each experiment must be with its window."""

HEAD = "| experiment | MiB | without, µs (each phase) | with, µs (each phase) | gain |\n|---|---|---|---|---|"
"""The head of the table."""

SIZES = (8, 16, 20, 24, 28)
"""What is read again, in MiB."""

_CUDA: Any = torch.cuda  # of which torch types but a part
_MIB = 1 << 20
_STREAMED_BYTES = 512 * _MIB
_WIDTH = 1024
_READER_BLOCKS, _READER_THREADS, _READER_PASSES = 64, 256, 10
_STREAMER_BLOCKS, _STREAMER_THREADS, _STREAMER_PASSES = 100, 1024, 10
_HEAD_START = (
    100_000  # cycles before what is timed: the host runs ahead meanwhile, and a streaming kernel sets out
)
_WARM_UP = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One experiment at one size."""

    experiment: str
    """Which."""

    mebibytes: int
    """The size of what is read again."""

    without: tuple[float, ...]
    """The medians of the phases without a window, in microseconds."""

    windowed: tuple[float, ...]
    """The medians of the phases with one, in microseconds."""

    @property
    def gain(self) -> float:
        """How many times faster it is with the window: the median over all phases of either kind."""
        return statistics.median(self.without) / statistics.median(self.windowed)

    def row(self) -> str:
        """Return a row of the table."""
        without, windowed = (
            " / ".join(f"{median:.0f}" for median in medians) for medians in (self.without, self.windowed)
        )
        return f"| {self.experiment} | {self.mebibytes} | {without} | {windowed} | {self.gain:.2f} |"


class Experiment(Protocol):
    """Something that can be timed with a window and without."""

    name: str

    def program(self, *, window: bool) -> KernelProgram:
        """Return the program that is timed."""

    def sample(self, mebibytes: int) -> Callable[[CompiledProgram], float]:
        """Return a function that runs the program once, over buffers that it keeps, and returns microseconds."""


class OneKernel:
    """A table that rows are added into."""

    name = "one kernel"

    def program(self, *, window: bool) -> KernelProgram:
        """Return the example."""
        return segment_sum_program(window=window)

    def sample(self, mebibytes: int) -> Callable[[CompiledProgram], float]:
        """Return a function that adds all rows up once."""
        rows, segments = _STREAMED_BYTES // (4 * _WIDTH), mebibytes * _MIB // (4 * _WIDTH)
        x = torch.randn(rows, _WIDTH, device="cuda")
        keys = torch.randint(segments, (rows,), device="cuda", dtype=torch.int32)
        sums = torch.empty(segments, _WIDTH, device="cuda")
        return lambda compiled: _timed(lambda: compiled(x, keys, segments, out=sums))


class TwoKernels:
    """A buffer that one kernel reads while another streams."""

    name = "two kernels"

    def program(self, *, window: bool) -> KernelProgram:
        """Return the kernel that reads the buffer."""
        return reader(_READER_BLOCKS, _READER_THREADS, window=window)

    def sample(self, mebibytes: int) -> Callable[[CompiledProgram], float]:
        """Return a function that reads the buffer ten times, and checks that the other kernel ran all the while."""
        buffer = torch.randn(mebibytes * _MIB // 4, device="cuda")
        streamed = torch.randn(_STREAMED_BYTES // 4, device="cuda")
        side = _CUDA.Stream()
        streamer = trunnion.compile(reader(_STREAMER_BLOCKS, _STREAMER_THREADS, window=False), "nvrtc")
        streamer.preload(0)

        def sample(compiled: CompiledProgram) -> float:
            compiled(buffer, 1)  # a first call sets the cache aside, and would wait for the streaming kernel
            torch.cuda.synchronize()
            with torch.cuda.stream(side):
                streamer(streamed, _STREAMER_PASSES)
            microseconds = _timed(lambda: compiled(buffer, _READER_PASSES))
            if side.query():
                raise RuntimeError("the streaming kernel ended first: give it more passes")
            torch.cuda.synchronize()
            return microseconds

        return sample


def reader(blocks: int, threads: int, *, window: bool) -> KernelProgram:
    """Return a program that reads a buffer some times, with a window over it or without."""
    source = Path(__file__).with_suffix(".cu").read_text("utf-8")
    p = trunnion.ProgramBuilder("reread", trunnion.DeviceCode("cuda", source, name="window.cu"))
    n, passes = Symbol("n", multiple_of=4), Symbol("passes", min=0, max=1000)
    v = p.input("v", "float32", (n,), alignment=16)
    p.scalar("passes", "int32", passes)
    sums = p.output("sums", "float32", (blocks * threads,))
    p.launch(
        "reread",
        args=(v, sums, n // 4, passes.cast("int32")),
        grid=blocks,
        block=threads,
        window=v.window() if window else None,
    )
    return p.build()


def _timed(call: Callable[[], object]) -> float:
    _CUDA._sleep(_HEAD_START)  # noqa: SLF001 - torch has no public one
    start, end = (_CUDA.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e3


def measure(experiment: Experiment, mebibytes: int, phases: int, samples: int) -> Finding:
    """Time an experiment at one size, in phases without and with its window that take turns."""
    medians: dict[bool, list[float]] = {False: [], True: []}
    sample = experiment.sample(mebibytes)
    for _ in range(phases):
        for window, found in medians.items():
            with trunnion.compile(experiment.program(window=window), "nvrtc") as compiled:
                compiled.preload(0)
                taken = [sample(compiled) for _ in range(_WARM_UP + samples)]
            found.append(statistics.median(taken[_WARM_UP:]))
    return Finding(
        experiment=experiment.name,
        mebibytes=mebibytes,
        without=tuple(medians[False]),
        windowed=tuple(medians[True]),
    )


def verdict(findings: list[Finding]) -> dict[str, float]:
    """Return the best gain of each experiment."""
    best: dict[str, float] = {}
    for finding in findings:
        best[finding.experiment] = max(best.get(finding.experiment, 0.0), finding.gain)
    return best


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = options_of(__doc__)
    parser.add_argument("--phases", type=positive, default=3, help="of either kind, for each size")
    parser.add_argument("--samples", type=positive, default=25, help="of each phase")
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("no GPU that torch can use: a cache cannot be timed here", file=sys.stderr)
        return NO_GPU
    print(f"{torch.cuda.get_device_name(0)}\n\n{HEAD}")
    findings = []
    kinds: tuple[Experiment, ...] = (OneKernel(), TwoKernels())
    for kind, size in itertools.product(kinds, SIZES):
        findings.append(measure(kind, size, options.phases, options.samples))
        print(findings[-1].row(), flush=True)
    best = verdict(findings)
    found = [asdict(finding) | {"gain": finding.gain} for finding in findings]
    write(options.json, {"benchmark": "window", "least_gain": LEAST_GAIN, "best": best, "found": found})
    return 0 if all(gain >= LEAST_GAIN for gain in best.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
