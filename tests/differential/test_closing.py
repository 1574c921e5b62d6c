"""A program that is closed while a stream is being captured: both backends say what to do, and it can be done."""

from __future__ import annotations

from contextlib import suppress

import pytest

from trunnion.errors import CaptureError, DriverError, LifecycleError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol
from trunnion.sim.trace import LibraryUnloaded
from trunnion.testing.strategies import TensorSpec


def unloaded(simulator):
    return sum(isinstance(event, LibraryUnloaded) for event in simulator.trace)


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
@pytest.mark.parametrize("used", [False, True])
def test_it_can_be_closed_once_the_capture_has_ended(twins, simulator, mode, used):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    t = builder.input("t", "float32", (Symbol("n"),))
    builder.launch("k", (t,), 1, 32)
    said = []
    with twins.loaded(builder.build()) as pair:
        for harness, loaded in pair.loaded:
            args = harness.arguments((TensorSpec(dtype="float32", shape=(4,), strides=(1,)),))
            if used:
                loaded.call(args)
            before = unloaded(simulator)
            said.append(_closed_meanwhile(simulator, loaded, mode))
            refused = said[-1] is not None
            assert unloaded(simulator) == before + (not refused)
            with pytest.raises(LifecycleError):
                loaded.call(args)
            for _ in range(2):
                loaded.close()
                assert unloaded(simulator) == before + 1
    assert said[0] == said[1]
    if used or mode != "relaxed":
        assert "close the program again when the capture has ended" in said[0]


def _closed_meanwhile(simulator, loaded, mode):
    """Return what is said to whoever closes a program within a capture; None if nobody minds."""
    said = None
    with suppress(DriverError), simulator.capture(mode=mode):  # which waiting for the device invalidates
        try:
            loaded.close()
        except CaptureError as error:
            said = str(error)
    return said
