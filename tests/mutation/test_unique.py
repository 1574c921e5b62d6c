"""The recorded table of saboteurs that one law alone catches: whole, and about what there is."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest
from mutation_trials.scope import ROOT
from prove_unique import REASONS, Known, candidates, order, page, prove, reached, version

from trunnion.testing.laws import catalogue
from trunnion.testing.saboteurs import SABOTEURS

PAGE = (ROOT / "docs/results/unique.md").read_text("utf-8")
ROWS = {
    row[0].strip(" `"): (row[1].strip(" `"), row[2].strip())
    for row in (line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| `"))
}
SAID = json.loads(REASONS.read_text("utf-8"))


def test_each_law_has_a_row():
    assert [*ROWS] == [*catalogue().laws]


@pytest.mark.parametrize("law_id", ROWS)
def test_a_row_names_a_saboteur_of_its_law_or_says_why_there_is_none(law_id):
    unique, otherwise = ROWS[law_id]
    assert bool(unique) != bool(otherwise)
    if unique:
        assert SABOTEURS[unique].caught_by == (law_id,)
    elif law_id in SAID:
        assert otherwise == SAID[law_id]


def test_reasons_are_of_laws_without_such_a_saboteur():
    assert {law_id for law_id in SAID if ROWS[law_id][0]} == set()
    assert all(reason.strip() and "|" not in reason for reason in SAID.values())


NOTICES = {"A": ("one", "two"), "B": ("three",), "C": ("two", "four"), "D": ()}
OWN = {"one": "A", "two": "A", "three": "B", "four": "D"}


@pytest.fixture
def known(tmp_path, monkeypatch):
    """Return what is known, and what laws were asked, where a saboteur is its own version."""
    questions = []

    def ask(law_id, planted):
        questions.append((law_id, *planted))
        return "noticed" if {*planted} & {*NOTICES[law_id]} else ""

    monkeypatch.setattr("prove_unique.asked", ask)
    monkeypatch.setattr("prove_unique.version", lambda one: one)
    monkeypatch.setattr("prove_unique.law_version", lambda law_id: f"{law_id}@0")
    monkeypatch.setattr("prove_unique.is_written", lambda one: one == "three")
    return Known(tmp_path / "known.jsonl", OWN, NOTICES), questions


def test_of_several_mistakes_it_is_found_out_which_a_law_notices(known):
    made, questions = known
    assert made.caught("A", ["one", "two", "three", "four"]) == ["one", "two"]
    assert made.caught("B", ["four"]) == []
    assert questions[0] == ("A", "one", "two", "three", "four")
    assert ("A", "three", "four") in questions


def test_what_is_known_is_not_asked_again(known):
    made, questions = known
    made.caught("C", ["one", "two"])
    count = len(questions)
    assert Known(made.file, OWN, NOTICES).caught("C", ["one", "two"]) == ["two"]
    assert len(questions) == count


def test_a_law_whose_module_changes_is_asked_again(known, monkeypatch):
    made, questions = known
    made.caught("C", ["one"])
    monkeypatch.setattr("prove_unique.law_version", lambda law_id: f"{law_id}@1")
    assert Known(made.file, OWN, NOTICES).caught("C", ["one"]) == []
    assert questions == [("C", "one")] * 2


def test_a_saboteur_is_unique_that_no_other_law_notices(known):
    made, _ = known
    for law_id in "ABC":
        made.caught(law_id, ["one", "two"])
    assert made.is_unique("one", "ABC")
    assert not made.is_unique("two", "ABC")
    assert made.others("two", "ABC") == ("C", 1)
    assert not made.is_unique("three", "ABC"), "nobody was asked"


def test_what_laws_say_where_a_saboteur_is_hidden_does_not_count(known):
    made, _ = known
    made.caught("B", ["one", "four"])
    assert made.said("B", "four") == ""
    assert made.ask("D", ["one", "four"]) == "", "its own law is silent"
    assert made.said("B", "four") is None
    assert made.said("B", "one") == ""
    made.ask("B", ["four"])
    assert made.said("B", "four") == ""


def test_the_saboteurs_of_a_law_are_tried_until_one_is_unique(known, monkeypatch):
    made, _ = known
    monkeypatch.setattr("prove_unique.order", list)
    every = {"A": ["two", "one"], "B": ["three"], "C": [], "D": ["four"]}
    prove(lambda: Known(made.file, OWN, NOTICES), every, [*every], shards=2)
    after = Known(made.file, OWN, NOTICES)
    assert [one for one in OWN if after.is_unique(one, "ABCD")] == ["one", "three"]
    assert (after.others("two", "ABCD")[0], after.others("four", "ABCD")[0]) == ("C", "C")


def test_what_is_not_known_is_not_called_proved(tmp_path):
    every = candidates()
    own = {one: law_id for law_id, saboteurs in every.items() for one in saboteurs}
    told = page(Known(tmp_path / "nothing.jsonl", own, every), every, SAID, "about")
    rows = [line for line in told.splitlines() if line.startswith("| `")]
    assert len(rows) == len(every)
    assert all(row.split("|")[2].strip() == "" for row in rows)


def test_a_law_that_reads_texts_is_not_asked_about_saboteurs_in_the_emitter(known):
    made, _ = known
    assert made.counts("B2", "one")
    assert not made.counts("B2", "three")


def test_all_laws_are_asked_but_those_that_no_mistake_reaches():
    assert sorted(order(catalogue().laws)) == sorted({*catalogue().laws} - {"Z4"})


def test_a_saboteur_whose_module_changes_is_another():
    assert version("any-dtype") != version("one-zero")


MODULE = """
MOST = 3

def helper(number):
    return number < MOST

@decorated(given=lambda: MOST)
def law(number):
    return helper(number)  # as it is

def another():
    return 1
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("MOST = 3", "MOST = 4", False),
        ("number < MOST", "number <= MOST", False),
        ("given=lambda: MOST", "given=lambda: 0", False),
        ("# as it is", "# as it was", True),
        ("return 1", "return 2", True),
    ],
)
def test_a_law_is_another_where_its_module_has_other_code_for_it(tmp_path, monkeypatch, old, new, same):
    told = []
    for name, text in (
        (f"{tmp_path.name}_before", MODULE),
        (f"{tmp_path.name}_after", MODULE.replace(old, new)),
    ):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(__file__=str(tmp_path / f"{name}.py")))
        told.append(reached(name, "law"))
    assert (told[0] == told[1]) is same
    assert not any("another" in one for one in told[0])
