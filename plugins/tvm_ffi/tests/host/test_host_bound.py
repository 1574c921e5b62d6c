"""One bound launch on the CPU, from several threads and from within itself."""

from __future__ import annotations

import ctypes
import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.compiled import CompiledProgram

# Waits for `wanted` launches to be under way, but not for ever, and notes how many there were at most.
COUNT = """
#include <sched.h>
#include <trunnion/block.h>
extern "C" void count(int* inside, int* most, int wanted, float* scratch, float* total, const trunnion_block_t*) {
  const int now = __atomic_add_fetch(inside, 1, __ATOMIC_SEQ_CST);
  if (now > *most) *most = now;
  for (int step = 0; step < 1000; ++step) {
    scratch[0] += 1;
    if (__atomic_load_n(most, __ATOMIC_SEQ_CST) < wanted) sched_yield();
  }
  total[0] = scratch[0];
  __atomic_sub_fetch(inside, 1, __ATOMIC_SEQ_CST);
}
"""

CALL_BACK = """
#include <trunnion/block.h>
extern "C" void again(int* left, float* total, void (*call)(), const trunnion_block_t*) {
  if ((*left)-- > 0) call();
  total[0] += 1;
}
"""


@pytest.fixture(scope="module")
def count() -> Iterator[CompiledProgram]:
    p = ProgramBuilder("count", DeviceCode("c++", COUNT))
    inside, most = p.input("inside", "int32", (1,)), p.input("most", "int32", (1,))
    wanted, total = p.scalar("wanted", "int32"), p.output("total", "float32", (1,))
    scratch = p.workspace("scratch", "float32", (1,), zeroed=True)
    p.launch("count", (inside, most, wanted, scratch, total), 1, 1)
    with trunnion.compile(p.build(), target="cpu") as program:
        yield program


def in_threads(function: Any, times: int) -> list[Any]:
    """Call from four threads at once, and return what every call returned."""
    results: list[Any] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait(30)
        results.extend(function() for _ in range(times))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_launches_of_one_binding_take_turns(count: CompiledProgram) -> None:
    inside, most = torch.zeros(2, 1, dtype=torch.int32)
    bound = count.bind(inside, most, 2)
    assert in_threads(lambda: bound().item(), 10) == [1000] * 40
    assert (most.item(), inside.item()) == (1, 0)


def test_launches_of_two_bindings_do_not_wait_for_each_other(count: CompiledProgram) -> None:
    inside, most = torch.zeros(2, 1, dtype=torch.int32)
    bindings = itertools.cycle([count.bind(inside, most, 2) for _ in range(2)])
    for _ in range(100):  # until two threads truly ran at once
        assert in_threads(lambda: next(bindings)().item(), 1) == [1000] * 4
        if most.item() == 2:
            break
    assert (most.item(), inside.item()) == (2, 0)


def test_a_kernel_may_launch_its_own_binding() -> None:
    p = ProgramBuilder("again", DeviceCode("c++", CALL_BACK))
    left, total = p.input("left", "int32", (1,)), p.output("total", "float32", (1,), fill=0.0)
    p.launch("again", (left, total, p.pointer("call")), 1, 1)
    bindings: list[Any] = []
    call = ctypes.CFUNCTYPE(None)(lambda: bindings[0]())  # noqa: PLW0108 - what it launches is bound below
    with trunnion.compile(p.build(), target="cpu") as program:
        bindings.append(
            program.bind(torch.tensor([3], dtype=torch.int32), ctypes.cast(call, ctypes.c_void_p).value)
        )
        # Each of the three inner launches filled the output anew before it added its 1.
        assert bindings[0]().item() == 4
