"""Any program, any call of it, any mistake in a call: both backends deliver the same, and what the oracle says."""

from __future__ import annotations

from hypothesis import strategies as st
from twins.twins import WAYS

from trunnion.testing.draws import for_examples
from trunnion.testing.strategies import calls, mistakes_of_each_kind, programs

PROGRAMS, OF_EVERY_BACKEND, CALLS = 24, 4, 4


@st.composite
def drawn(draw):
    program = draw(programs())
    good = [(draw(calls(program)), draw(st.sampled_from(WAYS))) for _ in range(CALLS)]
    return program, good, draw(mistakes_of_each_kind(program))


def compared(backends, count):
    """Compare drawn programs; return how many calls were refused, and how many launched."""
    counts = {"refused": 0, "launched": 0}

    def body(example):
        program, good, mistakes = example
        with backends.loaded(program) as pair:
            for call, way in good:
                pair.compare(call, way)
            for broken in mistakes:
                if not broken.kind.endswith("storage"):  # which may be asked where the address is new alone
                    pair.compare(broken.call)
        counts["refused"] += pair.refused
        counts["launched"] += pair.launched

    for_examples(drawn(), count, body)
    return counts


def test_programs(twins):
    assert min(compared(twins, PROGRAMS).values()) > 2 * PROGRAMS


def test_a_few_programs_through_every_backend(every_backend):
    """What is found by comparing two would be found in all that render the same plans; these are for the rest."""
    assert {harness.name for harness in every_backend.harnesses} >= {"cutedsl", "nvrtc", "tvm_ffi"}
    assert min(compared(every_backend, OF_EVERY_BACKEND).values()) > OF_EVERY_BACKEND
