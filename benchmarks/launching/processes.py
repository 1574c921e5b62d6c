"""One report of several processes: what differs from process to process counts, not only from round to round.

Where a process's memory lies decides what its calls cost, by a tenth and more: a budget is of the median of processes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launching.machine import Machine
from launching.report import Cell, Column, Report
from launching.timing import Summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from launching.case import Case
    from launching.subject import Subject
    from launching.timing import Rounds

__all__ = ["merged", "reports_of"]


def reports_of(program: str, arguments: Sequence[str], processes: int) -> list[dict[str, Any]]:
    """Return the reports of a benchmark's processes, one after another.

    Parameters
    ----------
    program
        The benchmark's file.
    arguments
        Of its command line; it writes its report where ``--json`` says.
    processes
        How many.

    Raises
    ------
    SystemExit
        If one wrote no report; the status is its own.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for index in range(processes):
            path = Path(folder, f"{index}.json")
            words = [sys.executable, program, *arguments, "--json", str(path)]
            done = subprocess.run(words, stdout=subprocess.DEVNULL, check=False)
            if not path.exists():
                raise SystemExit(done.returncode or 1)
            found.append(json.loads(path.read_text("utf-8")))
    return found


def merged(
    reports: Sequence[Mapping[str, Any]], plan: Rounds, subjects: tuple[Subject, ...], cases: Sequence[Case]
) -> Report:
    """Return the report of reports: each figure is the median of theirs, and its spread that of theirs.

    Parameters
    ----------
    reports
        As `Report.json` writes them; all of the same subjects and cases.
    plan
        How much each measured.
    subjects
        The rows.
    cases
        The columns.
    """
    columns = zip(*(report["cases"] for report in reports), strict=True)
    table = {case: _column(found) for case, found in zip(cases, columns, strict=True)}
    budgets = [[one["ratio"] for one in report["budgets"]] for report in reports]
    each = tuple(zip(*budgets, strict=True))
    return Report(Machine(**reports[0]["machine"]), plan, subjects, table, len(reports), each)


def _column(found: Sequence[Mapping[str, Any]]) -> Column:
    cells = zip(*(one["cells"] for one in found), strict=True)
    return Column(tuple(_cell(each) for each in cells), min(one["quiet"] for one in found))


def _cell(found: Sequence[Mapping[str, Any]]) -> Cell:
    absent = next((one["absent"] for one in found if one["absent"]), "")
    empty = Cell(found[0]["subject"], absent)
    if absent:
        return empty
    ratios = [one["ratio"] for one in found]
    ratio = None if None in ratios else statistics.median(ratios)
    return replace(empty, call=_summary(found, "call"), over_raw=_summary(found, "over_raw"), ratio=ratio)


def _summary(found: Sequence[Mapping[str, Any]], what: str) -> Summary | None:
    if any(one[what] is None for one in found):
        return None
    medians = [one[what]["median"] for one in found]
    least = min(one[what]["least"] for one in found)
    return Summary(statistics.median(medians), min(medians), max(medians), least)
