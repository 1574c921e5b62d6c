"""Any program, any call of it, any mistake in a call: both backends deliver the same, and what the oracle says."""

from __future__ import annotations

from hypothesis import strategies as st
from twins.drawing import for_examples
from twins.twins import WAYS

from trunnion.testing.strategies import calls, mistakes_of_each_kind, programs

PROGRAMS, CALLS = 24, 4


@st.composite
def drawn(draw):
    program = draw(programs())
    good = [(draw(calls(program)), draw(st.sampled_from(WAYS))) for _ in range(CALLS)]
    return program, good, draw(mistakes_of_each_kind(program))


def test_programs(twins):
    counts = {"refused": 0, "launched": 0}

    def body(example):
        program, good, mistakes = example
        with twins.loaded(program) as pair:
            for call, way in good:
                pair.compare(call, way)
            for broken in mistakes:
                pair.compare(broken.call)
        counts["refused"] += pair.refused
        counts["launched"] += pair.launched

    for_examples(drawn(), PROGRAMS, body)
    assert min(counts.values()) > 2 * PROGRAMS, counts
