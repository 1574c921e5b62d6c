"""Scores, their intervals, and what a person says of survivors."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from mutation_trials.judge import Verdict
from mutation_trials.mutant import edit
from mutation_trials.results import Reason, Results, reasons, wilson
from mutation_trials.scope import ROOT, mutated_files

HERE = Path(__file__).parent
PLAN, LIFE = (
    "core/src/trunnion/model/plan/launch_plan.py",
    "core/src/trunnion/codegen/cpp/include/trunnion/life.hpp",
)


@pytest.mark.parametrize(("killed", "counted"), [(0, 10), (10, 10), (22, 48), (390, 400)])
def test_the_ends_of_the_interval_are_shares_of_which_what_was_seen_is_just_so_likely(killed, counted):
    """Wilson's ends are where the distance of what was seen is 1.96 standard deviations: of what is there, not seen."""
    low, high = wilson(killed, counted)
    assert 0 <= low < high <= 1
    for end in (low, high):
        distance = abs(killed / counted - end)
        assert distance == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / counted), abs=1e-6)


def test_of_nothing_nothing_is_known():
    assert wilson(0, 0) == (0.0, 1.0)


def tried():
    one = edit(PLAN, "a = 1\nb = 2\n", "a = 1\nb = 3\n", operator="NumberReplacer", family="number")
    two = edit(PLAN, "a = 1\nb = 2\n", "a = 2\nb = 2\n", operator="NumberReplacer", family="number")
    three = edit(LIFE, "return x;", "return y;", operator="name", family="name")
    verdicts = [
        Verdict(id=one.id, status="killed", law="L1", how="red", cpu=3.0),
        Verdict(id=two.id, status="survived", unconfirmed=("A1",), cpu=4.0),
        Verdict(id=three.id, status="left out", text="does not build", cpu=1.0),
    ]
    return list(zip((one, two, three), verdicts, strict=True))


def test_results_count_by_file_and_say_why_mutants_survive():
    document = Results(tried(), [Reason(PLAN, "a = 1", "a = 2", "equivalent", "nobody reads it")]).document(
        {"seed": 1}
    )
    assert document["total"]["killed"] == 1
    assert document["total"]["score"] == 0.5
    assert document["total"]["score without equivalent"] == 1.0
    assert document["files"] == {PLAN: document["total"]}
    assert document["not counted, since vector add does not launch"] == 1
    assert document["killed by"] == {"L1": 1}
    (survivor,) = document["survivors"]
    assert (survivor["line"], survivor["kind"], survivor["reason"]) == (1, "equivalent", "nobody reads it")
    assert survivor["other draws break"] == ["A1"]


def test_a_survivor_that_nobody_has_looked_at_is_one():
    results = Results(tried(), [Reason(PLAN, "a = 1", "a = 3", "equivalent", "another mutant")])
    assert results.score().document()["score without equivalent"] == 0.5
    assert "**not looked at**" in results.page({})
    hole = Results(tried(), [Reason(PLAN, "a = 1", "a = 2", "hole", "a law should see it")])
    assert hole.score().document()["score without equivalent"] == 0.5


@pytest.mark.parametrize(
    "row", [{"kind": "boring", "reason": "x"}, {"kind": "", "reason": "x"}, {"kind": "cache", "reason": " "}]
)
def test_a_reason_is_of_a_known_kind_and_says_something(row):
    with pytest.raises(ValueError, match="expected one of"):
        reasons(json.dumps([{"path": PLAN, "before": "a", "after": "b", **row}]))


def test_the_table_of_reasons_is_about_mutated_files_and_says_each_thing_once():
    table = reasons((HERE / "reasons.json").read_text("utf-8"))
    known = {*mutated_files("python"), *mutated_files("cpp")}
    assert {row.path for row in table} <= known
    assert len({(row.path, row.before, row.after) for row in table}) == len(table)
    for row in table:
        text = (ROOT / row.path).read_text("utf-8")
        for line in row.before.splitlines():
            assert line.strip() in text, f"{row.path} has no {line!r} any more: leave its reason out"
