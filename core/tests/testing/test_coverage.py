"""`trunnion.testing.coverage`: what a call brings together."""

from __future__ import annotations

from collections import Counter

from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import symbols
from trunnion.testing.coverage import EVENTS, events_of, table
from trunnion.testing.strategies import CallSpec, TensorSpec


def program():
    p = ProgramBuilder("p", DeviceCode("cuda", "// no text"))
    (n,) = symbols("n")
    x = p.input("x", "float32", (n, 2), nullable=True)
    p.scalar("n", "int32", symbol=n)
    p.launch("k", (x,), grid=n, block=1)
    return p.build()


def given(n, **fields):
    return TensorSpec(dtype="float32", shape=(n, 2), strides=(2, 1), **fields)


def events(way, *args, **fields):
    return set(events_of(way, program(), CallSpec(args=args, **fields)))


def test_events_of_calls():
    assert events("call", given(3), 3) == {"good", "first"}
    assert events("entry", given(3, offset=4, device=1), 4) == {
        "refused", "first", "entered", "offset", "second device",
    }  # fmt: skip
    assert events("bind-again", None, 0, device=0) == {
        "good", "skipped", "none", "no tensor", "bound", "first",
    }  # fmt: skip
    assert events("capture", given(0), 0) == {"good", "skipped", "empty", "captured"}


def test_the_table_has_a_column_for_each_event():
    text = table(Counter({("pdl", "good"): 3}))
    assert text.splitlines()[2].startswith("| pdl | 3 | 0 |")
    assert all(line.count("|") == len(EVENTS) + 2 for line in text.splitlines())
