"""The ways in: each makes the calls that it can say, and shows what the plain one shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from trunnion.contract.adapter import BoundLaunch
from trunnion.errors import ArgumentValueError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.registry import default_registry
from trunnion.sim.trace import Launched
from trunnion.testing.comparison import check_call
from trunnion.testing.harness import Harness, Sabotage
from trunnion.testing.laws import LawViolation
from trunnion.testing.machine import SimulatedMachine
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec
from trunnion.testing.ways import CALLS, LOADS, WAYS


@pytest.fixture
def scenario():
    p = ProgramBuilder("scale", DeviceCode("cuda", ""))
    x, k = p.input("x", "float32", (4,)), p.scalar("k", "float32")
    p.launch("scale", args=(x, k, p.output("y", "float32", (4,))), grid=1, block=4)
    tensor = TensorSpec(dtype="float32", shape=(4,), strides=(1,))
    return Scenario(p.build(), CallSpec(args=(tensor, 2.0)))


@pytest.fixture
def harness(simulator):
    backend = next(spec for spec in default_registry().backends() if spec.name == "nvrtc")
    return Harness(spec=backend, machine=SimulatedMachine(simulator))


@pytest.mark.parametrize("way", WAYS)
def test_a_plain_call_is_right_by_every_way_and_counted(harness, scenario, way):
    made: Counter[str] = Counter()
    with replace(harness, made=made).under("X1", way).loaded(scenario.program) as loaded:
        for first in (True, False):
            check_call(replace(harness, made=made).under("X1", way), scenario, loaded, first=first)
    assert made == {way: 1 if way in LOADS else 2}


def test_a_call_that_a_way_cannot_say_is_made_by_the_plain_one_and_does_not_count(harness, scenario):
    under = harness.under("X1", "capture")
    with under.loaded(scenario.program) as loaded:
        _, observed = under.call(loaded, scenario.call, stream=under.machine.new_stream(0))
    assert observed.launches
    assert not under.made["capture"]


def test_every_way_is_of_one_of_two_kinds():
    assert {*CALLS, *LOADS} == set(WAYS)
    assert set(CALLS) & set(LOADS) == {"call"}


@pytest.mark.parametrize("way", CALLS)
def test_a_wrong_call_is_refused_by_every_way(harness, scenario, way):
    wrong = replace(scenario.call, args=(replace(scenario.call.args[0], shape=(3,)), 2.0))
    under = harness.under("X1", way)
    with under.loaded(scenario.program) as loaded:
        _, observed = under.call(loaded, wrong)
    assert isinstance(observed.error, ArgumentValueError)
    assert not [event for event in observed.events if isinstance(event, Launched)]


def test_a_launch_that_does_not_keep_what_it_is_bound_to_is_seen(harness, scenario):
    class Forgetful:
        """Binds to tensors that it does not keep: what is launched later lies elsewhere."""

        def __init__(self, true):
            self._true = true

        def __getattr__(self, name):
            return getattr(self._true, name)

        def bind(self, args, **given):
            tensor, number = args

            def entry():
                return self._true.call((tensor.clone(), number), **given)

            return BoundLaunch(entry)

    bad = replace(harness, sabotage=Sabotage(loaded=Forgetful)).under("X1", "bind-dropped")
    with bad.loaded(scenario.program) as loaded, pytest.raises(LawViolation, match="parameter 0"):
        check_call(bad, scenario, loaded)
