"""The report of a red law: what arrived, what was expected, which error was due, and a program that shows it again."""

from __future__ import annotations

import itertools
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import strategies as st

from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.registry import default_registry
from trunnion.sim.trace import Launched
from trunnion.testing import runner, search
from trunnion.testing.harness import Harness, Sabotage
from trunnion.testing.laws import LawViolation, catalogue, law
from trunnion.testing.machine import SimulatedMachine
from trunnion.testing.observed import Seen
from trunnion.testing.saboteurs import SABOTEURS
from trunnion.testing.search import Counterexample
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec
from trunnion.testing.violation_report import replay_program, violation_report

FAULTY = Path(__file__).parents[1] / "faulty_backend"
AGAIN = "seed=1, examples=3, thorough=False, shrink=False"


def scenario():
    p = ProgramBuilder("scale", DeviceCode("cuda", ""))
    x = p.input("x", "float32", (4,))
    p.launch("scale", args=(x,), grid=2, block=4, priority=0)
    return Scenario(p.build(), CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),)))


@pytest.fixture
def run(forked_python, tmp_path):
    """Return a function that runs a program, which finds the backend that is wrong."""
    path = os.pathsep.join([str(FAULTY), *(entry for entry in sys.path if entry)])
    return lambda program: forked_python(program, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})


@pytest.mark.parametrize("way", ["call", "bind-again"])
def test_the_program_shows_the_violation_again_and_only_on_that_backend(run, way):
    found = Counterexample(way, scenario(), LawViolation("L9", "red"))
    done = run(replay_program("L9", "faulty", found, AGAIN))
    assert done.returncode == 1
    assert "LawViolation: L9: launch 0: priority is (), expected (0,)" in done.stderr
    done = run(replay_program("L9", "nvrtc", found, AGAIN))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "L9 held on this example\n"


def test_what_no_text_makes_is_drawn_again(run):
    program = replay_program(
        "L9", "faulty", Counterexample("call", object(), LawViolation("L9", "red")), AGAIN
    )
    assert AGAIN in program
    assert len(program.splitlines()) < 6
    done = run(program)
    assert done.returncode == 1
    assert "LawViolation: L9: launch " in done.stderr


@pytest.mark.parametrize("tier", ["cpu", "gpu"])
def test_the_program_names_a_tier_of_its_own(tier):
    for example in (scenario(), object()):
        found = Counterexample("call", example, LawViolation("L1", "red"))
        assert f"'acme', tier='{tier}')" in replay_program("L1", "acme", found, AGAIN, tier).replace(
            "'L1', example, way='call', ", ""
        )


@pytest.fixture
def report(simulator):
    """Return a function that checks a law under a planted mistake, and returns the report."""

    def reported(example, **mistake):
        spec = default_registry().backend("nvrtc")
        harness = Harness(spec=spec, machine=SimulatedMachine(simulator), sabotage=Sabotage(**mistake))
        law = catalogue()["L1"]
        with pytest.raises(LawViolation) as caught:
            law.replay(harness, example)
        found = Counterexample("call", example, caught.value, tuple(harness.seen))
        return violation_report(law, "nvrtc", caught.value, found, AGAIN)

    return reported


def _wider(events):
    return tuple(replace(one, grid=(3, 1, 1)) if isinstance(one, Launched) else one for one in events)


def test_what_arrived_stands_beside_what_was_expected(report):
    text = report(scenario(), trace=_wider)
    lines = text.splitlines()
    assert lines[0] == "L1 on nvrtc, by way of call: launch 0: grid is (3, 1, 1), expected (2, 1, 1)"
    assert lines[1].startswith("the law:   A launch of contiguous tensors")
    assert lines[2].startswith("arrived:   kernel_0, grid (3, 1, 1), block (4, 1, 1): ")
    assert lines[3] == "expected:  kernel_0, grid (2, 1, 1), block (4, 1, 1): the address of 'x'"
    assert lines[4] == "error due: none"
    assert len(text) < 1500


def test_the_error_that_was_due_is_named(report):
    (tensor,) = scenario().call.args
    wrong = replace(scenario(), call=CallSpec(args=(replace(tensor, shape=(5,)),)))
    text = report(wrong, emitted=lambda plan: replace(plan, checks=()))
    assert "arrived:   kernel_0, grid (2, 1, 1)" in text
    assert "expected:  no launch\nerror due: ArgumentValueError: " in text


@pytest.mark.parametrize("mistake", ["drop-checks", "first-to-blame", "swallow-refusals", "nameless-errors"])
def test_of_many_mistakes_in_a_call_the_program_makes_the_one(simulator, monkeypatch, mistake):
    monkeypatch.setattr(search, "_SHRINKING", 5.0)
    monkeypatch.setattr(search, "_ALONE", 20.0)
    spec = default_registry().backend("nvrtc")
    harness = SABOTEURS[mistake].apply(Harness(spec=spec, machine=SimulatedMachine(simulator)))
    with pytest.raises(LawViolation) as caught:
        catalogue()["A1"].check(harness)
    _, program = caught.value.report.split("This program shows it again:\n")
    assert program.count("Breakage(") <= 2
    monkeypatch.setattr(runner, "harness_of", lambda *_, **__: harness)
    with pytest.raises(LawViolation) as again:
        exec(program, {})
    assert again.value.message == caught.value.message


def test_a_search_ends_within_an_example_that_makes_many_calls(simulator, monkeypatch):
    """Each look at the clock takes a second."""
    monkeypatch.setattr(search, "monotonic", itertools.count().__next__)
    spec, looks = default_registry().backend("nvrtc"), []
    harness = Harness(spec=spec, machine=SimulatedMachine(simulator), sabotage=Sabotage(trace=_wider))

    @law("X1", given=lambda _: st.just(scenario()))
    def repeated(harness, example):
        """Many calls are right."""
        with harness.loaded(example.program) as loaded:
            for _ in range(100):
                _, observed = harness.call(loaded, example.call)
                looks.append(observed)
        harness.require(observed.launches[0].grid == (2, 1, 1), "it is wider")

    with pytest.raises(LawViolation, match="it is wider"):
        repeated.check(harness)
    assert 100 < len(looks) < 150


def reported(error, *, seen=()):
    found = Counterexample("call", scenario(), error, seen)
    violation = LawViolation("X1", "left: kernel_3" + "_" * 64 + " in kernel_12")
    violation.__cause__ = error
    return violation_report(catalogue()["L9"], "acme", violation, found, AGAIN)


def test_what_says_nothing_is_left_out():
    error = ValueError("odd")
    error.add_note("Failing test case: check_one(way='call', example=Scenario(program=KernelProgram(...)))")
    error.add_note("a note of the backend's own")
    text = reported(error)
    assert text.startswith("X1 on acme, by way of call: left: kernel_3 in kernel_12\n")
    assert "Failing test case" not in text
    assert "ValueError: odd\na note of the backend's own\n" in text


def test_a_call_of_another_program_is_not_compared_with_the_examples():
    """What a law asks beside its examples may be the last call before it is broken."""
    example = scenario()
    seen = Seen(example.call.imagined(), (), "")
    own = replace(seen, program=example.program)
    other = replace(seen, program=replace(example.program, name="other"))
    for one, compared in ((seen, True), (own, True), (other, False)):
        assert ("error due: none" in reported(ValueError("odd"), seen=(one,))) is compared
