"""What is captured, and what a capture forbids, on the simulated driver."""

from __future__ import annotations

import pytest
import torch

import trunnion
from trunnion import errors
from trunnion.launcher.l2_persisting import SetAsideWarning
from trunnion.sim.trace import Launched, LimitSet, MemorySet

CODE = trunnion.DeviceCode(
    "cuda",
    """
extern "C" __global__ void two(const float* x, const float* y) {}
extern "C" __global__ void one(const float* x) {}
""",
)


def on(device, *shape):
    return torch.zeros(*shape, dtype=torch.float32, device=f"cuda:{device}")


def events(simulator, *kinds):
    return [event for event in simulator.trace if isinstance(event, kinds)]


def window(policy, **fields):
    def write(p):
        (n,) = trunnion.symbols("n")
        x = p.input("x", "float32", (n,))
        p.launch("one", (x,), 1, 32, window=x.window(hit_ratio=0.75, policy=policy, **fields))

    return write


def test_a_prepared_program_is_captured_with_its_fills_and_workspaces(simulator, build):
    def write(p):
        x = p.input("x", "float32", (5,))
        scratch = p.workspace("scratch", "float32", (5,), zeroed=True)
        p.launch("two", (x, p.output("y", "float32", (5,), fill=2.0)), 1, 32)
        p.launch("two", (x, scratch), 1, 32)

    program, x = build(write), on(1, 5)
    with pytest.raises(errors.CaptureError, match=r"preload\(1\)"), simulator.capture(device=1):
        program(x)  # the image is loaded, which breaks no capture
    program.preload(0)
    with pytest.raises(errors.CaptureError, match=r"preload\(1\)"), simulator.capture(device=1):
        program(x)
    program.preload(1)
    with simulator.capture(device=1) as graph:
        y = program(x)
        bound = program.bind(x)
        z = bound()
    assert events(simulator, Launched, MemorySet) == []
    graph.launch()
    assert torch.equal(y.cpu(), torch.full((5,), 2.0))
    assert torch.equal(z.cpu(), y.cpu())
    assert len(events(simulator, Launched)) == 4


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
@pytest.mark.parametrize("policy", ["launch", "stream"])
def test_a_window_breaks_no_capture_of_another_stream(simulator, build, policy, mode):
    """Neither by the limit that is set nor by the wait for the kernel: an H100's driver 580 refuses both there."""
    program, x = build(window(policy)), on(0, 1000)
    with simulator.capture(simulator.new_stream(0), 0, mode) as graph:
        program(x, stream=simulator.new_stream(0))
    assert len(events(simulator, Launched)) == 1
    assert not graph.nodes


def test_a_window_of_a_launch_is_captured_and_one_of_a_stream_is_not(simulator, build):
    x = on(0, 1000)
    launch, stream = build(window("launch")), build(window("stream"))
    launch(x)
    stream.preload(0)
    with simulator.capture(device=0) as graph:
        launch(x)
        with pytest.raises(errors.CaptureError, match="policy 'launch'"):
            stream(x)
    simulator.clear_trace()
    graph.launch()
    (launched,) = events(simulator, Launched)
    assert (launched.window.address, launched.window.nbytes) == (x.data_ptr(), 4000)


def test_what_the_driver_refuses_to_capture_is_a_capture_error(simulator, build):
    program = build(lambda p: p.launch("one", (p.input("x", "float32", (5,)),), 1, 32))
    program.preload(0)
    with (
        pytest.raises(errors.CaptureError, match="STREAM_CAPTURE"),
        simulator.capture(device=0, mode="global"),
    ):
        # The legacy stream would wait for every other one, the captured one too.
        program(on(0, 5), stream=1)
    simulator.forget_pending()


@pytest.mark.parametrize("fill", [None, 2.0])
def test_a_bound_launch_on_a_stream_that_waits_for_the_captured_one_says_so(simulator, build, fill):
    def write(p):
        p.launch("two", (p.input("x", "float32", (5,)), p.output("y", "float32", (5,), fill=fill)), 1, 32)

    bound = build(write).bind(on(0, 5), stream=1)
    call = "cuLaunchKernelEx" if fill is None else "cuMemsetD32Async"
    said = (
        f"{call} .*CAPTURE_IMPLICIT.*goes to stream 0x1, which is not the one.*bind under the captured stream"
    )
    with pytest.raises(errors.CaptureError, match=said), simulator.capture(device=0, mode="global"):
        bound()
    simulator.forget_pending()


def test_a_window_that_no_call_had_before_is_captured_with_a_warning(simulator, build):
    x, program = on(1, 1000), build(window("launch"))
    program.preload(1)
    warned = pytest.warns(SetAsideWarning, match="4000 bytes of kernel 'one'")
    with simulator.capture(device=1) as graph, warned as told:
        program(x)
    assert [one.filename for one in told] == [__file__]
    assert events(simulator, LimitSet) == []
    graph.launch()
    assert [launched.window.nbytes for launched in events(simulator, Launched)] == [4000]


def test_a_window_of_known_length_is_captured_after_preload(simulator, build):
    x, program = on(1, 1000), build(window("launch", nbytes=4000))
    program.preload(1)
    assert [event.value for event in events(simulator, LimitSet)] == [4000]
    with simulator.capture(device=1) as graph:
        program(x)
    simulator.clear_trace()
    graph.launch()
    (launched,) = events(simulator, Launched)
    assert (launched.window.address, launched.window.nbytes) == (x.data_ptr(), 4000)
