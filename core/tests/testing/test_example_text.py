"""Examples as programs: the text of whatever a law draws makes an equal one."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ceildiv, select
from trunnion.model.facts import device, occupancy
from trunnion.registry import default_registry
from trunnion.testing.draws import for_examples
from trunnion.testing.example_text import example_text, programs_in
from trunnion.testing.harness import Harness
from trunnion.testing.laws import catalogue
from trunnion.testing.machine import SimulatedMachine
from trunnion.testing.strategies import BytesSpec, CallSpec, Indexable, Scenario, TensorSpec


def made(example):
    """Return what the text of an example makes."""
    statements, expression = example_text(example)
    names = {}
    exec(statements, names)
    return eval(expression, names)  # noqa: S307 - the text under test


def program():
    n = Symbol("n")
    p = ProgramBuilder("scale", DeviceCode("cuda", ""))
    x, k = p.input("x", "float32", (n,)), p.scalar("k", "int32")
    y = p.output("y", "float32", (n,))
    p.launch("scale", args=(x, k, y, select(n, n * 2, 5).cast("int8")), grid=ceildiv(n, 4), block=4)
    return p.build()


def test_a_program_and_a_call_become_lines_that_a_person_would_write():
    scenario = Scenario(program(), CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)), 2)))
    statements, expression = example_text(scenario)
    assert made(scenario) == scenario
    assert programs_in(scenario) == (scenario.program,)
    assert "n = Symbol('n')" in statements
    assert "ceildiv(n, 4)" in statements
    assert statements.count("TensorParam(") == 2  # each once, under a name
    assert expression.startswith("Scenario(program, CallSpec(")
    assert "import CallSpec" in statements
    assert max(map(len, statements.splitlines())) < 110


def test_what_a_device_decides_is_named_once():
    p = ProgramBuilder("sized", DeviceCode("cuda", ""))
    x = p.input("x", "float32", (8,))
    whole = device.multiprocessor_count * occupancy("k", 128)
    p.launch("k", args=(x, whole + device.multiprocessor_count), grid=whole, block=128)
    statements, _ = example_text(p.build())
    assert made(p.build()) == p.build()
    assert statements.count("DeviceFact(") == 1


@pytest.mark.parametrize(
    "value",
    [
        (None, True, -3, 1.5, -0.0, math.inf, math.nan, 1 + 2j, complex(math.nan, -0.0)),
        ("a'b", b"\0\xff", "xy" * 4000, b"abc" * 30 + b"a"),
        (BytesSpec(b"1", "structure"), Indexable(3), [1, (2,)], {"a": {1, 2}}),
        (),
    ],
)
def test_values_of_every_kind_come_back_to_the_bit(value):
    assert repr(made(value)) == repr(value)
    assert sum(map(len, example_text(value))) < 600


def test_what_no_text_makes_has_none():
    assert example_text(iter(())) is None
    assert example_text((object(),)) is None


def test_the_examples_of_every_law_have_a_text_unless_they_are_long(running_simulator):
    spec = max(default_registry().backends(), key=lambda one: one.auto_rank)
    harness = Harness(spec=spec, machine=SimulatedMachine(running_simulator))
    tried, written = Counter(), Counter()
    for law in catalogue().laws.values():

        def body(example, law=law):
            tried[law.id] += 1
            short = len(repr(example)) < 2500
            written[law.id] += example_text(example) is not None or not short

        for_examples(law.given(harness), 3, body)
    assert written == tried
