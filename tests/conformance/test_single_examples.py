"""Examples for which a law once blamed backends that do as they should."""

from __future__ import annotations

import pytest

from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol
from trunnion.sim.launch_attributes import AccessProperty, WindowAttribute
from trunnion.sim.objects import Stream
from trunnion.sim.status import Status
from trunnion.testing.laws import LawViolation, catalogue, passing_over_what_is_there
from trunnion.testing.saboteurs import SABOTEURS
from trunnion.testing.strategies.calls import CallSpec, Scenario
from trunnion.testing.strategies.programs import CODE


def wide_cluster(*, smem=0):
    n = Symbol("n", min=1, max=16)
    p = ProgramBuilder("wide", CODE)
    p.launch("k", (p.scalar("n", "int32", n),), n, 1, cluster=n, dynamic_smem_bytes=smem)
    return Scenario(p.build(), CallSpec(args=(16,), device=0))


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl", "interpreted"])
def test_a_cluster_that_a_call_decides_on_is_allowed_by_that_call(harnesses, backend):
    """C4: what only a call knows is not left from preparing the device; L18 asks that the call allows it."""
    catalogue()["C4"].replay(harnesses[backend], (wide_cluster(), False))


def test_what_is_known_is_allowed_before_the_first_call_even_then(harness):
    bad = SABOTEURS["never-prepared"].apply(harness)
    with pytest.raises(
        LawViolation, match=r"left to the first call: .*MAX_DYNAMIC_SHARED_SIZE_BYTES"
    ) as caught:
        catalogue()["C4"].replay(bad, (wide_cluster(smem=100_000), False))
    assert "NON_PORTABLE" not in str(caught.value)


def test_a_window_that_another_program_left_on_its_stream_is_not_blamed_on_a_failing_call(
    harness, simulator, monkeypatch
):
    """F1 and F3: a process has streams of others."""
    stream = Stream(1 << 40, simulator.state.contexts[0], 1 << 40)
    stream.window = WindowAttribute(4096, 4096, 1.0, AccessProperty.PERSISTING, AccessProperty.NORMAL)
    monkeypatch.setitem(simulator.state.handled, stream.handle, stream)
    p = ProgramBuilder("plain", CODE)
    p.launch("k", (p.scalar("n", "int32"),), 1, 1)
    scenario = Scenario(p.build(), CallSpec(args=(1,), device=0))
    with passing_over_what_is_there():  # the law asks the collector after each of 224 failures
        catalogue()["F1"].replay(harness, (scenario, Status.UNKNOWN))
