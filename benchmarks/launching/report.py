"""The results: for people, for programs and for the manual."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from launching.case import BESIDE_OTHERS, BUDGETED
from launching.others import UNCHECKED
from launching.ours import BUDGETS, COMPILED, SEVERAL_LAUNCHES
from launching.timing import Summary, quiet_rounds, summarise, summarise_difference
from launching.yardsticks import BARE, RAW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from launching.case import Case
    from launching.machine import Machine
    from launching.subject import Subject
    from launching.timing import Rounds

__all__ = ["Cell", "Column", "Report", "Verdict", "aligned", "column", "verdicts"]


_FAILED = ("failed", "WRONG")


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of one subject in one case."""

    subject: str
    """The subject's name."""

    absent: str = ""
    """Why it was not measured; empty if it was."""

    call: Summary | None = None
    """Microseconds of one call."""

    over_raw: Summary | None = None
    """Microseconds of one call more than the raw loop's, in the same rounds."""

    ratio: float | None = None
    """The median of `over_raw` over the median of a bare tvm-ffi call."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One budget, and whether it is kept."""

    subject: str
    """The row."""

    case: str
    """The column."""

    ratio: float | None
    """What was measured; None if it was not."""

    limit: float
    """The budget."""

    what: str = "(call - raw) / bare"
    """What is divided by what."""

    each: tuple[float, ...] = ()
    """What each process measured, where there were several; then `ratio` is their median."""

    @property
    def ok(self) -> bool:
        """Whether it is kept."""
        return self.ratio is not None and self.ratio <= self.limit

    def line(self) -> str:
        """Return the verdict for people."""
        got = "not measured" if self.ratio is None else f"{self.ratio:.2f}"
        if self.each:
            got += f" ({min(self.each):.2f} to {max(self.each):.2f})"
        verdict = "ok" if self.ok else "NOT MET"
        return f"{self.subject}, {self.case}: {self.what} = {got}, at most {self.limit}: {verdict}"


@dataclass(frozen=True, slots=True)
class Column:
    """What became of every subject in one case."""

    cells: tuple[Cell, ...]
    """One for each subject, in their order."""

    quiet: int
    """Rounds that count: those in which the machine was at full speed, by the bare call if it was measured."""


def column(
    subjects: Iterable[Subject], samples: Mapping[str, Sequence[float]], absent: Mapping[str, str]
) -> Column:
    """Return what became of every subject in one case.

    Parameters
    ----------
    subjects
        Every row of the table.
    samples
        For those that were measured, microseconds of one call, round by round.
    absent
        For the others, why not.
    """
    every = tuple(range(max(map(len, samples.values()), default=0)))
    quiet = quiet_rounds(samples[BARE]) if BARE in samples else every
    kept = {name: [values[index] for index in quiet] for name, values in samples.items()}
    return Column(tuple(_cell(subject.name, kept, absent) for subject in subjects), len(quiet))


def _cell(name: str, samples: Mapping[str, Sequence[float]], absent: Mapping[str, str]) -> Cell:
    if name not in samples:
        return Cell(name, absent.get(name, "not measured"))
    raw, bare = samples.get(RAW), samples.get(BARE)
    over = summarise_difference(samples[name], raw) if raw and name not in (RAW, BARE) else None
    ratio = over.median / summarise(bare).median if over and bare else None
    return Cell(name, "", summarise(samples[name]), over, ratio)


def verdicts(table: Mapping[Case, Column]) -> tuple[Verdict, ...]:
    """Return what the budgets say.

    Of calls with three tensors, with no map and with three, over the raw loop; of the ordinary call of compiled
    launchers, that it takes no longer than launchers of others which check nothing; of a program of several launches,
    how much more than as many raw launches it takes.
    """
    found: list[Verdict] = []
    for case, found_in in table.items():
        if case in BUDGETED:
            found += _over_raw(case, found_in)
        if case in BESIDE_OTHERS:
            found += _beside(case, found_in, "__call__", dict.fromkeys(UNCHECKED, 1.0))
        if case.launches > 1:
            found += _beside(case, found_in, "__call__", {RAW: SEVERAL_LAUNCHES.called})
            found += _beside(case, found_in, "bind", {RAW: SEVERAL_LAUNCHES.bound})
    return tuple(found)


def _over_raw(case: Case, column_: Column) -> Iterator[Verdict]:
    for cell in column_.cells:
        for launcher, ways in BUDGETS.items():
            budget = ways.get(cell.subject.removeprefix(f"{launcher} "))
            if budget is not None:
                limit = budget.with_maps if case.maps else budget.without_maps
                yield Verdict(cell.subject, case.label, cell.ratio, limit)


def _beside(case: Case, column_: Column, way: str, limits: Mapping[str, float]) -> Iterator[Verdict]:
    """Yield what a compiled launcher's time over another row's may be."""
    calls = {cell.subject: cell.call for cell in column_.cells}
    for ours in (f"{launcher} {way}" for launcher in COMPILED):
        for other, limit in limits.items():
            both = calls.get(ours), calls.get(other)
            if ours in calls and other in calls:
                ratio = both[0].median / both[1].median if both[0] and both[1] else None
                yield Verdict(ours, case.label, ratio, limit, f"call / {other}")


def _of_processes(verdict: Verdict, each: Sequence[float | None]) -> Verdict:
    measured = tuple(ratio for ratio in each if ratio is not None)
    if len(measured) < len(each):
        return replace(verdict, ratio=None)
    return replace(verdict, ratio=statistics.median(measured), each=measured)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one run found."""

    machine: Machine
    """What was measured on."""

    plan: Rounds
    """How much was measured."""

    subjects: tuple[Subject, ...]
    """The rows."""

    table: Mapping[Case, Column]
    """The columns."""

    processes: int = 1
    """How many were measured."""

    each: Sequence[tuple[float | None, ...]] = ()
    """For each budget, what each process measured, where there were several."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What the budgets say; nothing if it was simulated."""
        found = () if self.machine.simulated else verdicts(self.table)
        if self.processes == 1:
            return found
        return tuple(_of_processes(verdict, each) for verdict, each in zip(found, self.each, strict=True))

    def _cells(self) -> Iterator[tuple[Case, Cell]]:
        for case, found in self.table.items():
            for cell in found.cells:
                yield case, cell

    @property
    def failures(self) -> tuple[str, ...]:
        """What of ours did not work, in which case and why."""
        ours = {subject.name for subject in self.subjects if subject.group == "ours"}
        return tuple(
            f"{cell.subject}, {case.label}: {cell.absent}"
            for case, cell in self._cells()
            if cell.subject in ours and cell.absent.startswith(_FAILED)
        )

    def json(self) -> str:
        """Return the report for programs."""
        facts = {
            "benchmark": "launch",
            "unit": "microseconds of host time per call",
            "machine": asdict(self.machine),
            "plan": asdict(self.plan),
            "subjects": [{"name": s.name, "group": s.group, "omits": s.omits} for s in self.subjects],
            "cases": [
                {**asdict(case), "quiet": found.quiet, "cells": [asdict(cell) for cell in found.cells]}
                for case, found in self.table.items()
            ],
            "processes": self.processes,
            "budgets": [{**asdict(verdict), "ok": verdict.ok} for verdict in self.verdicts],
        }
        return json.dumps(facts, indent=2) + "\n"

    def markdown(self) -> str:
        """Return the report as Markdown that can be read as it is."""
        lines = [self.machine.line(), "", self._sentence(), "", *self._times(), ""]
        if any(cell.ratio is not None for _, cell in self._cells()):
            lines += ["Over the raw loop, as multiples of a bare tvm-ffi call:", "", *self._ratios(), ""]
        lines += [f"- {verdict.line()}" for verdict in self.verdicts]
        return "\n".join([*lines, "", *self._notes()]) + "\n"

    def _sentence(self) -> str:
        quiet = [found.quiet for found in self.table.values()]
        spread = "between the quartiles; "
        if self.processes > 1:
            spread = f"between the ends, of the medians of {self.processes} processes; in each "
        return (
            "Host time of one call in µs: the median and, in brackets, half of the distance "
            f"{spread}{self.plan.rounds} rounds of {self.plan.launches} launches each, every round in another order, "
            f"of which {min(quiet)} to {max(quiet)} count: those in which the machine was at full speed, by the bare "
            "tvm-ffi call. Columns: tensors, and how many of them travel as tensor maps; one int32 scalar beside them, "
            "or ten of mixed types; one launch, or so many; a struct of eight fields in the place of the parameters."
        )

    def _times(self) -> list[str]:
        return self._rows(lambda cell: _spread(cell.call) if cell.call else _why(cell.absent))

    def _ratios(self) -> list[str]:
        measured = {cell.subject for _, cell in self._cells() if cell.ratio is not None}
        return self._rows(lambda cell: "-" if cell.ratio is None else f"{cell.ratio:.2f}", measured)

    def _rows(self, show: Callable[[Cell], str], only: set[str] | None = None) -> list[str]:
        head = ["", *(case.label for case in self.table)]
        rows = [
            [cell.subject, *(show(found.cells[index]) for found in self.table.values())]
            for index, cell in enumerate(next(iter(self.table.values())).cells)
            if only is None or cell.subject in only
        ]
        return aligned([head, *rows])

    def _notes(self) -> list[str]:
        """Say what each does not do, and why a row is empty."""
        lines = ["What each leaves out:", ""]
        lines += [f"- {subject.name}: {subject.omits}." for subject in self.subjects]
        reasons = {f"- {cell.subject}: {cell.absent}" for _, cell in self._cells() if cell.absent}
        return [*lines, "", "Not measured:", "", *sorted(reasons)] if reasons else lines


def _spread(summary: Summary) -> str:
    return f"{summary.median:.2f} ({(summary.high - summary.low) / 2:.2f})"


def _why(reason: str) -> str:
    return reason if reason == "not installed" else "FAILED" if reason.startswith(_FAILED) else "-"


def aligned(rows: list[list[str]]) -> list[str]:
    """Return the lines of a Markdown table whose columns are as wide as their texts; the first row is its head."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|-" + "-|-".join("-" * width for width in widths) + "-|"
    return [lines[0], rule, *lines[1:]]
