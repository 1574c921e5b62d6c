"""Host time of one call of an operator of torch that adds two vectors: ours in Python and in C++, and others'.

Each is called as its users call it, in eager mode and from a graph that `torch.compile` made; all add the same tensors
of 1024 float32 numbers. What cannot be measured here is listed with its reason. The status is 1 if the operator in C++
takes more than 1.2 times what `torch.add` takes, both allocating, in eager mode; 77 without a GPU. With ``--cpu`` it
runs on the CPU, to see that it works: there the kernel itself is part of the time, and no budget is judged.
"""

from __future__ import annotations

import functools
import random
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

import trunnion
from launching.findings import conclude, options_of
from launching.options import positive
from launching.timing import Rounds, Summary, measure, summarise
from launching.trial import PythonCall
from launching.written import import_text
from trunnion import DeviceCode, ProgramBuilder, ceildiv, examples, symbols

if TYPE_CHECKING:
    from collections.abc import Callable

    from launching.trial import Trial
    from trunnion.model.program import KernelProgram

MOST_OF_ADD = 1.2
"""The budget: the operator in C++ by `torch.add`, both allocating, in eager mode."""

_OURS, _THEIRS = "ours, in C++", "torch.add"
_COUNT = 1024
_NO_GPU = 77
_ADD = """
#include <trunnion/block.h>
void add(const float* a, const float* b, float* c, int64_t n, const trunnion_block_t* block) {
  const int64_t width = block->block[0], first = block->index[0] * width;
  for (int64_t i = first; i < first + width && i < n; ++i) c[i] = a[i] + b[i];
}
"""
_TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def add(a, b, c, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    tl.store(c + place, tl.load(a + place, mask=inside) + tl.load(b + place, mask=inside), mask=inside)

@torch.library.triton_op("benchmark::triton", mutates_args={})
def triton_op(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    c = torch.empty_like(a)
    torch.library.wrap_triton(add)[(triton.cdiv(a.numel(), 1024),)](a, b, c, a.numel(), 1024)
    return c
"""


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one way to call."""

    subject: str
    """Who adds."""

    mode: str
    """``"eager"``, ``"eager, out"`` or ``"compiled"``."""

    summary: Summary | None
    """Microseconds of one call; None: it could not be measured."""

    problem: str = ""
    """Why."""

    limit: float | None = None
    """The most microseconds that the budget allows; None: there is none."""

    @property
    def ok(self) -> bool:
        """Whether the budget is kept, if there is one."""
        return self.limit is None or (self.summary is not None and self.summary.median <= self.limit)

    def line(self) -> str:
        """Return the row for people."""
        head = f"{self.subject:22} {self.mode:10}"
        if self.summary is None:
            return f"{head} missing: {self.problem}"
        budget = (
            f"  (at most {self.limit:.2f}): {'ok' if self.ok else 'TOO SLOW'}"
            if self.limit is not None
            else ""
        )
        quartiles = f"{self.summary.low:.2f} to {self.summary.high:.2f}"
        return f"{head} {self.summary.median:6.2f} µs  ({quartiles}){budget}"


def adding(*, on_cpu: bool) -> KernelProgram:
    """Return the program: an example on a GPU, and on the CPU its like."""
    if not on_cpu:
        return examples.load("vector_add").program
    (n,) = symbols("n")
    p = ProgramBuilder("add", DeviceCode("c++", _ADD))
    a, b = p.input("a", "float32", (n,)), p.input("b", "float32", (n,))
    p.launch("add", args=(a, b, p.output("c", "float32", (n,)), n), grid=ceildiv(n, _COUNT), block=_COUNT)
    return p.build()


def _custom(program: Any) -> Any:
    """Return torch's own way to make an operator of a function."""

    @torch.library.custom_op("benchmark::custom", mutates_args=())
    def custom(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = program(a, b)
        return made

    @custom.register_fake
    def _(a: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(a)

    return custom


def _triton(*, on_cpu: bool) -> Any:
    if on_cpu:
        raise RuntimeError("Triton has no compiler for the CPU")
    return import_text("benchmark_triton_op", _TRITON).triton_op


class Subjects:
    """Everything that is measured, made one by one: what cannot be made is a row that says why."""

    def __init__(self, *, on_cpu: bool) -> None:
        device = "cpu" if on_cpu else "cuda"
        self.a, self.b = (torch.randn(_COUNT, device=device) for _ in range(2))
        self.out = torch.empty_like(self.a)
        self.on_cpu = on_cpu
        self.trials: dict[tuple[str, str], Trial] = {}
        self.problems: dict[tuple[str, str], str] = {}

    def add(self, subject: str, mode: str, text: str, make: Callable[[], Any]) -> None:
        """Add a way to call, once it is made and adds rightly.

        Parameters
        ----------
        subject
            Who adds.
        mode
            How it is called.
        text
            The call, of ``f``.
        make
            Returns ``f``.
        """
        try:
            names = {"a": self.a, "b": self.b, "out": self.out, "f": make()}
            trial = PythonCall(text, names)
            self.out.fill_(float("nan"))
            made = trial.once(0)
            good = torch.equal(self.out if made is None else made, self.a + self.b)
        except Exception as error:  # noqa: BLE001 - whatever others raise is a row, and ends no other
            said = next(iter(str(error).splitlines()), "")
            self.problems[subject, mode] = f"{type(error).__name__}: {said}"
            return
        if good:
            self.trials[subject, mode] = trial
        else:
            self.problems[subject, mode] = "it does not add"

    def add_all(self) -> None:
        """Add every subject in every mode that it has."""
        program = trunnion.compile(adding(on_cpu=self.on_cpu), "tvm_ffi")
        makers: dict[str, Callable[[], Any]] = {
            "ours, the program": lambda: program,
            "ours, in Python": lambda: trunnion.torch_op(program, "benchmark::in_python"),
            _OURS: lambda: trunnion.torch_op(program, "benchmark::in_cpp", cpp=True),
            "torch.library.custom_op": lambda: _custom(program),
            "triton_op": lambda: _triton(on_cpu=self.on_cpu),
            _THEIRS: lambda: torch.add,
        }
        made: dict[str, Any] = {}
        for subject, make in makers.items():
            self.add(subject, "eager", "f(a, b)", functools.partial(_kept, made, subject, make))
        for subject in ("ours, the program", "ours, in Python", _OURS, _THEIRS):
            if subject in made:
                function = made[subject]
                chosen = getattr(
                    function, "out", function
                )  # an overload of its own, if it is an operator of ours
                self.add(subject, "eager, out", "f(a, b, out=out)", functools.partial(_same, chosen))
        for subject in list(makers)[1:]:
            if subject in made:
                self.add(subject, "compiled", "f(a, b)", functools.partial(_compiled, made[subject]))

    def synchronize(self) -> None:
        """Wait for the device."""
        if not self.on_cpu:
            torch.cuda.synchronize()


def _kept(made: dict[str, Any], subject: str, make: Callable[[], Any]) -> Any:
    made[subject] = make()
    return made[subject]


def _same(function: Any) -> Any:
    return function


def _compiled(function: Any) -> Any:
    def model(a: torch.Tensor, b: torch.Tensor) -> Any:
        return function(a, b)

    return torch.compile(model, fullgraph=True)


def rows_of(subjects: Subjects, plan: Rounds) -> list[Row]:
    """Measure all subjects in turn, and return what is said of them, the missing ones too."""
    texts = {f"{subject}|{mode}": trial for (subject, mode), trial in subjects.trials.items()}
    samples = measure(texts, subjects.synchronize, plan, random.Random(1))  # noqa: S311 - an order, not a secret
    found = {key: summarise(values) for key, values in samples.items()}
    theirs = found.get(f"{_THEIRS}|eager")
    limits: dict[tuple[str, str], float] = {}
    if not subjects.on_cpu:
        limits[_OURS, "eager"] = MOST_OF_ADD * (theirs.median if theirs is not None else 0.0)
    rows = [
        Row(*key, found.get("|".join(key)), subjects.problems.get(key, ""), limits.get(key))
        for key in (*subjects.trials, *subjects.problems)
    ]
    return sorted(rows, key=lambda row: row.mode)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = options_of(__doc__)
    parser.add_argument("--cpu", action="store_true", help="run on the CPU, to see that it works")
    parser.add_argument("--rounds", type=positive, default=101, help="samples of each way to call")
    options = parser.parse_args(arguments)
    if not options.cpu and not torch.cuda.is_available():
        print("there is no GPU; --cpu shows that the benchmark works")
        return _NO_GPU
    start = time.perf_counter()
    subjects = Subjects(on_cpu=options.cpu)
    subjects.add_all()
    rows = rows_of(subjects, Rounds(options.rounds))
    device = "the CPU" if options.cpu else torch.cuda.get_device_name(0)
    print(f"on {device}, torch {torch.__version__}, in {time.perf_counter() - start:.0f} s")
    for row in rows:
        print(row.line())
    facts = {"benchmark": "operators", "unit": "microseconds of one call", "device": device}
    return conclude(options.json, facts | {"torch": torch.__version__, "limit": MOST_OF_ADD}, rows)


if __name__ == "__main__":
    sys.exit(main())
