"""A difference between two backends, or between both and the oracle, is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from twins.twins import Twins

from trunnion.codegen.cpp.exprs import CPP
from trunnion.errors import ArgumentTypeError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Op, Symbol
from trunnion.sim.trace import Launched
from trunnion.testing.harness import Sabotage
from trunnion.testing.laws import LawViolation
from trunnion.testing.strategies import CallSpec


@pytest.fixture
def program():
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n", min=-100, max=100)
    builder.scalar("s", "int32", symbol=n)
    builder.launch("k", (n // 7, builder.scalar("f", "float32")), 1, 1)
    return builder.build()


CALL = CallSpec(args=(-8, 0.5), device=0)


def test_what_only_the_other_backend_would_notice(twins, program):
    def elsewhere(events):
        return tuple(
            replace(event, stream=event.stream + 1) if isinstance(event, Launched) else event
            for event in events
        )

    first, second = twins.harnesses
    broken = Twins((first, replace(second, sabotage=Sabotage(trace=elsewhere))))
    with twins.loaded(program) as pair:
        pair.compare(CALL)
    with broken.loaded(program) as pair, pytest.raises(AssertionError, match="launches"):
        pair.compare(CALL)


def test_division_that_truncates(twins, program, monkeypatch):
    monkeypatch.setitem(CPP.operations, Op.FLOORDIV, "({a} / {b})")
    with twins.loaded(program) as pair, pytest.raises(LawViolation, match="parameter 0"):
        pair.compare(CALL)


class OtherWords:
    """A program whose refusals have other words, and are of the same class."""

    def __init__(self, loaded):
        self.loaded, self.close = loaded, loaded.close

    def call(self, args, **said):
        try:
            return self.loaded.call(args, **said)
        except ArgumentTypeError as error:
            raise ArgumentTypeError(error.argument, "what it should not", error.expected) from error


def test_an_error_in_other_words(twins, program):
    first, second = twins.harnesses
    broken = Twins((first, replace(second, sabotage=Sabotage(loaded=OtherWords))))
    wrong = CallSpec(args=(-8, "half"), device=0)
    with twins.loaded(program) as pair:
        pair.compare(wrong)
    with broken.loaded(program) as pair, pytest.raises(AssertionError, match="what it should not"):
        pair.compare(wrong)
