"""What is allocated on the CPU is noted, by whatever way, and what is written to it is seen."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder
from trunnion.testing.host_machine import HostMachine
from trunnion.testing.host_memory import WatchedRuntime
from trunnion.testing.machine import USED

ALL_USED = bytes((USED,))


@pytest.fixture
def memory():
    found = HostMachine()._memory
    found.reset()
    return found


def held(memory, address):
    return next((one.data for one in memory.seen() if one.address == address), None)


def test_a_machine_s_tensors_are_seen_for_as_long_as_they_live(memory):
    tensor = memory.empty(8)
    address, part = tensor.data_ptr(), tensor[4:]
    del tensor
    part[0] = 7
    assert held(memory, address) == 4 * ALL_USED + b"\7" + 3 * ALL_USED
    memory.reset()
    assert held(memory, address) == 8 * ALL_USED
    del part
    assert held(memory, address) is None


def test_what_a_runtime_allocates_is_noted(memory):
    runtime = WatchedRuntime(memory)
    made = runtime.allocate((2, 3), torch.int16, 0, 0)
    empty = runtime.allocate((0,), torch.uint8, 0, 0)
    dropped = runtime.allocate((5,), torch.uint8, 0, 0)
    assert [one.nbytes for one in memory.allocated] == [12, 0, 5]
    assert held(memory, made.data_ptr()) == 12 * ALL_USED
    del dropped
    memory.forget_dropped()
    assert [one.nbytes for one in memory.allocated] == [12, 0]
    assert empty.numel() == 0
    assert runtime.quick_allocator() is None


def _program():
    p = ProgramBuilder(
        "p", DeviceCode("c++", "#include <trunnion/block.h>\nvoid k(char*, const trunnion_block_t*) {}")
    )
    p.input("x", "float32", (4,))
    y = p.output("y", "uint8", (6,), alignment=1 << 16)
    p.launch("k", args=(y,), grid=1, block=1)
    return p.build()


def test_what_native_code_allocates_is_noted_until_it_is_deleted(memory):
    x = torch.zeros(4)
    with trunnion.compile(_program(), target="cpu") as program:
        program(x)
        assert memory.allocated == [], "nobody is watching"
        with memory.watching():
            y = program(x)
        memory.forget_dropped()  # the first try, unless it was aligned
        (made,) = memory.allocated
        assert made.address <= y.data_ptr() <= made.address + made.nbytes - 6
        assert ctypes.string_at(y.data_ptr(), 6) == 6 * ALL_USED
        program(x)
        assert len(memory.allocated) == 1
        address = made.address
        del y
        assert held(memory, address) is None


def test_what_is_still_there_at_the_end_of_a_process_ends_well():
    code = f"""
import torch, sys
sys.path.insert(0, {str(__file__.rpartition("/")[0])!r})
from test_host_memory import *
from test_host_memory import _program
memory = HostMachine()._memory
program = trunnion.compile(_program(), target="cpu")
with memory.watching():
    torch.kept = program(torch.zeros(4))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
