"""The manual's page of known backends is what its script makes of the reports, and those are whole and good."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.testing.laws import catalogue
from trunnion.testing.report import LawReport

if TYPE_CHECKING:
    from trunnion.testing.report import Report

DOCS = Path(__file__).resolve().parents[2] / "docs"


def _script() -> Any:
    spec = importlib.util.spec_from_file_location("known_backends", DOCS / "known_backends.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()
REPORTS = SCRIPT.read()
ON_A_GPU = SCRIPT.read("gpu")


def test_the_page_is_made_from_the_reports() -> None:
    assert (DOCS / "known-backends.md").read_text("utf-8") == SCRIPT.page(REPORTS, ON_A_GPU)


@pytest.mark.parametrize("report", REPORTS, ids=[report.backend for report in REPORTS])
def test_every_report_is_of_all_laws_and_good(report: Report) -> None:
    assert report.good
    assert {law.id for law in report.laws} == set(catalogue().laws)


@pytest.mark.parametrize("report", ON_A_GPU, ids=[report.backend for report in ON_A_GPU])
def test_every_report_of_a_gpu_is_good_and_laws_that_came_later_are_named(report: Report) -> None:
    """A GPU is not always to be had: what a report does not say is said of it on the page."""
    assert report.tier == "gpu"
    assert report.good
    checked, known = (
        {law.id for law in report.laws},
        {law.id for law in catalogue().laws.values() if law.is_of("gpu")},
    )
    assert checked <= known
    later = SCRIPT.unchecked(report)
    assert {*later} == known - checked
    (line,) = [
        one for one in SCRIPT.page([], [report]).splitlines() if one.startswith(f"`{report.backend}`:")
    ]
    assert all(f"`{law}`" in line for law in later)
    assert ("came later" in line) is bool(later)


def test_what_is_broken_is_said() -> None:
    (first, *_) = REPORTS
    broken = LawReport(id="T4", status="crashed")
    text = SCRIPT.page([replace(first, laws=(broken,))], [])
    assert "| 0 | 0 | 1 |" in text
    assert "Crashed: `T4`." in text
