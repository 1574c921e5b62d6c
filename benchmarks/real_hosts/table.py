"""The results: for people, for programs and for the manual."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from launching.report import aligned
from launching.timing import Summary, summarise, summarise_difference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from launching.machine import Machine
    from launching.timing import Rounds

__all__ = ["Report", "Row", "Section", "rows_of"]

_NOTES = """\
- Projects: their own host code, compiled by nvcc from the reader's copy, called in a loop in C++ that reads the clock
  itself. No Python; tensors are addresses, of which nothing is checked; nothing is allocated.
- Ours: called from Python as users do, with `out=`. Every tensor's type, extents, strides, device and alignment are
  checked, workspaces come from torch's allocator, tensor maps are encoded; with `bind`, all of that once.
- More: the difference, round by round, to the first row, in which the device does what our program has it do."""


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one way to launch."""

    name: str
    """What it is called."""

    does: str
    """What each call does."""

    call: Summary | None = None
    """Microseconds of one call; None if it was not measured."""

    over: Summary | None = None
    """Microseconds of one call more than the section's first row; None there, or if either was not measured."""

    problem: str = ""
    """Why it was not measured."""


@dataclass(frozen=True, slots=True)
class Section:
    """What was found of one program."""

    program: str
    """What the program is called."""

    shape: str
    """The shape it was called with."""

    rows: tuple[Row, ...]
    """The ways to launch, the project's first."""


def rows_of(
    does: Mapping[str, str], samples: Mapping[str, Sequence[float]], problems: Mapping[str, str], first: str
) -> tuple[Row, ...]:
    """Return a row for each way.

    Parameters
    ----------
    does
        What each call does, by the ways' names.
    samples
        Of those that were measured: microseconds of one call, round by round.
    problems
        Of the others: why not.
    first
        The way to which differences are taken.
    """
    base = samples.get(first)
    return tuple(
        Row(
            name,
            said,
            summarise(samples[name]) if name in samples else None,
            summarise_difference(samples[name], base) if name in samples and base and name != first else None,
            problems.get(name, ""),
        )
        for name, said in does.items()
    )


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one run found."""

    machine: Machine
    """What was measured on."""

    plan: Rounds
    """How much was measured."""

    sections: tuple[Section, ...]
    """One for each program."""

    @property
    def ok(self) -> bool:
        """Whether every way was measured."""
        return all(row.call is not None for section in self.sections for row in section.rows)

    def json(self) -> str:
        """Return the report for programs."""
        facts = {"benchmark": "real_sources", "unit": "microseconds of host time per call"}
        return json.dumps(facts | asdict(self), indent=2) + "\n"

    def markdown(self) -> str:
        """Return the report as Markdown that can be read as it is."""
        sentence = (
            "Host time of one call in µs: the median and, in brackets, half of the distance between the quartiles; "
            f"{self.plan.rounds} rounds of {self.plan.launches} calls each, every round in another order. Before "
            "timing, each way's result was compared with torch's."
        )
        lines = [self.machine.line(), "", sentence, ""]
        for section in self.sections:
            head = [f"{section.program}, {section.shape}", "call", "more", "each call"]
            rows = [[row.name, *map(_spread, (row.call, row.over)), row.does] for row in section.rows]
            lines += [*aligned([head, *rows]), ""]
            lines += [f"- {row.name}: {row.problem}" for row in section.rows if row.problem]
        return "\n".join([*lines, _NOTES]) + "\n"


def _spread(summary: Summary | None) -> str:
    return f"{summary.median:.2f} ({(summary.high - summary.low) / 2:.2f})" if summary else "-"
