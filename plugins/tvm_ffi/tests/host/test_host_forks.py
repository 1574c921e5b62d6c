"""Programs for the CPU in forked children: a thread of the parent is in a launch when the child comes to be."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = r"""
import os, signal, sys, threading
sys.path[:0] = {path!r}
import torch, trunnion
from trunnion import DeviceCode, ProgramBuilder

p = ProgramBuilder("wait", DeviceCode("c++", '''
#include <sched.h>
#include <trunnion/block.h>
extern "C" void wait(int* said, const trunnion_block_t*) {{
  __atomic_store_n(&said[0], 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&said[1], __ATOMIC_SEQ_CST) == 0) sched_yield();
  said[2] += 1;
}}
'''))
p.launch("wait", (p.input("said", "int32", (3,)),), 1, 1)
program = trunnion.compile(p.build(), target="cpu")
said = torch.zeros(3, dtype=torch.int32)
launch = {launch}
thread = threading.Thread(target=launch)
thread.start()
while not said[0].item():
    os.sched_yield()
child = os.fork()
if child == 0:
    signal.alarm(30)
    said[1] = 1
    launch()
    {child}
    os._exit(said[2].item())
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
said[1] = 1
thread.join()
launch()
program.close()
print(status, said.tolist())
"""


def forked(launch: str, child: str) -> str:
    """Return what a parent says of its child's exit status, and of the memory that its own two launches wrote.

    Parameters
    ----------
    launch
        The expression of what both launch, of ``program`` and ``said``.
    child
        What the child does after its launch.
    """
    script = SCRIPT.format(path=sys.path, launch=launch, child=child)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return done.stdout or done.stderr


def test_a_child_waits_for_no_thread_that_it_has_not() -> None:
    assert forked("lambda: program.entry(said)", "program.close()") == "1 [1, 1, 2]\n"


def test_a_child_takes_turns_with_no_thread_that_it_has_not() -> None:
    assert forked("program.bind(said)", "launch()") == "2 [1, 1, 2]\n"
