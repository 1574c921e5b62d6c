from __future__ import annotations

import json
from dataclasses import replace

import pytest
from sample_machine import MACHINE

from launching.case import Case
from launching.others import UNCHECKED
from launching.report import Report, column, verdicts
from launching.subject import Subject
from launching.timing import Rounds
from launching.yardsticks import BARE, RAW

OURS = "tvm_ffi __call__"
SUBJECTS = tuple(
    Subject(name, group, "nothing", lambda stage: None)
    for name, group in ((RAW, "yardstick"), (BARE, "yardstick"), ("other", "other"), (OURS, "ours"))
)
SAMPLES = {RAW: [3.0, 4.0, 5.0], BARE: [0.5, 0.5, 0.5], OURS: [3.6, 4.6, 5.6]}


def report(
    *, simulated: bool = False, samples: dict[str, list[float]] = SAMPLES, absent: str = "not installed"
):
    machine = replace(MACHINE, simulated=simulated)
    names = [subject.name for subject in SUBJECTS]
    found = column(SUBJECTS, samples, {name: absent for name in names if name not in samples})
    return Report(machine, Rounds(3, 10), SUBJECTS, {Case(3): found, Case(3, 1): found, Case(3, 3): found})


def test_a_ratio_is_the_difference_to_the_loop_over_the_bare_call() -> None:
    by_name = {cell.subject: cell for cell in column(SUBJECTS, SAMPLES, {}).cells}
    ours = by_name[OURS]
    assert (ours.call.median, ours.over_raw.median, ours.ratio) == pytest.approx((4.6, 0.6, 1.2))
    assert by_name[RAW].over_raw is None
    assert by_name["other"].absent == "not measured"


@pytest.mark.parametrize(
    ("slower", "without", "with_maps"), [(0.0, True, True), (0.2, False, True), (0.4, False, False)]
)
def test_the_budgets_are_kept_or_not(slower: float, without: bool, with_maps: bool) -> None:
    found = report(samples=SAMPLES | {OURS: [value + slower for value in SAMPLES[OURS]]})
    assert [verdict.ok for verdict in found.verdicts] == [without, with_maps]


def test_a_budget_that_was_not_measured_is_not_kept() -> None:
    without_loop = {name: values for name, values in SAMPLES.items() if name != RAW}
    assert [verdict.ok for verdict in report(samples=without_loop).verdicts] == [False, False]
    assert verdicts({Case(1): column(SUBJECTS, SAMPLES, {})}) == ()


@pytest.mark.parametrize(("slower", "kept"), [(0.0, True), (0.5, False)])
def test_the_ordinary_call_is_beside_launchers_that_check_nothing(slower: float, kept: bool) -> None:
    subjects = (*SUBJECTS, *(Subject(name, "other", "nothing", lambda stage: None) for name in UNCHECKED))
    samples = SAMPLES | {UNCHECKED[0]: [4.7, 4.7, 4.7], OURS: [value + slower for value in SAMPLES[OURS]]}
    (found, absent) = verdicts({Case(19): column(subjects, samples, {})})
    assert (found.subject, found.what, found.ok) == (OURS, f"call / {UNCHECKED[0]}", kept)
    assert (absent.ratio, absent.ok) == (None, False)


def test_several_launches_are_beside_as_many_raw_ones() -> None:
    names = (RAW, OURS, "tvm_ffi bind")
    subjects = tuple(Subject(name, "ours", "nothing", lambda stage: None) for name in names)
    samples = dict(zip(names, ([24.0], [25.9], [24.8]), strict=True))
    called, bound = verdicts({Case(3, launches=8): column(subjects, samples, {})})
    assert (called.subject, called.limit, called.ok) == (OURS, 1.08, True)
    assert (bound.subject, bound.limit, bound.ok) == ("tvm_ffi bind", 1.03, False)


def test_a_simulation_says_nothing_of_budgets() -> None:
    assert report(simulated=True).verdicts == ()


def test_what_of_ours_failed_is_named() -> None:
    samples = {name: values for name, values in SAMPLES.items() if name != OURS}
    assert (
        report(samples=samples, absent="failed: OSError: x").failures[0] == f"{OURS}, 3: failed: OSError: x"
    )
    assert report(samples=samples, absent="this version has no bind()").failures == ()


def test_markdown_has_every_row_and_every_reason() -> None:
    text = report().markdown()
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(line) for line in table[:6]}) == 1  # aligned
    assert "| 4.00 (0.50) " in text
    assert "- other: not installed" in text
    assert "2026-11-20: a GPU, driver 580; a CPU, 2 cores; Python 3.12; torch 2." in text


def test_json_has_every_number() -> None:
    facts = json.loads(report().json())
    assert [case["maps"] for case in facts["cases"]] == [0, 1, 3]
    cell = facts["cases"][0]["cells"][3]
    assert cell["subject"] == OURS
    assert cell["over_raw"]["median"] == pytest.approx(0.6)
    assert facts["budgets"][0] == {
        "subject": OURS,
        "case": "3",
        "ratio": pytest.approx(1.2),
        "limit": 1.3,
        "what": "(call - raw) / bare",
        "each": [],
        "ok": True,
    }


def test_only_rounds_at_full_speed_count() -> None:
    slow = {RAW: [3.0, 3.0, 6.0], BARE: [0.5, 0.5, 1.0], OURS: [5.0, 5.0, 14.0]}
    found = column(SUBJECTS, slow, {})
    assert found.quiet == 2
    assert [cell.call.median for cell in found.cells if cell.call] == [3.0, 0.5, 5.0]


def test_with_a_call_helper_a_launcher_in_python_has_a_budget_of_its_own() -> None:
    rows = [f"{name} {way}" for name in ("nvrtc", "nvrtc + fastcall") for way in ("entry", "bind", "stream=")]
    subjects = [Subject(row, "ours", "nothing", lambda stage: None) for row in rows]
    samples = SAMPLES | {row: [5.5, 5.5, 5.5] for row in rows}
    found = column((*SUBJECTS, *subjects), samples, {"other": "not installed"})
    told = [(one.subject, one.limit, one.ok) for one in verdicts({Case(3): found}) if one.subject != OURS]
    assert told == [
        ("nvrtc entry", 3.2, True),
        ("nvrtc stream=", 4.2, True),
        ("nvrtc + fastcall entry", 2.0, False),
    ]
