"""A test that leaves something in the simulator of its process fails, and not the one that finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from architecture_rules.source import ROOT

if TYPE_CHECKING:
    import pytest

LEAVING = """
from trunnion.sim.objects import CaptureMode

def test_nothing(simulator):
    simulator.register_body("given_back", print)
    with simulator.fault("cuLaunchKernelEx"), simulator.memory_limit(1 << 40), simulator.stream(1):
        assert not simulator.trace

def test_trace(running_simulator):
    running_simulator.state.trace.add("an event")

def test_nothing_traced(running_simulator):
    assert not running_simulator.trace

def test_limit(running_simulator):
    running_simulator.state.contexts[1].limits[6] = 8

def test_context(running_simulator):
    running_simulator.state.stack().append(running_simulator.state.contexts[1])

def test_stream(running_simulator):
    running_simulator.state.set_current_stream(1, 2)

def test_body(running_simulator):
    running_simulator.register_body("left", print)

def test_memory(running_simulator):
    running_simulator.memory.limit(1, 1 << 40)

def test_capture(running_simulator):
    state = running_simulator.state
    state.captures.begin(state.stream(running_simulator.new_stream()), CaptureMode.GLOBAL, state.thread())
"""


def test_what_a_test_leaves_in_the_simulator_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makeconftest((ROOT / "conftest.py").read_text("utf-8"))
    pytester.makepyfile(LEAVING)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=9, errors=6)
    left = (
        "limits of contexts", "current contexts", "current streams", "bodies", "limits of memory", "captures",
    )  # fmt: skip
    result.stdout.fnmatch_lines([f"E *the test left {{'{name}': *" for name in left])
