"""An interrupt wherever one may strike in a launcher: the next call delivers just what it is given."""

from __future__ import annotations

import contextlib

import pytest
import torch

import trunnion
from trunnion.sim.tensormap import decode
from trunnion.sim.trace import Launched
from trunnion.testing.interruption import interrupting, is_of_backend

SOURCE = """
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
extern "C" __global__ void k(const float* x, float* y, long long n, const __grid_constant__ CUtensorMap map) {}
"""


@pytest.fixture
def program(simulator):
    n = trunnion.Symbol("n", max=10_000)
    p = trunnion.ProgramBuilder("p", trunnion.DeviceCode("cuda", SOURCE, target="sm_90a"))
    x = p.input("x", "float32", (n,), alignment=16)
    y = p.output("y", "float32", (n,))
    p.launch("k", args=(x, y, n, x.tiled((4,))), grid=n, block=32, window=x.window())
    with simulator.torch_mode(), trunnion.compile(p.build(), backend="nvrtc") as compiled:
        yield compiled


def interrupt(name, place, call):
    """Interrupt the launcher's function of that name at a place, counted from 1; return whether it came so far."""

    def of_launcher(frame):
        return (frame.f_code.co_filename, frame.f_code.co_name) == ("<launcher.py>", name)

    with contextlib.suppress(KeyboardInterrupt), interrupting(of_launcher, place) as interruption:
        call()
    return interruption.struck


def delivered(simulator, call):
    simulator.clear_trace()
    call()
    (launch,) = [event for event in simulator.trace if isinstance(event, Launched)]
    return launch


@pytest.mark.parametrize("worded", [False, True])
def test_nothing_of_an_interrupted_call_is_left(simulator, program, worded):
    small, large = torch.zeros(8, device="cuda"), torch.zeros(16, device="cuda")
    other = simulator.new_stream()
    out = torch.zeros(8, device="cuda")
    if not worded:
        again, broken = (lambda: program.entry(small)), (lambda: program.entry(large))
    else:
        again, broken = (lambda: program(small, out=out)), (lambda: program(large, stream=other))
    stream = delivered(simulator, again).stream
    before = 1
    while interrupt("entry", before, broken):
        launch = delivered(simulator, again)
        assert launch.grid == (8, 1, 1), before
        assert launch.stream == stream, before
        assert int.from_bytes(launch.parameters[0], "little") == small.data_ptr(), before
        assert int.from_bytes(launch.parameters[2], "little") == 8, before
        assert decode(launch.parameters[3]).dims == (8,), before
        assert (launch.window.address, launch.window.nbytes) == (small.data_ptr(), 32), before
        before += 1
    assert before > 10


@pytest.mark.parametrize("way", ["call", "entry", "named stream", "bind", "launch bound", "preload"])
def test_an_interrupted_call_leaves_the_contexts_as_they_were(simulator, way):
    """On the device that is not current; the first time, which prepares it, and later."""
    n = trunnion.Symbol("n")
    p = trunnion.ProgramBuilder("p", trunnion.DeviceCode("cuda", SOURCE, target="sm_90a"))
    x, y = p.input("x", "float32", (n,), alignment=16), p.output("y", "float32", (n,), fill=0)
    p.launch("k", args=(x, y, n, x.tiled((4,))), grid=n, block=32)
    with trunnion.compile(p.build(), backend="nvrtc") as compiled:
        artifact = compiled.artifact
    stack = simulator.state.stack()
    place = struck = 1
    while struck:
        with simulator.torch_mode(), simulator.current(0), trunnion.load(artifact) as program:
            call = _way(program, way, torch.zeros(8, device="cuda:1"), simulator.new_stream(1))
            before = tuple(stack)
            with contextlib.suppress(KeyboardInterrupt), interrupting(is_of_backend, place) as interruption:
                call()
            left, stack[:] = tuple(stack), before
            assert left == before, place
            struck, place = interruption.struck, place + 1
    assert place > 3


def _way(program, way, tensor, stream):
    match way:
        case "call":
            return lambda: program(tensor)
        case "entry":
            return lambda: program.entry(tensor)
        case "named stream":
            return lambda: program(tensor, stream=stream)
        case "bind":
            return lambda: program.bind(tensor)
        case "launch bound":
            return program.bind(tensor)
    return lambda: program.preload(1)
