"""Access-policy windows of C++ launchers on the simulated driver: ranges, the cache set aside, what is left of them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest
import torch

from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DeviceRequirementError,
    DriverError,
    LifecycleError,
)
from trunnion.launcher.l2_persisting import SetAsideWarning
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, symbols
from trunnion.model.program import DeviceCode
from trunnion.sim.launch_attributes import AccessProperty
from trunnion.sim.status import Status
from trunnion.sim.trace import (
    Allocated,
    Launched,
    LibraryUnloaded,
    LimitSet,
)
from trunnion.testing.symbols import kernel_symbol

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


def sized() -> KernelProgram:
    """Return a launch over `x` with a window whose bytes and whose first element are numbers of the call."""
    p = ProgramBuilder("p", CODE)
    n, b, o = Symbol("n"), Symbol("b", min=-10), Symbol("o", min=-10)
    x = p.input("x", "float32", (n,))
    p.scalar("b", "int64", symbol=b)
    p.scalar("o", "int64", symbol=o)
    p.launch("k", (x,), 1, 32, window=x.window(nbytes=b, element_offset=o))
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


# Ranges ------------------------------------------------------------------------------------------------------------


def test_a_window_is_its_memory_for_its_launch_alone(simulator: Any, launcher: Any) -> None:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    y, w = p.output("y", "float32", (n,)), p.workspace("w", "uint8", (n,), alignment=512)
    p.launch("k", (x,), 1, 32, window=x.window(hit_ratio=0.75, element_offset=10), cluster=(1, 1, 1))
    p.launch("k", (x,), 1, 32)
    p.launch("k", (y,), 1, 32, window=y.window(hit_property="streaming", miss_property="normal"))
    p.launch("k", (w,), 1, 32, window=w.window(nbytes=n - 1))
    program, given = launcher(p.build()), on(1, 1000)
    made = program.entry(given)
    first, second, third, fourth = windows(simulator)
    assert (first.address, first.nbytes, first.hit_ratio) == (given.data_ptr() + 40, 3960, 0.75)
    assert (first.hit_property, first.miss_property) == (AccessProperty.PERSISTING, AccessProperty.STREAMING)
    assert second is None
    assert (third.address, third.nbytes, third.hit_ratio) == (made.data_ptr(), 4000, 1.0)
    assert (third.hit_property, third.miss_property) == (AccessProperty.STREAMING, AccessProperty.NORMAL)
    assert (fourth.address % 512, fourth.nbytes) == (0, 999)
    launched = events(simulator, Launched)
    assert [event.cluster for event in launched] == [(1, 1, 1), None, None, None]
    assert {event.device for event in launched} == {1}


def test_a_window_without_a_length_is_at_most_what_the_device_allows(simulator: Any, launcher: Any) -> None:
    with simulator.configured(attributes={MOST_WINDOW: 1024}):
        program = launcher(windowed())
        for extent in (200, 256, 1000, 0):
            program.entry(on(0, extent))
    assert [window and window.nbytes for window in windows(simulator)][:3] == [800, 1024, 1024]


@pytest.mark.parametrize(
    ("nbytes", "offset", "allowed"),
    [
        (3992, 2, True),
        (3993, 2, False),
        (0, 1000, True),
        (0, 1001, False),
        (-1, 0, False),
        (4, -1, False),
    ],
)
def test_a_window_that_is_named_lies_within_its_memory(
    simulator: Any, launcher: Any, nbytes: int, offset: int, allowed: bool
) -> None:
    program, x = launcher(sized()), on(0, 1000)
    given = x, nbytes, offset
    simulator.clear_trace()
    if allowed:
        program.entry(*given)
        (window,) = windows(simulator)
        assert (
            (window.address, window.nbytes) == (x.data_ptr() + 4 * offset, nbytes)
            if nbytes
            else window is None
        )
        return
    text = f"argument 'x': got a window of {nbytes} bytes from byte {4 * offset}, expected one that lies within its"
    for call in (program.entry, lambda *args: program.call(args), lambda *args: program.bind(args)):
        with pytest.raises(ArgumentValueError) as caught:
            call(*given)
        assert str(caught.value) == f"{text} 4000 bytes"
        assert caught.value.argument == "x"
    assert events(simulator, Launched, Allocated) == []


def test_a_named_length_that_the_device_does_not_allow_is_refused(simulator: Any, launcher: Any) -> None:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x, y = p.input("x", "float32", (n,)), p.output("y", "float32", (n,), fill=1.0)
    p.launch("k", (x, y), 1, 32, window=x.window(nbytes=4 * n))
    with simulator.configured(attributes={MOST_WINDOW: 1024}):
        program = launcher(p.build())
        program.entry(on(0, 256))
        simulator.clear_trace()
        with pytest.raises(DeviceRequirementError) as caught:
            program.entry(on(0, 257))
    assert str(caught.value) == (
        "needs an access-policy window of 1028 bytes over 'x', got device 0, which allows 1024; "
        "leave nbytes out for as much as the device allows"
    )
    assert events(simulator, Launched, Allocated) == []


def test_a_window_over_a_tensor_that_is_left_out_is_refused(simulator: Any, launcher: Any) -> None:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x, y = p.input("x", "float32", (n,), nullable=True), p.input("y", "float32", (n,))
    p.launch("k", (y,), n, 32, window=x.window(element_offset=1))
    program = launcher(p.build())
    with pytest.raises(ArgumentTypeError) as caught:
        program.entry(None, on(0, 1))
    assert str(caught.value) == "argument 'x': got None, expected a tensor: a window reads it in this call"
    program.entry(None, on(0, 0))
    program.entry(on(0, 3), on(0, 3))
    assert [window.nbytes for window in windows(simulator)] == [8]


# The set-aside -----------------------------------------------------------------------------------------------------


def test_cache_is_set_aside_for_the_longest_window_until_the_last_close(
    simulator: Any, launcher: Any
) -> None:
    first, second = launcher(windowed()), launcher(windowed())
    first.entry(on(0, 10_000))
    second.entry(on(0, 20_000))
    first.entry(on(0, 10_000))
    first.entry(on(0, 9000))
    second.entry(on(1, 10))
    assert limits(simulator) == [40_000, 80_000, 40]
    second.close()
    assert limits(simulator)[3:] == [40_000, 0], "of each device"
    first.close()
    assert limits(simulator)[5:] == [0]
    second.close()
    assert len(limits(simulator)) == 6


def test_no_more_is_set_aside_than_the_device_can(simulator: Any, launcher: Any) -> None:
    with simulator.configured(attributes={MOST_PERSISTING: 4096}):
        program = launcher(windowed())
        for extent in (1000, 2000, 3000):
            program.entry(on(0, extent))
        program.close()
    assert limits(simulator) == [4000, 4096, 0]
    assert [window.nbytes for window in windows(simulator)] == [4000, 8000, 12_000]


def test_hits_that_do_not_persist_set_nothing_aside(simulator: Any, launcher: Any) -> None:
    program = launcher(windowed(hit_property="streaming"))
    program.preload(0)
    program.entry(on(0, 1000))
    program.close()
    assert limits(simulator) == []
    assert [window.nbytes for window in windows(simulator)] == [4000]


@pytest.mark.parametrize("policy", ["launch", "stream"])
def test_where_there_is_no_such_limit_windows_are_still_set(
    simulator: Any, launcher: Any, policy: str
) -> None:
    program = launcher(windowed(policy=policy))
    with (
        simulator.fault("cuCtxGetLimit", Status.UNSUPPORTED_LIMIT),
        simulator.fault("cuCtxSetLimit", Status.UNSUPPORTED_LIMIT) as refused,
    ):
        program.entry(on(0, 10))
        program.close()
    assert refused.calls == 0
    assert [window.nbytes for window in windows(simulator)] == [40]


def test_in_a_slice_of_a_device_nothing_is_set_aside(simulator: Any, launcher: Any) -> None:
    with simulator.configured(mode="mig"):
        program = launcher(windowed())
        program.entry(on(0, 10))
        program.close()
    assert set(limits(simulator)) <= {0}
    assert [window.nbytes for window in windows(simulator)] == [40]


def test_setting_aside_cannot_be_captured_but_the_window_is(simulator: Any, launcher: Any) -> None:
    program, x = launcher(windowed()), on(1, 1000)
    program.preload(1)
    warned = pytest.warns(
        SetAsideWarning, match=r"4000 bytes of kernel 'kernel_0_*', .*asked for 0\); call it"
    )
    with simulator.capture(device=1) as graph, warned:
        program.entry(x)
    assert limits(simulator) == []
    graph.launch()
    assert [window.nbytes for window in windows(simulator)] == [4000]
    program.entry(x)
    with simulator.capture(device=1) as graph:
        program.entry(x)
    assert limits(simulator) == [4000]


@pytest.mark.parametrize("way", ["entry", "call", "bind"])
def test_who_captures_a_window_is_told_in_which_line_of_his(simulator: Any, launcher: Any, way: str) -> None:
    program, x = launcher(windowed()), on(1, 1000)
    program.preload(1)
    given = x if way == "entry" else (x,)
    with simulator.capture(device=1), pytest.warns(SetAsideWarning) as told:
        getattr(program, way)(given)
    assert [one.filename for one in told] == [__file__]


def test_a_warning_that_is_made_an_error_arrives_as_it_is(simulator: Any, launcher: Any) -> None:
    program, x = launcher(windowed()), on(1, 1000)
    program.preload(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in (program.entry, lambda x: program.call((x,)), lambda x: program.bind((x,))):
            with simulator.capture(device=1), pytest.raises(SetAsideWarning, match="4000 bytes"):
                call(x)
    assert windows(simulator) == []


def test_binding_sets_aside_so_that_the_launch_can_be_captured(simulator: Any, launcher: Any) -> None:
    program = launcher(windowed())
    with simulator.capture(device=1) as graph:
        pass
    with simulator.stream(simulator.new_stream(1), 1):
        bound = program.bind((on(1, 1000),))
    assert limits(simulator) == [4000]
    del graph
    bound()
    assert limits(simulator) == [4000]
    assert [window.nbytes for window in windows(simulator)] == [4000]


@pytest.mark.parametrize(("most", "known"), [(1 << 27, [512]), (256, [256])])
def test_preloading_sets_aside_what_every_call_needs(
    simulator: Any, launcher: Any, most: int, known: list[int]
) -> None:
    with simulator.configured(attributes={MOST_WINDOW: most}):
        program = launcher(windowed())
        program.preload(1)
        assert limits(simulator) == []
        p = ProgramBuilder("p", CODE)
        x = p.input("x", "float32", (128,))
        p.launch("k", (x,), 1, 32, window=x.window())
        fixed = launcher(p.build())
        for _ in range(2):
            fixed.preload(1)
        assert limits(simulator) == known
        with simulator.capture(device=1):
            fixed.entry(on(1, 128))
        fixed.close()
    assert limits(simulator) == [*known, 0]


def test_what_the_driver_refuses_to_set_aside_is_raised_as_it_is(simulator: Any, launcher: Any) -> None:
    program, x = launcher(windowed()), on(0, 1000)
    program.preload(0)
    calls = (program.entry, lambda x: program.call((x,)), lambda x: program.bind((x,)))
    for call in calls:
        with simulator.fault("cuCtxSetLimit"), pytest.raises(DriverError) as caught:
            call(x)
        assert (caught.value.call, caught.value.code) == ("cuCtxSetLimit", 999)
    assert windows(simulator) == []
    with simulator.fault("cuCtxGetLimit"), pytest.raises(DriverError, match="cuCtxGetLimit"):
        program.entry(x)
    program.entry(x)
    assert limits(simulator) == [4000]
    assert program._set_aside._kept == {}


def test_an_interrupt_while_cache_is_set_aside_interrupts(
    simulator: Any, launcher: Any, monkeypatch: Any
) -> None:
    program, x = launcher(windowed()), on(0, 1000)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(program._set_aside._owner, "request", interrupted)
    with pytest.raises(KeyboardInterrupt):
        program.entry(x)
    monkeypatch.undo()
    program.entry(x)
    assert limits(simulator) == [4000]


def test_a_second_close_gives_back_what_the_first_could_not(simulator: Any, launcher: Any) -> None:
    program = launcher(windowed())
    for device in (0, 1):
        program.entry(on(device, 1000))
    simulator.clear_trace()
    with simulator.fault("cuCtxSetLimit", nth=1), pytest.raises(DriverError, match="cuCtxSetLimit"):
        program.close()
    assert len(events(simulator, LibraryUnloaded)) == 1
    assert len(limits(simulator)) == 1, "the other device's was given back"
    program.close()
    program.close()
    assert limits(simulator) == [0, 0]
    assert len(events(simulator, LibraryUnloaded)) == 1


def test_a_program_that_cannot_be_unloaded_gives_back_what_it_set_aside(
    simulator: Any, launcher: Any
) -> None:
    program = launcher(windowed())
    program.entry(on(0, 1000))
    with simulator.fault("cuCtxSynchronize"), pytest.raises(DriverError, match="cuCtxSynchronize"):
        program.close()
    assert limits(simulator) == [4000, 0]


def test_a_program_that_is_not_closed_within_its_launch_keeps_what_it_set_aside(
    simulator: Any, launcher: Any
) -> None:
    program = launcher(windowed())
    refused = []

    def body(_: object) -> None:
        with pytest.raises(LifecycleError) as caught:
            program.close()
        refused.append(str(caught.value))

    simulator.register_body(kernel_symbol(0), body)
    program.entry(on(0, 1000))
    assert refused == ["a program cannot be closed from within its own launch; close it after the call"]
    assert limits(simulator) == [4000]
    program.close()
    assert limits(simulator) == [4000, 0]
