"""Calls one after another: what differs in each, what is taken back, and that the law meets every difference."""

from __future__ import annotations

from collections import Counter

import pytest

from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol
from trunnion.registry import default_registry
from trunnion.testing import history
from trunnion.testing.acts import ACTS
from trunnion.testing.changes import CHANGES, changes_of
from trunnion.testing.example_text import example_text
from trunnion.testing.harness import Harness
from trunnion.testing.history import Bench, History, Step
from trunnion.testing.laws import catalogue
from trunnion.testing.machine import SimulatedMachine
from trunnion.testing.strategies.histories import TWIN
from trunnion.testing.suite import test_histories

LEAST = 3
"""How often each difference must be met: several times."""


def every_parameter():
    """Return a program that has a place for every change."""
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n, s = Symbol("n"), Symbol("s")
    x = builder.input("x", "float32", (n, 16), strides=(s, 1))
    y = builder.input("y", "float16", (n,), nullable=True)
    twin = builder.input(TWIN, "float32", (n, 16), strides=(s, 1))
    numbers = [builder.scalar(name, kind) for name, kind in
               (("f", "float32"), ("i", "int32"), ("b", "bool"), ("z", "complex64"))]  # fmt: skip
    pointer, struct = builder.pointer("p", nullable=True), builder.struct("v", 24, alignment=8)
    out = builder.output("o", "float32", (n, 2))
    builder.launch("k", (x, y, twin, *numbers, pointer, struct, out), n, 32)
    return builder.build()


@pytest.fixture
def bench(simulator):
    harness = Harness(
        spec=default_registry().backend("nvrtc"), machine=SimulatedMachine(simulator), law_id="Y1"
    )
    program = every_parameter()
    with harness.loaded(program) as loaded:
        yield Bench(harness, program, loaded)


def shown(bench):
    """Return what the next call is made with, as values that can be compared."""
    facts = bench.harness.facts(bench.given().args)
    numbers = [bytes(one) if isinstance(one, bytearray) else repr(one) for one in facts.args]
    now = bench.now
    out = None if now.out is None else [one.data_ptr() for one in now.out]
    return numbers, out, now.stream, now.device, dict(now.current), now.threaded


def test_there_is_a_place_for_every_change():
    assert changes_of(every_parameter()) == tuple(CHANGES)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_differs_and_is_taken_back(bench, name):
    bench.call()
    before, differed = shown(bench), 0
    for pick in range(12):
        bench.change(CHANGES[name], pick)
        differed += shown(bench) != before
        bench.call()
        bench.change_back()
        if name != "freed memory":
            assert shown(bench) == before, pick
        bench.call()
        assert not bench.refused
    assert differed or name == "freed memory"


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_can_be_made_to_tensors_without_elements(bench, name):
    bench.change(CHANGES["extents"], 6)
    assert bench.now.values["n"] == 0
    for pick in range(12):
        bench.change(CHANGES[name], pick)
        bench.call()
        bench.change_back()


def test_freed_memory_is_taken_again(bench):
    for name in ("freed memory", "extents in freed memory"):
        places = {key: tensor.data_ptr() for key, tensor in bench.now.tensors.items()}
        held = {key: id(tensor) for key, tensor in bench.now.tensors.items()}
        bench.change(CHANGES[name], 0)
        assert {key: tensor.data_ptr() for key, tensor in bench.now.tensors.items()} == places
        assert {key: id(tensor) for key, tensor in bench.now.tensors.items()} != held
        bench.change_back()


class Counting:
    """Counts what the law's histories do."""

    def __init__(self, monkeypatch):
        self.changes, self.acts, self.ends = Counter(), Counter(), Counter()
        change, call = Bench.change, Bench.call

        def counted_change(bench, made, pick):
            self.changes[made.name] += 1
            change(bench, made, pick)

        def counted_call(bench, door=None):
            call(bench, door)
            self.ends[bench.refused] += 1

        def counted_act(name, act):
            def counted(life, pick):
                self.acts[name] += 1
                act(life, pick)

            return counted

        monkeypatch.setattr(history.Bench, "change", counted_change)
        monkeypatch.setattr(history.Bench, "call", counted_call)
        for name, act in ACTS.items():
            monkeypatch.setitem(ACTS, name, counted_act(name, act))


def test_the_law_meets_every_difference_several_times(simulator, monkeypatch):
    counting = Counting(monkeypatch)
    catalogue()["Y1"].check(
        Harness(spec=default_registry().backend("nvrtc"), machine=SimulatedMachine(simulator)), shrink=False
    )
    assert min(counting.changes[name] for name in CHANGES) >= LEAST, counting.changes
    assert counting.ends[True] < counting.ends[False] / 4


def test_histories_do_everything_several_times(simulator, monkeypatch):
    counting = Counting(monkeypatch)
    catalogue()["Y2"].check(
        Harness(spec=default_registry().backend("nvrtc"), machine=SimulatedMachine(simulator)), shrink=False
    )
    assert min(counting.acts[name] for name in ACTS) >= LEAST, counting.acts
    assert sum(counting.changes.values()) > 10 * LEAST


def test_a_history_is_printed_as_a_short_program():
    example = History(every_parameter(), (Step("sign of a zero", 3), Step("fork", 0, 0, "entry")))
    statements, text = example_text(example)
    assert "Step('sign of a zero', pick=3)" in text
    assert "Step('fork', alike=0, door='entry')" in text
    assert len(statements) < 1500


def test_the_doors_are_ways():
    assert set(test_histories._DOORS) <= set(history.WAYS)
