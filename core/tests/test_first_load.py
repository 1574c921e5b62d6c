"""What meets a program's first load: it launches, or is told what to do, and nothing hangs.

Each test runs in a process of its own: a mistake here is a process that never ends.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tests" / "stress" / "first_load.py"
_SECONDS = 120

HEAD = """
import sys, faulthandler
faulthandler.dump_traceback_later(60, exit=True)
import torch, trunnion
from trunnion.errors import LifecycleError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
builder = ProgramBuilder("ones", DeviceCode("cuda", 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1; }'))
x = builder.input("x", "float32", (8,), access="write")
builder.launch("k", (x,), 1, 8)
simulator = trunnion.sim.start()
said = []
def attempt(do):
    try:
        do()
        said.append("done")
    except LifecycleError as error:
        said.append(str(error))
with simulator.torch_mode():
    x = torch.zeros(8, device="cuda:0")
    program = trunnion.compile(builder.build(), sys.argv[1], target="sm_90")
"""

NESTED = """
    def again(proceed, *given):
        if not said:
            said.append("first")
            attempt(lambda: program(x))
        proceed(*given)
    with simulator.intercept(sys.argv[2], again):
        program(x)
    program(x)
    program.close()
print(said)
assert said[1] == "done" or "further up in this thread" in said[1], said
"""

CLOSED = """
    def closing(proceed, *given):
        program.close()
        proceed(*given)
    with simulator.intercept("cuLibraryLoadData", closing):
        attempt(lambda: program(x))
    attempt(lambda: program(x))
    unloaded = [event for event in simulator.trace if type(event).__name__ == "LibraryUnloaded"]
print(said, unloaded)
assert all("was closed" in one for one in said) and len(said) == 2
"""

CLOSED_TWICE = """
    program(x)
    def closing(proceed, *given):
        program.close()
        proceed(*given)
    with simulator.intercept("cuLibraryUnload", closing):
        program.close()
    attempt(lambda: program(x))
assert "was closed" in said[0]
"""

BUILT = """
import faulthandler, os, subprocess, sys, threading, warnings
faulthandler.dump_traceback_later(100, exit=True)
warnings.simplefilter("error")
from pathlib import Path
import torch, trunnion
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
text = '#include <trunnion/block.h>\\nextern "C" void k(float* x, const trunnion_block_t*) { x[0] = 5; }'
builder = ProgramBuilder("five", DeviceCode("c++", text))
x = builder.input("x", "float32", (1,), access="write")
builder.launch("k", (x,), 1, 1)
program, how, cache = builder.build(), *sys.argv[1:]

def compiled():
    x = torch.zeros(1)
    trunnion.compile(program, cache=cache)(x)
    return x.item()

def forked():
    warnings.simplefilter("ignore", DeprecationWarning)  # that there are threads
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if compiled() == 5 else 1)
        finally:
            os._exit(9)
    return 5 if os.waitpid(child, 0)[1] == 0 else 0

class InChild(BaseException):
    pass

def leaving():
    child = os.fork()
    if child == 0:
        raise InChild
    return 5 if os.waitpid(child, 0)[1] == 0 else 0

communicate, inner, locks = subprocess.Popen.communicate, [], Path(cache, "locks")
def interrupted(process, *given, **named):
    if "-o" in process.args and None not in inner and locks.exists() and any(locks.iterdir()):
        inner.append(None)
        result = {"again": compiled, "fork": forked, "leave": leaving}[how]()
        inner[-1] = result
    return communicate(process, *given, **named)
subprocess.Popen.communicate = interrupted
try:
    assert compiled() == 5
except InChild:
    os._exit(0)
assert compiled() == 5
assert {*inner} == {5} and len(inner) > 1, inner
left = [path.name for folder in ("locks", "staging") for path in Path(cache, folder).iterdir()]
assert not left, left
"""


def ran(text: str, *arguments: str, head: str = HEAD) -> None:
    command = [sys.executable, "-c", head + text, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
@pytest.mark.parametrize("call", ["cuLibraryLoadData", "cuDevicePrimaryCtxRetain", "cuLaunchKernelEx"])
def test_a_call_in_the_middle_of_the_first_one_comes_back(backend: str, call: str) -> None:
    """As a finalizer's, or that of a signal's handler."""
    ran(NESTED, backend, call)


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi"])
@pytest.mark.parametrize("text", [CLOSED, CLOSED_TWICE], ids=["loading", "closing"])
def test_a_close_in_the_middle_comes_back(backend: str, text: str) -> None:
    ran(text, backend)


@pytest.mark.parametrize("how", ["again", "fork", "leave"])
def test_what_interrupts_the_compiler_may_compile_the_same_program_or_fork(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would wait for itself, by the locks of all that is kept; and a child takes nothing from its parent."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    ran(BUILT, how, str(tmp_path / "store"), head="")


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi:cpu"])
def test_some_rounds_of_everything_at_once(backend: str) -> None:
    """``make stress`` does a thousand for each backend."""
    command = [sys.executable, str(SCRIPT), backend, "8", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["main launched"] > 0


@pytest.mark.parametrize("lazy", [False, True])
def test_a_named_backend_and_compiler_import_no_other_plugin(lazy: bool) -> None:
    text = f"""
import sys, trunnion
from importlib.metadata import EntryPoint
from trunnion.registry import Registry
names = ("nvrtc", "cutedsl")
points = [EntryPoint(name, f"trunnion_{{name}}.hooks", "trunnion") for name in names]
registry = Registry([*points, EntryPoint("poison", "no_module_of_that_name", "trunnion")])
asked = []
load = EntryPoint.load
EntryPoint.load = lambda point: (asked.append(point.name), load(point))[1]
from trunnion import examples
program = examples.load("vector_add").program
target = None if {lazy} else "sm_90"
made = trunnion.compile(program, "cutedsl", compiler="nvrtc", target=target, lazy={lazy}, registry=registry)
made.host_source if not {lazy} else repr(made)
assert sorted(set(asked)) == ["cutedsl", "nvrtc"], asked
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    assert done.returncode == 0, done.stderr
