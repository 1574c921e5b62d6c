from trunnion.sim.status import Status
from trunnion.sim.trace import CallRefused, LibraryUnloaded, Trace


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
