"""Programs of other projects' sources, built once for each backend that takes CUDA C++."""

from __future__ import annotations

import functools

import pytest

import trunnion


@functools.cache
def described(subject):
    """Return a subject's program; layouts are measured when it is described, which takes a compilation."""
    return subject.program()


@pytest.fixture(scope="module", params=["nvrtc", "tvm_ffi", "cutedsl"])
def built(request, running_simulator):
    """Yield the program of the module's ``SUBJECT``, compiled.

    The build has compared the parameters with the image's own table. A copy that is missing is an error, no skip.
    """
    with trunnion.compile(described(request.module.SUBJECT), request.param) as program:
        yield program


@pytest.fixture
def launched(built, simulator):
    """Return a function that calls the program with a shape's arguments, and returns these and what was launched."""

    def call(subject, shape):
        given = subject.arguments(shape, "cuda")
        simulator.clear_trace()
        result = built(*given)
        events = [event for event in simulator.trace if isinstance(event, trunnion.sim.trace.Launched)]
        return given, result, events

    with simulator.torch_mode():
        yield call
