from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sample_machine import MACHINE

from launching.case import Case
from launching.processes import merged, reports_of
from launching.report import Report, column
from launching.subject import Subject
from launching.timing import Rounds
from launching.yardsticks import BARE, RAW

if TYPE_CHECKING:
    from pathlib import Path

OURS = "tvm_ffi entry"
PLAN = Rounds(3, 10)
CASES = (Case(3),)
SUBJECTS = tuple(
    Subject(name, group, "nothing", lambda stage: None)
    for name, group in ((RAW, "yardstick"), (BARE, "yardstick"), ("other", "other"), (OURS, "ours"))
)


def one_process(ours: float, *, simulated: bool = False, raw: float | None = 4.0) -> dict:
    samples = {BARE: [0.5] * 3, OURS: [ours] * 3} | ({} if raw is None else {RAW: [raw] * 3})
    table = {CASES[0]: column(SUBJECTS, samples, {"other": "not installed"})}
    report = Report(replace(MACHINE, simulated=simulated), PLAN, SUBJECTS, table)
    return json.loads(report.json())


def test_a_budget_is_of_the_median_of_processes() -> None:
    report = merged([one_process(value) for value in (4.6, 4.45, 4.2)], PLAN, SUBJECTS, CASES)
    (verdict,) = report.verdicts
    assert verdict.ratio == pytest.approx(0.9)
    assert verdict.each == pytest.approx((1.2, 0.9, 0.4))
    assert verdict.ok
    assert "= 0.90 (0.40 to 1.20), at most 0.95: ok" in verdict.line()
    assert report.processes == json.loads(report.json())["processes"] == 3


def test_times_are_medians_too_and_spread_as_far_as_the_processes() -> None:
    report = merged([one_process(value) for value in (4.6, 4.45, 4.2)], PLAN, SUBJECTS, CASES)
    by_name = {cell.subject: cell for cell in report.table[CASES[0]].cells}
    call = by_name[OURS].call
    assert (call.low, call.median, call.high) == (4.2, 4.45, 4.6)
    assert by_name["other"].absent == "not installed"
    assert "of the medians of 3 processes" in report.markdown()


def test_what_one_process_did_not_measure_is_not_kept() -> None:
    report = merged([one_process(4.2), one_process(4.2, raw=None)], PLAN, SUBJECTS, CASES)
    (verdict,) = report.verdicts
    assert (verdict.ratio, verdict.ok) == (None, False)


def test_simulated_processes_say_nothing_of_budgets() -> None:
    report = merged([one_process(4.2, simulated=True)] * 2, PLAN, SUBJECTS, CASES)
    assert report.verdicts == ()
    assert report.processes == 2


def test_each_process_writes_a_report_of_its_own(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import json, os, sys\njson.dump(os.getpid(), open(sys.argv[-1], 'w'))\n")
    found = reports_of(str(program), ["--rounds=1"], 3)
    assert len(set(found)) == 3


def test_a_process_without_a_report_ends_all(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys\nsys.exit(77)\n")
    with pytest.raises(SystemExit) as raised:
        reports_of(str(program), [], 2)
    assert raised.value.code == 77
