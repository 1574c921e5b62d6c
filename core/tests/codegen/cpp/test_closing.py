"""Closing does every step, and says of each that failed."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest
import torch

from trunnion.codegen.cpp.call_signature import CallSignature
from trunnion.codegen.cpp.direct import direct_entry
from trunnion.codegen.cpp.loader import process_libraries
from trunnion.codegen.cpp.program import CppProgram
from trunnion.errors import DriverError, LifecycleError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.program import DeviceCode
from trunnion.sim.trace import LimitSet
from trunnion.testing.interruption import interrupting, is_of_backend

EVERY = 3
"""Of the places of a close, so many are passed over: each takes a program of its own."""


def reading():
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (8,))
    p.launch("k", (x,), 1, 32)
    return p.build()


@pytest.fixture
def used(launcher):
    """Return a program that was launched on two devices."""
    program = launcher(reading())
    for device in (0, 1):
        program.entry(torch.zeros(8, device=f"cuda:{device}"))
    return program


def test_each_failure_is_named_and_each_step_done(simulator, used):
    faults = simulator.fault("cuCtxSynchronize"), simulator.fault("cuLibraryUnload")
    with faults[0], faults[1], pytest.raises(DriverError) as caught:
        used.close()
    error = caught.value
    assert (error.call, error.code) == ("cuCtxSynchronize", 999)
    assert str(error).endswith(
        "; then cuCtxSynchronize failed with CUDA_ERROR_UNKNOWN; then cuLibraryUnload failed with CUDA_ERROR_UNKNOWN"
    )
    assert error.explanation in str(error)
    used.close()


def test_a_device_that_cannot_be_entered_keeps_nobody_from_the_rest(simulator, used):
    simulator.clear_trace()
    with (
        simulator.fault("cuCtxPushCurrent", nth=1),
        pytest.raises(DriverError, match="cuCtxPushCurrent") as caught,
    ):
        used.close()
    assert "then" not in str(caught.value)
    assert [type(event).__name__ for event in simulator.trace].count("LibraryUnloaded") == 1


def test_one_failure_is_that_one(simulator, used):
    with simulator.fault("cuLibraryUnload"), pytest.raises(DriverError) as caught:
        used.close()
    assert caught.value.call == "cuLibraryUnload"
    assert "then" not in str(caught.value)


def references(simulator):
    return [context.references for context in simulator.state.contexts]


def test_the_contexts_that_were_retained_are_released(simulator, launcher):
    torch.zeros(8, device="cuda:0"), torch.zeros(8, device="cuda:1")  # torch's own references
    before = references(simulator)
    for _ in range(3):
        program = launcher(reading())
        for device in (0, 1, 0):
            program.entry(torch.zeros(8, device=f"cuda:{device}"))
        program.preload(2)
        assert references(simulator) == [1 + count for count in before[:3]] + before[3:]
        program.close()
        program.close()
        assert references(simulator) == before


def test_an_interrupted_close_is_ended_by_another(simulator, launcher):
    """Wherever it was in Python: the image is unloaded once, and the cache is what it was."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (1000,))
    p.launch("k", (x,), 1, 32, window=x.window())
    program, place, struck = p.build(), -2, True

    def of_the_launcher(frame):
        return "/tests/" not in frame.f_code.co_filename and is_of_backend(frame)

    tensors = [torch.zeros(1000, device=f"cuda:{device}") for device in (0, 1)]
    while struck:
        one, place = launcher(program), place + EVERY
        for tensor in tensors:
            one.entry(tensor)
        simulator.clear_trace()
        with suppress(KeyboardInterrupt), interrupting(of_the_launcher, place) as interruption:
            one.close()
        one.close()
        assert [type(event).__name__ for event in simulator.trace].count("LibraryUnloaded") == 1, place
        limits = {event.device: event.value for event in simulator.trace if isinstance(event, LimitSet)}
        assert limits == {0: 0, 1: 0}, place
        with pytest.raises(LifecycleError, match="closed"):
            one.entry(tensors[0])
        struck = interruption.struck
    assert place > 30


def test_an_interrupted_load_unloads_what_it_loaded(simulator, built):
    """The image, and the launcher's library: wherever it was in Python."""
    data = built(reading()) + b"test_closing"  # bytes of its own
    place, struck, libraries = 0, True, process_libraries()
    libraries.unload()
    before = len(libraries)

    def of_the_load(frame):
        return frame.f_code in (CppProgram.__init__.__code__, direct_entry.__code__)

    def events(kind):
        return [type(event).__name__ for event in simulator.trace].count(kind)

    while struck:
        place += 1
        simulator.clear_trace()
        with suppress(KeyboardInterrupt), interrupting(of_the_load, place) as interruption:
            CppProgram(data, CallSignature.of(reading().plan()), simulator.runtime, "test").close()
        assert events("LibraryUnloaded") == events("LibraryLoaded"), place
        struck = interruption.struck
    assert events("LibraryLoaded") == 1
    assert place > 15
    gc.collect()
    libraries.unload()
    assert len(libraries) == before


def test_a_device_that_could_not_be_prepared_is_not_retained(simulator, launcher):
    torch.zeros(8, device="cuda:0")
    before = references(simulator)
    program = launcher(reading())
    for call in ("cuDevicePrimaryCtxRetain", "cuDeviceGetAttribute", "cuCtxPushCurrent"):
        simulator.state.stack().clear()
        with simulator.fault(call), pytest.raises(DriverError, match=call):
            program.preload(0)
        assert references(simulator) == before
    program.preload(0)
    program.close()
    assert references(simulator) == before


def test_a_context_that_cannot_be_released_is_told(simulator, used):
    with simulator.fault("cuDevicePrimaryCtxRelease", nth=1), pytest.raises(DriverError) as caught:
        used.close()
    assert caught.value.call == "cuDevicePrimaryCtxRelease"
    used.close()


def test_what_asks_for_a_limit_beyond_the_end_keeps_no_context(simulator, launcher):
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (8,))
    p.launch("k", (x,), 1, 32, window=x.window())
    torch.zeros(8, device="cuda:0")
    before = references(simulator)
    program = launcher(p.build())
    program.entry(torch.zeros(8, device="cuda:0"))
    program.close()
    assert references(simulator) == before
