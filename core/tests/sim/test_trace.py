import pytest

from trunnion.errors import KernelBodyError
from trunnion.sim.launch_attributes import LaunchAttributes
from trunnion.sim.status import Status
from trunnion.sim.trace import CallRefused, Launched, LibraryUnloaded, Trace


def test_events_come_in_order_and_as_a_snapshot():
    trace = Trace()
    first, second = LibraryUnloaded(1), CallRefused("cuInit", Status.INVALID_VALUE, "flags are 1")
    trace.add(first)
    before = trace.events()
    trace.add(second)
    assert (before, trace.events()) == ((first,), (first, second))
    trace.clear()
    assert trace.events() == ()


def test_a_refusal_is_traced_with_its_reason(library, simulator):
    simulator.clear_trace()
    assert library("cuInit", 3) is Status.INVALID_VALUE
    assert simulator.trace == (CallRefused("cuInit", Status.INVALID_VALUE, "flags are 3, 0 is allowed"),)


def launch(*parameters, **attributes):
    return Launched(
        kernel="k",
        library=1,
        device=0,
        stream=2,
        grid=(4, 1, 1),
        block=(32, 1, 1),
        cluster=attributes.get("cluster"),
        dynamic_smem_bytes=0,
        parameters=parameters,
        attributes=LaunchAttributes(**attributes),
    )


def test_a_launch_gives_its_parameters_as_a_body_gets_them():
    event = launch((1 << 40).to_bytes(8, "little"), (-3).to_bytes(4, "little", signed=True))
    assert (event.pointer(0), event.scalar(1, "int32")) == (1 << 40, -3)
    with pytest.raises(
        KernelBodyError, match="kernel 'k' was asked for parameter 1 as a pointer; it has 4 bytes"
    ):
        event.pointer(1)
    view = launch((64).to_bytes(8, "little") + (7).to_bytes(4, "little") + bytes(4))
    assert view.view(0, (None, 2), (2, 1)).shape == (7, 2)


def test_a_launch_is_shown_without_what_it_does_not_have():
    plain, clustered = repr(launch(b"\1")), repr(launch(cluster=(2, 1, 1), priority=0))
    assert "None" not in plain + clustered
    assert plain.endswith("attributes=LaunchAttributes(), priority=0)")
    assert "grid=(4, 1, 1)" in plain
    assert r"parameters=(b'\x01',)" in plain
    assert "attributes=LaunchAttributes(cluster=(2, 1, 1), priority=0)" in clustered
