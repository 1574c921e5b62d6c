"""The first use of a library that ``cuda.bindings`` looks for in Python, under a lock of its own: interrupted there."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings

import pytest

from trunnion.errors import LifecycleError
from trunnion_nvrtc.compiler.first_use import FirstUse


def test_what_interrupts_the_first_use_is_told_and_waits_for_nothing() -> None:
    first = FirstUse("NVRTC")

    def call() -> str:
        with pytest.raises(LifecycleError, match="NVRTC is being looked for"):
            first.run(list)
        return "done"

    assert first.run(call) == "done"
    assert first.run(lambda: 1) == 1


def test_a_child_that_is_forked_within_the_first_use_of_another_thread_is_told() -> None:
    first, begun, over = FirstUse("NVRTC"), threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        over.wait(60)

    thread = threading.Thread(target=first.run, args=(call,))
    thread.start()
    begun.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            first.run(list)
        except LifecycleError:
            os._exit(3)
        finally:
            os._exit(4)
    over.set()
    thread.join(60)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert first.run(lambda: 1) == 1


INTERRUPTED = """
import importlib, os, signal, sys
import cuda.pathfinder
from trunnion.errors import LifecycleError

module, who = sys.argv[1:]
library = importlib.import_module(f"trunnion_nvrtc.compiler.{module}")
find = cuda.pathfinder.load_nvidia_dynamic_lib

def ask():
    signal.alarm(60)  # no process is left that hangs
    try:
        print(library.version())
    except LifecycleError as error:
        print(error)
    sys.stdout.flush()

def interrupted(name):
    cuda.pathfinder.load_nvidia_dynamic_lib = find
    if who == "handler":
        ask()
    elif os.fork() == 0:
        ask()
        os._exit(0)
    else:
        os.wait()
    return find(name)

cuda.pathfinder.load_nvidia_dynamic_lib = interrupted
ask()
"""


@pytest.mark.parametrize("who", ["handler", "child"])
@pytest.mark.parametrize(("module", "library"), [("nvrtc", "NVRTC"), ("linker", "nvJitLink")])
def test_whoever_comes_while_a_library_is_looked_for_is_told(module: str, library: str, who: str) -> None:
    """Through all of the layers: the library is not said to be missing, and the first use goes on."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, who],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    told, version = done.stdout.splitlines()
    assert f"{library} is being looked for" in told
    assert version.startswith("(13, ")
