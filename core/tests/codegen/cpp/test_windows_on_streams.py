"""Windows that a stream holds for one launch of a C++ launcher, on the simulated driver: what is left of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from trunnion.errors import (
    CaptureError,
    DriverError,
)
from trunnion.launcher.l2_persisting import process_set_aside
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import symbols
from trunnion.model.program import DeviceCode
from trunnion.sim.trace import (
    Allocated,
    Launched,
    LimitSet,
    PersistingLinesReset,
    StreamAttributeSet,
    Synchronized,
)

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram

pytestmark = pytest.mark.tvm_ffi_abi

CODE = DeviceCode("cuda", "//")
MOST_WINDOW, MOST_PERSISTING = 109, 108  # CUdevice_attribute


def windowed(**fields: Any) -> KernelProgram:
    """Return a launch over `x` with a window."""
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    p.launch("k", (x,), 1, 32, window=x.window(hit_ratio=0.75, **fields))
    return p.build()


def on(device: int, *shape: int) -> Any:
    return torch.zeros(*shape, dtype=torch.float32, device=f"cuda:{device}")


def events(simulator: Any, *kinds: type) -> list[Any]:
    return [event for event in simulator.trace if isinstance(event, kinds)]


def windows(simulator: Any) -> list[Any]:
    return [event.window for event in events(simulator, Launched)]


def limits(simulator: Any) -> list[int]:
    """Return what each call asked for."""
    return [event.asked for event in events(simulator, LimitSet)]


STEPS = (LimitSet, StreamAttributeSet, Launched, Synchronized, PersistingLinesReset)


def held(simulator: Any) -> list[Any]:
    """Return what happened around a launch: the name of each step, and the length of a window that was set."""
    return [
        (type(event).__name__, event.value.nbytes if event.value else 0)
        if isinstance(event, StreamAttributeSet)
        else (type(event).__name__, event.asked if isinstance(event, LimitSet) else None)
        for event in events(simulator, *STEPS)
    ]


WHOLE = [
    ("LimitSet", 4000),
    ("StreamAttributeSet", 4000),
    ("Launched", None),
    ("StreamAttributeSet", 0),
    ("Synchronized", None),
    ("PersistingLinesReset", None),
    ("LimitSet", 0),
]


def test_a_streams_window_is_set_around_the_launch_and_taken_back(simulator: Any, launcher: Any) -> None:
    program, stream, x = launcher(windowed(policy="stream")), simulator.new_stream(1), on(1, 1000)
    bound = program.bind((x,), stream=stream)
    for call in (lambda: program.call((x,), stream=stream), bound, lambda: program.call((x,), stream=2)):
        simulator.clear_trace()
        call()
        assert held(simulator) == WHOLE
        (launched,) = events(simulator, Launched)
        window = launched.window
        assert (window.address, window.nbytes, window.hit_ratio) == (x.data_ptr(), 4000, 0.75)
        assert {event.stream for event in events(simulator, Launched, StreamAttributeSet)} == {
            launched.stream
        }


def test_a_streams_window_of_no_bytes_is_none(simulator: Any, launcher: Any) -> None:
    program = launcher(windowed(policy="stream"))
    program.preload(0)
    simulator.clear_trace()
    program.entry(on(0, 0))
    assert held(simulator) == [("Launched", None)]


def test_a_streams_window_does_not_lower_what_others_asked_for(simulator: Any, launcher: Any) -> None:
    launcher(windowed()).entry(on(0, 500))
    program = launcher(windowed(policy="stream"))
    for extent in (100, 1000):
        simulator.clear_trace()
        program.entry(on(0, extent))
        assert limits(simulator) == ([] if extent == 100 else [4000, 2000])


_FAULTS = [
    ("cuCtxSetLimit", 1, []),
    ("cuStreamSetAttribute", 1, WHOLE[:1] + WHOLE[3:]),
    ("cuLaunchKernelEx", 1, WHOLE[:2] + WHOLE[3:]),
    ("cuStreamSetAttribute", 2, WHOLE[:3] + WHOLE[4:]),
    ("cuStreamSynchronize", 1, WHOLE[:4] + WHOLE[5:]),
    ("cuCtxResetPersistingL2Cache", 1, WHOLE[:5] + WHOLE[6:]),
    ("cuCtxSetLimit", 2, WHOLE[:6]),
]


@pytest.mark.parametrize(("call", "nth", "steps"), _FAULTS)
def test_whatever_fails_every_other_step_is_done(
    simulator: Any, launcher: Any, call: str, nth: int, steps: list[Any]
) -> None:
    program, x = launcher(windowed(policy="stream")), on(0, 1000)
    program.preload(0)
    simulator.clear_trace()
    with simulator.fault(call, nth=nth), pytest.raises(DriverError) as caught:
        program.entry(x)
    assert caught.value.call == call
    assert held(simulator) == steps
    assert (program._set_aside._kept, program._set_aside._held) == ({}, {})
    simulator.clear_trace()
    program.entry(x)
    assert held(simulator)[-1] == WHOLE[-1]
    assert len(held(simulator)) >= len(WHOLE) - 1  # a limit that was not given back is there already


def test_the_first_of_several_errors_is_raised(simulator: Any, launcher: Any) -> None:
    program, x = launcher(windowed(policy="stream")), on(0, 1000)
    program.preload(0)
    after = ("cuStreamSynchronize", "cuCtxResetPersistingL2Cache")
    with (
        simulator.fault("cuLaunchKernelEx"),
        simulator.fault(after[0]) as first,
        simulator.fault(after[1]) as second,
        simulator.fault("cuCtxSetLimit", nth=2) as third,
        pytest.raises(DriverError, match="cuLaunchKernelEx"),
    ):
        program.entry(x)
    assert (first.hits, second.hits, third.hits) == (1, 1, 1)
    assert program._set_aside._kept == {}
    program.close()
    assert limits(simulator) == [4000, 0], "what could not be given back then is now"


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_an_interrupt_keeps_it_from_giving_back_close_does(
    simulator: Any, launcher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = launcher(windowed(policy="stream"))
    with monkeypatch.context() as patch:
        patch.setattr(process_set_aside(), "release", interrupt)
        with pytest.raises(KeyboardInterrupt):
            program.entry(on(1, 1000))
    program.close()
    assert limits(simulator) == [4000, 0]


def test_a_streams_window_cannot_be_captured(simulator: Any, launcher: Any) -> None:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x, y = p.input("x", "float32", (n,)), p.output("y", "float32", (n,), fill=1.0)
    p.launch("k", (x, y), 1, 32)
    p.launch("k", (x, y), 1, 32, window=x.window(policy="stream"))
    program, given = launcher(p.build()), on(0, 10)
    program.preload(0)
    bound = program.bind((given,), stream=simulator.new_stream(0))
    simulator.clear_trace()
    text = (
        "a window with policy 'stream' cannot be captured, because the call waits for its kernel; "
        "use policy 'launch'"
    )
    for call in (
        lambda: program.entry(given),
        lambda: program.call((given,)),
        lambda: program.bind((given,)),
    ):
        with simulator.capture(device=0) as graph, pytest.raises(CaptureError) as caught:
            call()
        assert str(caught.value) == text
        graph.launch()
    assert events(simulator, Allocated, *STEPS) == []
    del bound
