"""A process that was forked after CUDA was used has none: every way to launch there says so, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

import trunnion
from trunnion.errors import DriverError, LifecycleError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol

KERNEL = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1; }'
REMEDY = "start processes by spawn, or fork before CUDA is first used"


def program(most=1024):
    builder = ProgramBuilder("ones", DeviceCode("cuda", KERNEL))
    x = builder.input("x", "float32", (Symbol("n", max=most),), access="write")
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


OLD_KERNEL = """
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
int madvise(void *start, unsigned long nbytes, int advice) {
  if (advice != 18) return syscall(SYS_madvise, start, nbytes, advice);
  errno = EINVAL;
  return -1;
}
"""
"""A kernel of before 4.14, or a sandbox, which has no MADV_WIPEONFORK."""

CHILD = """
import gc, os, sys
from trunnion import sim
simulator = sim.start()
import torch, trunnion
from trunnion.codegen.cpp.loader import process_libraries
from trunnion.errors import LifecycleError

used, closed, gone = (trunnion.load(folder) for folder in sys.argv[1:])
x = simulator.tensor(torch.zeros(8))
for one in (used, closed, gone):
    one(x)
closed.close(), gone.close()
del one, gone
gc.collect()
process_libraries().unload()
again = trunnion.load(sys.argv[3])
again(x)
bound, said = used.bind(x), []
child = os.fork()
for way in (lambda: used(x), bound, lambda: again(x), lambda: closed(x)):
    try:
        way()
        said.append("done")
    except LifecycleError as error:
        said.append("forked" if "spawn" in str(error) else "closed")
if child == 0:
    print("child", *said, flush=True)
    used.close(), again.close()
    os._exit(0)
print(os.waitpid(child, 0)[1], *said)
used.close(), again.close()
"""


def test_where_the_kernel_wipes_no_memory_at_a_fork_the_child_does(tmp_path):
    (tmp_path / "old.c").write_text(OLD_KERNEL)
    old = tmp_path / "old.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", old, tmp_path / "old.c"], check=True)
    folders = []
    for size in (8, 16, 32):
        folders.append(tmp_path / str(size))
        trunnion.compile(program(size), "tvm_ffi").artifact.save(folders[-1])
    command = [sys.executable, "-W", "ignore", "-c", CHILD, *folders]
    done = subprocess.run(
        command, env={**os.environ, "LD_PRELOAD": str(old)}, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["child forked forked forked closed", "0 done done done closed"]
