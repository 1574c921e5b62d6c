"""What is said of a trace."""

from __future__ import annotations

from trunnion.cli.traced import trace_document
from trunnion.sim.status import Status
from trunnion.sim.trace import CallRefused, LibraryUnloaded


def test_only_a_want_of_a_context_before_something_done_was_answered() -> None:
    no_context = CallRefused("cuMemsetD8Async", Status.INVALID_CONTEXT, "no context")
    question = CallRefused("cuCtxGetDevice", Status.INVALID_CONTEXT, "no context")
    wrong = CallRefused("cuLaunchKernelEx", Status.INVALID_VALUE, "wrong")
    document = trace_document([no_context, wrong, LibraryUnloaded(1), no_context, question])
    assert [row["answered"] for row in document["refused"]] == [True, False, False, True]
    assert document["counts"] == {"CallRefused": 4, "LibraryUnloaded": 1}
