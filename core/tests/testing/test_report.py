"""The report: a document that comes back from JSON, and what is counted in it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from trunnion.errors import CorruptArtifactError
from trunnion.testing.report import SCHEMA, LawReport, Report, suite_revision

HELD = LawReport(id="L1", status="held", requires=("cluster",), examples=15, calls={"call": 3}, digest="d1")
REFUSED = LawReport(id="L2", status="refused", examples=15, digest="d2")
FAILED = LawReport(id="L3", status="failed", text="<b>why</b>")
REPORT = Report(
    backend="acme", distribution="trunnion-acme 1", capabilities=("cluster",), tier="sim", seed=0, examples=None,
    thorough=False, suite="5", versions={"python": "3"}, date="2026-01-01", laws=(HELD, REFUSED),
)  # fmt: skip


def test_a_report_comes_back_from_json_and_later_keys_are_passed_over():
    document = json.loads(REPORT.to_json())
    assert document["schema"] == SCHEMA
    document["new"] = document["laws"][0]["new"] = 1
    assert Report.from_json(json.dumps(document)) == REPORT


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "other/1"}', json.dumps({"schema": SCHEMA})])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(CorruptArtifactError):
        Report.from_json(text)


def test_it_is_good_if_every_law_held_or_was_refused():
    assert REPORT.good
    assert REPORT.summary() == "1 held, 1 refused as declared"
    for status in ("failed", "crashed", "hung"):
        bad = replace(REPORT, laws=(HELD, replace(FAILED, status=status)))
        assert not bad.good
        assert bad.summary() == f"1 held, 1 {status}"
    assert not replace(REPORT, laws=()).good


def test_the_digest_is_that_of_the_draws():
    assert REPORT.digest == replace(REPORT, backend="other").digest
    assert REPORT.digest != replace(REPORT, laws=(HELD,)).digest


def test_the_revision_is_that_of_the_suite_s_text():
    assert suite_revision() == suite_revision()
    assert len(suite_revision()) == 16
