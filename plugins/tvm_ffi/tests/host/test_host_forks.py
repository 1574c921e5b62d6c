"""Programs for the CPU in forked children."""

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
thread = threading.Thread(target=program.entry, args=(said,))
thread.start()
while not said[0].item():
    os.sched_yield()
child = os.fork()
if child == 0:
    signal.alarm(30)
    program.entry(torch.tensor([0, 1, 0], dtype=torch.int32))
    program.close()
    os._exit(7)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
said[1] = 1
thread.join()
program.entry(said)
program.close()
print(status, said.tolist())
"""


def test_a_child_waits_for_no_thread_that_it_has_not() -> None:
    script = SCRIPT.format(path=sys.path)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "7 [1, 1, 2]\n", done.stderr
