"""One device's cache, set aside for the windows of programs of several backends."""

from __future__ import annotations

import pytest
import torch

from trunnion import DeviceCode, ProgramBuilder, symbols
from trunnion.model.capability import Capability
from trunnion.sim.abi import Limit
from trunnion.sim.trace import LimitSet

_FIRST = 7 << 10  # the limit before any program


def _windowed():
    builder = ProgramBuilder("windowed", DeviceCode("cuda", "// not compiled"))
    (n,) = symbols("n")
    x = builder.input("x", "float32", (n,))
    builder.launch("k", (x,), 1, 32, window=x.window())
    return builder.build()


@pytest.fixture
def limit(harnesses, simulator):
    """Return a function that reads the limit of device 1; before any program it is one of its own."""
    limits, kind = simulator.state.contexts[1].limits, Limit.PERSISTING_L2_CACHE_SIZE
    before, limits[kind] = limits.get(kind, 0), _FIRST
    yield lambda: limits[kind]
    limits[kind] = before


@pytest.mark.parametrize("first", [0, 1])
def test_the_limit_is_the_largest_request_of_all_backends_until_the_last_close(
    harnesses, simulator, limit, first
):
    backends = [one for one in harnesses.values() if Capability.ACCESS_POLICY_WINDOW in one.capabilities]
    assert len(backends) > 1
    small, large = (one.load(one.build(_windowed())) for one in (backends[first], backends[1 - first]))
    with simulator.torch_mode():
        seen = []
        for program, extent in ((small, 2500), (large, 5000), (small, 2500)):
            program.call((torch.zeros(extent, device="cuda:1"),))
            seen.append(limit())
        assert seen == [10_000, 20_000, 20_000]
    small.close()
    assert limit() == 20_000
    large.close()
    assert limit() == _FIRST
    asked = [(event.device, event.asked) for event in simulator.trace if isinstance(event, LimitSet)]
    assert asked == [(1, 10_000), (1, 20_000), (1, _FIRST)]


@pytest.mark.parametrize("first", [0, 1])
def test_what_is_left_is_what_the_other_backend_asked_for(harnesses, simulator, limit, first):
    backends = [one for one in harnesses.values() if Capability.ACCESS_POLICY_WINDOW in one.capabilities]
    small, large = (one.load(one.build(_windowed())) for one in (backends[first], backends[1 - first]))
    with simulator.torch_mode():
        for program, extent in ((large, 5000), (small, 2500)):
            program.call((torch.zeros(extent, device="cuda:1"),))
    large.close()
    assert limit() == 10_000
    small.close()
    assert limit() == _FIRST
