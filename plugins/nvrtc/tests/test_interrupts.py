"""An interrupt between any two lines of a launcher: the next call delivers just what it is given."""

from __future__ import annotations

import sys

import pytest
import torch

import trunnion
from trunnion.sim.tensormap import decode
from trunnion.sim.trace import Launched

SOURCE = """
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
extern "C" __global__ void k(const float* x, float* y, long long n, const __grid_constant__ CUtensorMap map) {}
"""


class Interrupt(BaseException):
    """Stands for a KeyboardInterrupt, which pytest would take for its own."""


@pytest.fixture
def program(simulator):
    n = trunnion.Symbol("n", max=10_000)
    p = trunnion.ProgramBuilder("p", trunnion.DeviceCode("cuda", SOURCE, target="sm_90a"))
    x = p.input("x", "float32", (n,), alignment=16)
    y = p.output("y", "float32", (n,))
    p.launch("k", args=(x, y, n, x.tiled((4,))), grid=n, block=32, window=x.window())
    with simulator.torch_mode(), trunnion.compile(p.build(), backend="nvrtc") as compiled:
        yield compiled


def interrupt(name, before, call):
    """Raise before the nth line of the launcher's function of that name; return whether it came so far."""
    seen = 0

    def on_line(frame, event, argument):
        nonlocal seen
        if event == "line":
            seen += 1
            if seen == before:
                raise Interrupt
        return on_line

    def on_call(frame, event, argument):
        return (
            on_line if frame.f_code.co_name == name and frame.f_code.co_filename == "<launcher.py>" else None
        )

    tracing = sys.gettrace()
    sys.settrace(on_call)
    try:
        call()
    except Interrupt:
        return True
    finally:
        sys.settrace(tracing)
    return False


def delivered(simulator, call):
    simulator.clear_trace()
    call()
    (launch,) = [event for event in simulator.trace if isinstance(event, Launched)]
    return launch


@pytest.mark.parametrize("name", ["entry", "launch"])
def test_nothing_of_an_interrupted_call_is_left(simulator, program, name):
    small, large = torch.zeros(8, device="cuda"), torch.zeros(16, device="cuda")
    other = simulator.new_stream()
    out = torch.zeros(8, device="cuda")
    if name == "entry":
        again, broken = (lambda: program.entry(small)), (lambda: program.entry(large))
    else:
        again, broken = (lambda: program(small, out=out)), (lambda: program(large, stream=other))
    stream = delivered(simulator, again).stream
    before = 1
    while interrupt(name, before, broken):
        launch = delivered(simulator, again)
        assert launch.grid == (8, 1, 1), before
        assert launch.stream == stream, before
        assert int.from_bytes(launch.parameters[0], "little") == small.data_ptr(), before
        assert int.from_bytes(launch.parameters[2], "little") == 8, before
        assert decode(launch.parameters[3]).dims == (8,), before
        assert (launch.window.address, launch.window.nbytes) == (small.data_ptr(), 32), before
        before += 1
    assert before > 30
