from __future__ import annotations

import pytest

from trunnion.errors import ProgramError
from trunnion.model.record import Record

GOOD = {
    "t": "x",
    "i": 3,
    "b": True,
    "r": {"i": 1},
    "rs": [{}, {"i": 2}],
    "ts": ["a"],
    "is": [1, 2],
    "ps": [["a", None]],
    "ips": [[1, 2]],
}
READERS = {
    "t": Record.text,
    "i": Record.integer,
    "b": Record.boolean,
    "r": Record.record,
    "rs": Record.records,
    "ts": Record.texts,
    "is": Record.integers,
    "ps": Record.pairs,
    "ips": Record.integer_pairs,
}


@pytest.mark.parametrize("tree", [None, 1, "a", [], True])
def test_only_objects_are_records(tree: object) -> None:
    with pytest.raises(ProgramError, match="root: got"):
        Record(tree, "root")


def test_each_field_is_read_once_and_with_its_type() -> None:
    record = Record(GOOD, "root")
    assert record.text("t") == "x"
    assert record.integer("i") == 3
    assert record.boolean("b") is True
    inner = record.record("r")
    assert (inner.path, inner.integer("i")) == ("root.r", 1)
    assert [each.path for each in record.records("rs")] == ["root.rs[0]", "root.rs[1]"]
    assert record.texts("ts") == ("a",)
    assert record.integers("is") == (1, 2)
    assert record.pairs("ps") == (("a", None),)
    assert record.integer_pairs("ips") == ((1, 2),)
    record.done()
    with pytest.raises(ProgramError, match=r"root\.t: is missing"):
        record.text("t")
    assert GOOD["t"] == "x", "the caller's tree is left alone"


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "junk", [None, 1.5, float("nan"), "x", 3, True, {}, [None], [[1, 2]], [["a"]], [1.5], [True]]
)
def test_another_type_is_refused_by_its_path(name: str, junk: object) -> None:
    if (type(junk) is type(GOOD[name]) and not isinstance(junk, list)) or junk == GOOD[name]:
        return
    with pytest.raises(ProgramError) as caught:
        READERS[name](Record({name: junk}, "root"), name)
    assert caught.value.field.startswith(f"root.{name}")


def test_true_is_no_integer_and_one_no_truth() -> None:
    with pytest.raises(ProgramError):
        Record({"i": True}, "root").integer("i")
    with pytest.raises(ProgramError):
        Record({"b": 1}, "root").boolean("b")


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ([0, 1], 1j),
        ([1.5, -2], 1.5 - 2j),
        (["inf", 3], complex("inf+3j")),
        ([0.5, "-inf"], complex("0.5-infj")),
    ],
)
def test_a_pair_of_any_numbers_is_a_complex_one(pair: list[object], value: complex) -> None:
    assert Record({"n": pair}, "root").number("n") == value


@pytest.mark.parametrize(
    "junk",
    [[True, 1], [1, False], [1], [1, 2, 3], [1, None], [1, [1, 2]], [1, "x"], [10**400, 0], [0.5, -(10**400)],
     float("nan"), float("inf"), [0.5, float("-inf")], "Infinity"],
    ids=lambda junk: str(junk)[:20],
)  # fmt: skip
def test_what_is_no_number_is_refused_by_its_path(junk: object) -> None:
    with pytest.raises(ProgramError) as caught:
        Record({"n": junk}, "root").number("n")
    assert caught.value.field == "root.n"


def test_what_is_left_over_is_named() -> None:
    record = Record({"a": 1, "zebra\n": 2}, "root")
    record.integer("a")
    with pytest.raises(ProgramError, match=r"unknown fields 'zebra\\n'"):
        record.done()


def test_null_counts_as_read() -> None:
    record = Record({"a": None, "b": 0}, "root")
    assert record.has("a")
    assert record.null("a")
    assert not record.has("a")
    assert not record.null("b")
    assert not record.null("c")
