"""Values become documents: every kind of value, and whole plans."""

from __future__ import annotations

import enum
import json
import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from trunnion import DeviceCode, ProgramBuilder, Symbol, ceildiv, examples
from trunnion.cli.document import plain, plan_document, told, told_apart
from trunnion.model.dtypes import dtype


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 3


@dataclass(frozen=True)
class Point:
    x: int
    y: object


N = Symbol("n")


@pytest.mark.parametrize(
    ("value", "document"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (1.5, 1.5),
        (math.inf, "inf"),
        (math.nan, "nan"),
        (b"\x01\xff", "01ff"),
        (Colour.RED, "red"),
        (Level.LOW, 3),
        (dtype("bfloat16"), "bfloat16"),
        (N * 2 + 1, "((n * 2) + 1)"),
        (Path("a/b"), "a/b"),
        (1 + 2j, "(1+2j)"),
        ({"b", "a"}, ["a", "b"]),
        ({1: (N,)}, {"1": ["n"]}),
        (Point(1, Point(2, None)), {"type": "Point", "x": 1, "y": {"type": "Point", "x": 2, "y": None}}),
    ],
)
def test_values(value: object, document: object) -> None:
    assert plain(value) == document


def test_a_long_text_that_has_no_bytes_is_told_too() -> None:
    assert told("\ud800" * 200).startswith("200 characters, SHA-256 ")


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_a_plan_is_told_whole(name: str) -> None:
    plan = examples.load(name).program.plan()
    document = plan_document(plan)
    assert json.loads(json.dumps(document)) == document
    assert document["hash"] == plan.hash
    assert [kernel["name"] for kernel in document["kernels"]] == [kernel.name for kernel in plan.kernels]
    assert len(document["launches"][0]["args"]) == len(plan.launches[0].args)


def test_the_slots_of_a_plan_bear_the_names_of_symbols() -> None:
    odd = Symbol("a b")
    p = ProgramBuilder("copy", DeviceCode("cuda", ""))
    x = p.input("x", "float32", (N, odd))
    p.launch("copy", args=(x, (N * odd).cast("int32")), grid=ceildiv(N, 4), block=32)
    (launch,) = plan_document(p.build().plan())["launches"]
    assert launch["grid"] == ["ceildiv(n, 4)", "1", "1"]
    assert launch["args"][1]["value"] == 'cast(int32, (n * "a b"))'


LONG = "gcc version 12.2.0 (Debian 12.2.0-14); x86_64-linux-gnu; " + "-fno-plt " * 20


@pytest.mark.parametrize(
    ("here", "kept", "told"),
    [
        ("a", "b", ("a", "b")),
        ("a", None, ("a", None)),
        (f"{LONG}-O1; glue 1", f"{LONG}-O2; glue 2", ("-O1; glue 1", "-O2; glue 2")),
        (f"{LONG}; glue 1", LONG, ("glue 1", "nothing more")),
        (
            json.dumps({"define": ["A" * 90], "pch": True, "std": "c++17"}),
            json.dumps({"define": ["A" * 90], "pch": False}),
            ('pch: true; std: "c++17"', "pch: false"),
        ),
    ],
)
def test_of_two_long_texts_what_differs_is_told(here: str, kept: str, told: tuple[str, str]) -> None:
    assert told_apart(here, kept) == told


def test_what_has_no_pieces_or_the_same_ones_is_told_by_its_digest() -> None:
    for here, kept in ((f"{LONG}\nx", LONG), ("a; b; " + "c" * 100, "b; a; " + "c" * 100)):
        assert all(" characters, SHA-256 " in one for one in told_apart(here, kept))


def test_of_many_pieces_the_first_are_told() -> None:
    here, _ = told_apart("; ".join(f"phrase {n}" for n in range(30)), "none")
    assert here.endswith("phrase 7; and 22 more")
