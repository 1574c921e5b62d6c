from __future__ import annotations

import json

import pytest
from sample_machine import MACHINE

from launching.timing import Rounds
from real_hosts.table import Report, Section, rows_of

DOES = {"theirs": "launches", "theirs, twice": "launches twice", "ours": "checks"}
SAMPLES = {"theirs": [2.0, 3.0, 4.0], "ours": [5.0, 6.0, 7.5]}


def report(samples: dict[str, list[float]]) -> Report:
    rows = rows_of(DOES, samples, {"theirs, twice": "RuntimeError: no"}, "theirs")
    return Report(MACHINE, Rounds(3, 64), (Section("sum", "1000", rows),))


def test_differences_are_taken_round_by_round_to_the_first_row() -> None:
    theirs, twice, ours = rows_of(DOES, SAMPLES, {"theirs, twice": "no"}, "theirs")
    assert (theirs.call.median, theirs.over) == (3.0, None)
    assert (twice.call, twice.over, twice.problem) == (None, None, "no")
    assert ours.over.median == pytest.approx(3.0)


def test_without_the_first_row_there_is_no_difference() -> None:
    rows = rows_of(DOES, {"ours": [1.0]}, {}, "theirs")
    assert [row.over for row in rows] == [None, None, None]
    assert rows[2].call.median == 1.0


def test_the_table_has_all_rows_and_says_why_one_is_empty() -> None:
    found = report(SAMPLES)
    assert not found.ok
    text = found.markdown()
    assert "| sum, 1000     | call        | more        | each call      |" in text
    assert "| theirs, twice | -           | -           | launches twice |" in text
    assert "| ours          | 6.00 (0.62) | 3.00 (0.12) | checks         |" in text
    assert "- theirs, twice: RuntimeError: no" in text
    assert text.startswith("2026-11-20: a GPU")
    assert "3 rounds of 64 calls" in text
    facts = json.loads(found.json())
    assert facts["sections"][0]["rows"][2]["call"]["median"] == 6.0


def test_it_is_ok_when_every_row_was_measured() -> None:
    assert report({**SAMPLES, "theirs, twice": [1.0, 1.0, 1.0]}).ok
