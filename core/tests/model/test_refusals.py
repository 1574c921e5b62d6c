"""The table of refusals: what holds of every row, and what a row that Python alone says is shown as."""

from __future__ import annotations

import pickle
import re

import pytest

from trunnion.errors import ArgumentError, TrunnionError
from trunnion.model.plan import refusals
from trunnion.model.plan.refusals import REFUSALS, FieldKind, RefusalRow

ROWS = pytest.mark.parametrize("row", REFUSALS.values(), ids=REFUSALS)
LISTS = {FieldKind.NAMES, FieldKind.PLACES}
SAMPLES = {
    FieldKind.DIMS: (3, 4),
    FieldKind.NAMES: ("a", "b"),
    FieldKind.PLACES: ("here",),
    FieldKind.AUTHOR: "n",
}
NUMBERS = {FieldKind.INT, FieldKind.NUMBER, FieldKind.ADDRESS, FieldKind.VERSION}


def sample(kind: FieldKind) -> object:
    return 1 if kind in NUMBERS | {FieldKind.AXIS} else SAMPLES.get(kind, "sample")


def test_no_id_is_that_of_two_rows() -> None:
    rows = [value for value in vars(refusals).values() if isinstance(value, RefusalRow)]
    assert len({id(row) for row in rows}) == len(REFUSALS)


@ROWS
def test_a_row_is_well_formed(row: RefusalRow[Exception]) -> None:
    assert re.fullmatch("[a-z]+(-[a-z]+)*", row.id)
    assert row.only in ("", "python", "cpp")
    assert not any(kind in LISTS for _, kind in row.fields[:-1]), "a list is the last field"
    assert len(row.fields) < 10, "a C++ launcher knows a field by one digit"
    used = set(re.findall(r"\{(\w+)\}", "".join(row.texts)))
    assert used == {name for name, _ in row.fields}


@ROWS
def test_a_row_makes_an_error_that_knows_its_row(row: RefusalRow[Exception]) -> None:
    error = row(*(sample(kind) for _, kind in row.fields))
    assert type(error) is row.error
    assert isinstance(error, (TrunnionError, MemoryError))
    assert vars(error)["refusal"] == row.id
    assert "{" not in str(error)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - it was made here
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


@ROWS
def test_a_row_takes_as_many_values_as_it_has_fields(row: RefusalRow[Exception]) -> None:
    with pytest.raises(ValueError, match="zip"):
        row(*(sample(kind) for _, kind in row.fields), 0)


def test_what_the_author_wrote_is_shown_where_it_says_more() -> None:
    assert refusals.VALUE("n", 5, 6, "6").expected == "6"
    assert refusals.VALUE("n", 5, 6, "(m + 1)").expected == "6 ((m + 1))"


def test_a_place_that_a_launcher_sent_is_the_error_s() -> None:
    error = refusals.OVERLAP.read("out[1]", ["x", "y"])
    assert isinstance(error, ArgumentError)
    assert (error.argument, error.place) == ("x", "out[1]")
