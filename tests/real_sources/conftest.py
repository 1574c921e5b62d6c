"""Programs of other projects' sources, built once for each backend that takes CUDA C++."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from real_programs import convolution, cutlass_gemm, flash_attention, kittens_gemm, paged_decode
from real_programs.copies import none_at_all

import trunnion

COPIES = (
    convolution.COPY, paged_decode.COPY, kittens_gemm.COPY, cutlass_gemm.COPY, flash_attention.COPY,
    flash_attention.CUTLASS,
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    """Say once, instead of by an error of each test, that there is no copy at all."""
    if not all(Path(arg.partition("::")[0]).name == "test_copies.py" for arg in session.config.args):
        missing = none_at_all(COPIES)
        if missing:
            raise pytest.UsageError(missing)


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
