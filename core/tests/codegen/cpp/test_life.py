"""Threads that wait for each other by two programs' locks go on: one of them is told."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from trunnion import turns
from trunnion.codegen.cpp.build import build_launcher, runtime_folder
from trunnion.codegen.cpp.call_signature import CallSignature
from trunnion.codegen.cpp.emitter import emit_launcher
from trunnion.codegen.cpp.program import CppProgram
from trunnion.errors import LifecycleError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol
from trunnion.model.program import DeviceCode
from trunnion.testing.machine import synthetic_image

LEAST_PATIENCE = 300  # seconds
IMPATIENT = ("-DTRUNNION_PATIENCE_SECONDS=1",)


def program(count: int):
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (count,))
    p.launch("k", (x,), 1, 32)
    return p.build()


def asking():
    """Return a program that asks for more shared memory in a call that is under way, and allocates."""
    p = ProgramBuilder("asking", DeviceCode("cuda", "//"))
    n = Symbol("n", max=1000)
    x, y = p.input("x", "float32", (n,)), p.output("y", "float32", (n,))
    p.launch("k", (x, y), 1, 32, dynamic_smem_bytes=16 * n)
    return p.build()


def loaded(subject, simulator, folder):
    """Build and load a program whose threads wait for a second."""
    folder.mkdir()
    image = synthetic_image(subject)
    symbols = [kernel.symbol for kernel in image.kernels]
    text = emit_launcher(subject.plan())
    data = build_launcher(text, image, symbols, folder, plugin="test", options=IMPATIENT)
    return CppProgram(data, CallSignature.of(subject.plan()), simulator.runtime, "test")


@pytest.fixture
def two(simulator, tmp_path):
    """Return two programs whose threads wait for a second, and a tensor for each."""
    made = [loaded(program(count), simulator, tmp_path / str(count)) for count in (8, 9)]
    with simulator.torch_mode():
        yield [(one, torch.zeros(count, device="cuda:0")) for one, count in zip(made, (8, 9), strict=True)]
        for one in made:
            one.close()


def crossed(simulator, call, works):
    """Have two threads do a piece of work each, and within a driver's call of it the other's; return what is said."""
    both, here = threading.Barrier(2), threading.local()

    def interrupted(proceed, *given):
        number, here.number = getattr(here, "number", None), None
        if number is not None:
            both.wait(60)
            here.said = attempted(works[1 - number])
        proceed(*given)

    def work(number: int) -> set[str]:
        with simulator.torch_mode():
            here.number = number
            return {attempted(works[number]), here.said}

    with simulator.intercept(call, interrupted), ThreadPoolExecutor(2) as pool:
        done = [pool.submit(work, number) for number in range(2)]
        return set().union(*(one.result(60) for one in done))


def attempted(work) -> str:
    try:
        work()
    except LifecycleError as error:
        return str(error)
    return "done"


def test_first_calls_that_wait_for_each_other_end(simulator, two):
    works = [lambda one=one, x=x: one.entry(x) for one, x in two]
    said = crossed(simulator, "cuDevicePrimaryCtxRetain", works)
    assert any("by another thread, for so long that it may wait for this one" in one for one in said), said
    for work in works:
        work()


def test_closes_that_wait_for_each_other_end(simulator, two):
    for one, x in two:
        one.entry(x)
    said = crossed(simulator, "cuLibraryUnload", [one.close for one, _ in two])
    assert any("the program is being closed by another thread" in one for one in said), said


def waited_for(simulator, call, first, second):
    """Have a thread wait for what another one does within a driver's call; return what is said of both.

    That one runs Python meanwhile, as a driver that is simulated does, and a hook.
    """
    met, here = threading.Event(), threading.local()

    def slow(proceed, *given):
        if getattr(here, "first", False):
            here.first = False
            met.set()
            for _ in range(20):
                time.sleep(0.01)  # which gives Python's lock up, and wants it back
        proceed(*given)

    def work(*, mine: bool) -> str:
        with simulator.torch_mode():
            here.first = mine
            if not mine:
                assert met.wait(60)
            return attempted(first if mine else second)

    with simulator.intercept(call, slow), ThreadPoolExecutor(2) as pool:
        done = [pool.submit(work, mine=mine) for mine in (True, False)]
        return {one.result(60) for one in done}


@pytest.mark.parametrize("way", ["entry", "call", "bind", "preload"])
def test_who_waits_for_a_first_call_lets_it_run_python(simulator, two, way):
    (one, x), _ = two
    ways = {
        "entry": lambda: one.entry(x),
        "call": lambda: one.call((x,)),
        "bind": lambda: one.bind((x,)),
        "preload": lambda: one.preload(0),
    }
    assert waited_for(simulator, "cuDevicePrimaryCtxRetain", lambda: one.entry(x), ways[way]) == {"done"}


def test_who_waits_within_a_call_lets_the_other_run_python(simulator, tmp_path):
    one = loaded(asking(), simulator, tmp_path / "asking")
    with simulator.torch_mode():
        small, large, largest = (torch.zeros(count, device="cuda:0") for count in (8, 100, 1000))
        one.entry(small)
        calls = [lambda: one.entry(large), lambda: one.entry(largest)]
        assert waited_for(simulator, "cuKernelSetAttribute", *calls) == {"done"}
        one.close()


def test_threads_wait_long_for_one_another_in_either_language():
    """A first load may take minutes where a device is busy, and no law waits so long."""
    header = (runtime_folder() / "trunnion" / "life.hpp").read_text("utf-8")
    (seconds,) = re.findall(r"^#define TRUNNION_PATIENCE_SECONDS (\d+)$", header, re.MULTILINE)
    assert int(seconds) == turns._PATIENCE >= LEAST_PATIENCE
