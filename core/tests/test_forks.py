"""A process that was forked after CUDA was used has none: every way to launch there says so, and what to do."""

from __future__ import annotations

import os

import pytest
import torch

import trunnion
from trunnion.errors import DriverError, LifecycleError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol

KERNEL = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1; }'
REMEDY = "start processes by spawn, or fork before CUDA is first used"


def program():
    builder = ProgramBuilder("ones", DeviceCode("cuda", KERNEL))
    x = builder.input("x", "float32", (Symbol("n", max=1024),), access="write")
    builder.launch("k", (x,), 1, x.shape[0])
    return builder.build()


def refusals(kind, ways):
    """Return how many ways end in an error of a kind that says what to do."""
    count = 0
    for way in ways:
        try:
            way()
        except kind as error:
            count += REMEDY in str(error)
    return count


@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # forking beside threads is what is tested
@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi"])
def test_a_forked_child_is_told_what_to_do(backend, simulator):
    with simulator.torch_mode(), trunnion.compile(program(), backend) as used:
        x = torch.zeros(8, device="cuda:0")
        used(x)
        bound = used.bind(x)
        child = os.fork()
        if child == 0:  # no assertion may leave the child, which would go on as the test run
            try:
                old = refusals(LifecycleError, (lambda: used(x), lambda: used.entry(x), bound))
                again = trunnion.CompiledProgram.from_artifact(used.artifact)
                new = refusals(DriverError, (lambda: again(x), lambda: again.preload(0)))
                os._exit(0 if (old, new) == (3, 2) else 10 * old + new)
            finally:
                os._exit(99)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        used(x)
