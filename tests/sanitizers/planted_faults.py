"""Faults that are planted in what is generated, each run in a child of this process: a sanitizer must end every one.

`test_sanitizers` runs this as it runs `watched_calls`. It writes the status with which each child ended; what the
sanitizers said goes where errors go.
"""

from __future__ import annotations

import json
import os
import sys

import torch

import trunnion
from trunnion import sim
from trunnion.codegen.cpp import wrapper
from trunnion.codegen.cpp.exprs import CPP
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Op, Symbol
from trunnion.testing.harness import Harness
from trunnion.testing.machine import SimulatedMachine

CHECKS = "[[maybe_unused]] bool failed = false;\n"
# Where the address comes from, the compiler does not see: it would tell that the array is too small.
BEYOND = CHECKS + 'volatile char two[2] = {}; volatile char* at = two; asm("" : "+r"(at)); at[2] = 1;\n'
OVERFLOW = "({a} + {b})"
KERNEL = """#include <trunnion/block.h>
extern "C" void k(float* y, int64_t n, const trunnion_block_t*) { y[n] = 1; }
"""


def one_number():
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n")
    builder.scalar("s", "int64", symbol=n)
    builder.launch("k", (n + 1,), 1, 1)
    return builder.build()


def one_vector():
    builder = ProgramBuilder("p", DeviceCode("c++", KERNEL))
    n = Symbol("n")
    builder.launch("k", (builder.input("y", "float32", (n,), access="write"), n), 1, 1)
    return builder.build()


def artifacts(harness):
    """Return a launcher that writes beyond an array on the stack, and one whose sum may overflow."""
    emit, checked = wrapper.emit_launcher, CPP.checked[Op.ADD]
    wrapper.emit_launcher = lambda plan: emit(plan).replace(CHECKS, BEYOND, 1)
    stack = harness.build(one_number())
    wrapper.emit_launcher = emit
    CPP.checked[Op.ADD] = OVERFLOW
    overflow = harness.build(one_number())
    CPP.checked[Op.ADD] = checked
    return stack, overflow, harness.build(one_number())


def in_a_child(run):
    """Run a function in a child, and return its status; negative: the signal that ended it."""
    child = os.fork()
    if child == 0:
        run()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main():
    harness = Harness(
        spec=trunnion.default_registry().backend("tvm_ffi"), machine=SimulatedMachine(sim.start(devices=1))
    )
    stack, overflow, sound = artifacts(harness)
    trunnion.compile(one_vector(), "tvm_ffi").close()  # so that children find it built

    def called(artifact, number):
        return lambda: harness.load(artifact).call((number,), device=0)

    ends = {
        "sound": in_a_child(called(sound, 2**62)),
        "stack": in_a_child(called(stack, 2**62)),
        "overflow": in_a_child(called(overflow, 2**63 - 1)),
        "heap": in_a_child(lambda: trunnion.compile(one_vector(), "tvm_ffi")(torch.zeros(8))),
    }
    sys.stdout.write(json.dumps(ends))


if __name__ == "__main__":
    main()
