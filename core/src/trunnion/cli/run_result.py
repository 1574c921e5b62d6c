"""One program, run once: what was compiled, what was launched, how far the result is from the reference."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.cli.place import Place
    from trunnion.compiled import CompiledProgram
    from trunnion.errors import TrunnionError
    from trunnion.examples import Example

__all__ = ["COLUMNS", "SPARE", "Compiled", "Outcome", "as_tuple", "failure", "run_example", "timed"]

_SHOWN_DIGITS = 12

COLUMNS = (
    "program",
    "backend",
    "target",
    "device",
    "compile",
    "launches",
    "largest error",
    "allowed",
    "artifact",
    "ok",
)

SPARE = ("artifact", "allowed", "device", "compile", "target")
"""The columns that a narrow terminal can do without, the first one first; all is in the document, and digests are
printed besides."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program that is ready to run."""

    program: CompiledProgram
    """The program."""

    seconds: float | None
    """How long it took to compile; None if it was loaded from an artifact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one program on one backend."""

    name: str
    """The program's name."""

    backend: str
    """The backend's name."""

    device: str
    """The GPU's name, or ``"simulated"``."""

    ok: bool
    """Whether it ran and, if there is a reference, agrees with it."""

    refused: bool = False
    """Whether the backend does not declare what the program needs, and so refused it as it should."""

    target: str = ""
    """What it was compiled for; empty if it was not."""

    compile_seconds: float | None = None
    """Wall time of the compilation; None if nothing was compiled."""

    launches: int | None = None
    """How many kernels the simulated driver saw launched; None elsewhere, and if it did not get so far."""

    largest_error: float | None = None
    """The largest difference from the reference, relative to the reference's greatest magnitude; None: none known."""

    tolerance: float | None = None
    """The largest one that is allowed."""

    sha256: str = ""
    """The artifact's digest; empty if there is no artifact."""

    problem: TrunnionError | None = field(default=None, compare=False)
    """What went wrong, if anything was raised."""

    def facts(self) -> dict[str, Any]:
        """Return the outcome for JSON."""
        named = {name: getattr(self, name) for name in self.__slots__ if name != "problem"}
        return named | {"problem": _problem_text(self.problem)}

    def digest_line(self) -> str:
        """Return the artifact's SHA-256 and what it belongs to, in the form of ``sha256sum``."""
        return f"{self.sha256}  {self.backend}/{self.name}"

    def cells(self) -> list[str | Text]:
        """Return the outcome for a table with `COLUMNS`; the digest is cut, `digest_line` has all of it."""
        seconds = "loaded" if self.compile_seconds is None else f"{self.compile_seconds * 1e3:.0f} ms"
        numbers = ["-" if n is None else f"{n:.3g}" for n in (self.largest_error, self.tolerance)]
        launches = "-" if self.launches is None else str(self.launches)
        compiled = seconds if self.target else "-"
        head = [self.name, self.backend, self.target or "-", self.device, compiled, launches]
        return [*head, *numbers, self.sha256[:_SHOWN_DIGITS] or "-", self._verdict()]

    def _verdict(self) -> Text:
        if self.refused:
            return Text("refused", style="yellow")
        return Text("ok", style="green") if self.ok else Text("WRONG", style="bold red")


def timed(make: Callable[[], CompiledProgram]) -> Compiled:
    """Call ``make`` and measure it."""
    start = time.perf_counter()
    program = make()
    return Compiled(program, time.perf_counter() - start)


def failure(name: str, backend: str, place: Place, error: TrunnionError) -> Outcome:
    """Return the outcome of a program that raised ``error``."""
    return Outcome(name=name, backend=backend, device=place.label, ok=False, problem=error)


def run_example(
    example: Example, compiled: Compiled, place: Place, seed: int = 0
) -> tuple[Outcome, tuple[Any, ...]]:
    """Run an example once and compare it with its reference, which is computed on the host.

    Parameters
    ----------
    example
        The example.
    compiled
        The example, compiled.
    place
        Where it runs.
    seed
        Equal seeds make equal inputs.

    Returns
    -------
    tuple[Outcome, tuple[Any, ...]]
        What became of it, and its outputs.

    Raises
    ------
    TrunnionError
        If the program cannot be launched.
    """
    import torch

    program = compiled.program
    place.register(program, example.bodies)
    inputs = example.inputs(torch.Generator().manual_seed(seed), place.device)
    before = place.launches()
    result = program(*inputs)
    after = place.launches()
    largest = example.largest_error(result, inputs)
    outcome = Outcome(
        name=example.name,
        backend=str(program.backend),
        device=place.label,
        ok=largest <= example.tolerance,  # false for a NaN, as it must be
        target=str(program.target),
        compile_seconds=compiled.seconds,
        launches=None if before is None or after is None else len(after) - len(before),
        largest_error=largest,
        tolerance=example.tolerance,
        sha256=program.artifact.digest,
    )
    return outcome, as_tuple(result)


def as_tuple(result: Any) -> tuple[Any, ...]:
    """Return what a call returned as a tuple of its outputs."""
    if result is None:
        return ()
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _problem_text(problem: TrunnionError | None) -> str:
    return "" if problem is None else f"{type(problem).__name__}: {problem}"
