"""A mutant is tried by the laws that run the statement which it changes, and by all where that is not known."""

from __future__ import annotations

import pytest
from mutation_trials.mutant import edit
from mutation_trials.reach import Reach, statement_lines

TEXT = """@decorated
def outer(a, b=(
    1, 2)):
    if a and (
        b
    ):
        call(a,
             b)
    elif b:
        return a
    try:
        for one in b: print(one)
    except (KeyError,
            ValueError):
        pass
    match a:
        case 3 | 4:
            return [
                b for b in a
            ]
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (1, {1, 2}),
        (2, {2, 3}),
        (3, {2, 3}),
        (5, {4, 5, 6}),
        (8, {7, 8}),
        (9, {9}),
        (12, {12}),
        (14, {13, 14}),
        (17, {17}),
        (19, {18, 19, 20}),
    ],
)
def test_a_line_is_of_the_smallest_statement(line, expected):
    assert statement_lines(TEXT, line) == expected


def test_a_line_of_no_statement_is_of_none():
    assert statement_lines("a = 1\n\n# nothing\n", 2) is None


def mutant(line):
    before = TEXT.splitlines()[line - 1]
    changed = TEXT.replace(before, before.replace("a", "c").replace("b", "d"))
    return edit("x.py", TEXT, changed, operator="planted", family="planted")


def test_only_laws_that_run_a_statement_can_tell_what_it_becomes():
    reach = Reach({"x.py": [1, 2]}, {"A1": {"x.py": [4, 7]}, "A2": {"x.py": [9]}, "A3": {}, "A4": None})
    told = {
        line: {law for law in ("A1", "A2", "A3", "A4", "A5") if reach.tells(law, mutant(line), TEXT)}
        for line in (2, 8, 9, 10)
    }
    unknown = {"A4", "A5"}  # a law that was not seen, or not watched, may run anything
    assert told == {
        2: {"A1", "A2", "A3", *unknown},  # all of them import it
        8: {"A1", *unknown},
        9: {"A2", *unknown},
        10: unknown,
    }
