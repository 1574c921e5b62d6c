"""What is said of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion import examples
from trunnion.cli.launched import Reading
from trunnion.cli.run import _show_trace
from trunnion.cli.traced import trace_document
from trunnion.sim.status import Status
from trunnion.sim.trace import CallRefused, LibraryUnloaded

if TYPE_CHECKING:
    import pytest


def test_only_a_want_of_a_context_before_something_done_was_answered() -> None:
    no_context = CallRefused("cuMemsetD8Async", Status.INVALID_CONTEXT, "no context")
    question = CallRefused("cuCtxGetDevice", Status.INVALID_CONTEXT, "no context")
    wrong = CallRefused("cuLaunchKernelEx", Status.INVALID_VALUE, "wrong")
    reading = Reading(examples.load("vector_add").program.plan(), ["vector_add"])
    document = trace_document([no_context, wrong, LibraryUnloaded(1), no_context, question], reading)
    assert [row["answered"] for row in document["refused"]] == [True, False, False, True]
    assert document["counts"] == {"CallRefused": 4, "LibraryUnloaded": 1}


def test_a_refusal_that_nobody_answered_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    trace = {
        "counts": {"CallRefused": 2, "Launched": 1},
        "refused": [
            {"call": "cuA", "status": "INVALID_CONTEXT", "reason": "no context", "answered": True},
            {"call": "cuB", "status": "INVALID_VALUE", "reason": "wrong", "answered": False},
        ],
    }
    _show_trace(trace)
    head, *counts, said = capsys.readouterr().out.splitlines()
    assert (head, [line.split() for line in counts]) == ("trace", [["CallRefused", "1"], ["Launched", "1"]])
    assert said == "  cuB was refused: INVALID_VALUE: wrong"
