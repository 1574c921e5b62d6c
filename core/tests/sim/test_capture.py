"""Captures without the driver around them: what waits for what, in any order of calls."""

import itertools
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.sim.capture import Captures
from trunnion.sim.devices import ARCHITECTURES, Device
from trunnion.sim.graph import NodeKind, Work
from trunnion.sim.objects import LEGACY_STREAM, CaptureMode, Context, Event, Stream
from trunnion.sim.status import Refusal, Status

STREAMS, EVENTS = 3, 3
HERE, ELSEWHERE = 1, 2


def steps():
    stream, event = st.integers(0, STREAMS - 1), st.integers(0, EVENTS - 1)
    return st.lists(
        st.one_of(
            st.tuples(st.just("launch"), stream, st.booleans()),
            st.tuples(st.just("memset"), stream, st.just(False)),
            st.tuples(st.just("record"), stream, event),
            st.tuples(st.just("wait"), stream, event),
        ),
        max_size=20,
    )


def world():
    handles = itertools.count(1000)
    context = Context(next(handles), Device(0, ARCHITECTURES["sm_90a"]), 1)
    streams = [Stream(next(handles), context, number, flags=1) for number in range(STREAMS)]
    events = [Event(next(handles), context, 0) for _ in range(EVENTS)]
    return Captures(lambda: next(handles), lambda graph: None), streams, events, handles


@given(steps())
def test_a_node_waits_for_what_happened_before(calls):
    """Each stream and event carries the set of all nodes before it: no frontiers, no edges."""
    captures, streams, events, handles = world()
    capture = captures.begin(streams[0], CaptureMode.RELAXED, HERE)
    before = [set(), None, None]  # of each stream; None: it takes no part
    recorded = [None] * EVENTS
    expected = {}
    for kind, number, argument in calls:
        stream = streams[number]
        if kind == "record" and before[number] is not None:
            captures.record(events[argument], stream)
            recorded[argument] = set(before[number])
        elif kind == "wait" and recorded[argument] is not None:
            captures.wait(stream, events[argument])
            before[number] = (before[number] or set()) | recorded[argument]
        elif kind in ("launch", "memset") and captures.of(stream) is not None:
            assert before[number] is not None
            work = Work(NodeKind[{"launch": "KERNEL"}.get(kind, "MEMSET")], None, None, programmatic=argument)
            node = capture.add(next(handles), stream, work)
            expected[node] = set(before[number])
            before[number].add(node)
            kernel_ahead = {edge.source for edge in node.edges if edge.source.kind is NodeKind.KERNEL}
            assert {edge.source for edge in node.edges if edge.programmatic} == (
                kernel_ahead if argument else set()
            )
    for node, ahead in expected.items():
        assert node.ancestors() == ahead
        assert capture.graph.nodes.index(node) > max(map(capture.graph.nodes.index, ahead), default=-1)
    joined = all(nodes is None or nodes <= before[0] for nodes in before)
    if joined:
        assert captures.end(streams[0], ELSEWHERE).nodes == list(expected)
    else:
        with pytest.raises(Refusal) as caught:
            captures.end(streams[0], ELSEWHERE)
        assert caught.value.status is Status.STREAM_CAPTURE_UNJOINED
    assert all(stream.capture is None for stream in streams)


def test_an_event_of_an_ended_capture_is_from_outside():
    captures, (first, second, _), (event, *_), _ = world()
    captures.begin(first, CaptureMode.RELAXED, HERE)
    captures.record(event, first)
    captures.end(first, HERE)
    captures.check_event(event, "cuEventQuery")
    captures.wait(second, event)
    assert second.capture is None
    captures.begin(first, CaptureMode.RELAXED, HERE)
    with pytest.raises(Refusal) as caught:
        captures.wait(first, event)
    assert caught.value.status is Status.STREAM_CAPTURE_ISOLATION


def test_the_legacy_stream_joins_no_capture():
    captures, (first, *_), (event, *_), _ = world()
    legacy = Stream(LEGACY_STREAM, first.context, 99)
    capture = captures.begin(first, CaptureMode.RELAXED, HERE)
    captures.record(event, first)
    with pytest.raises(Refusal) as caught:
        captures.wait(legacy, event)
    assert caught.value.status is Status.STREAM_CAPTURE_IMPLICIT
    assert capture.problem


@pytest.mark.parametrize("mode", CaptureMode)
@pytest.mark.parametrize("own", CaptureMode)
@pytest.mark.parametrize("thread", [HERE, ELSEWHERE])
def test_what_is_unsafe_is_for_both_modes_to_say(mode, own, thread):
    """As cuThreadExchangeStreamCaptureMode puts it, sentence by sentence."""
    captures, (first, *_), _, _ = world()
    captures.exchange_mode(thread, own)
    capture = captures.begin(first, mode, HERE)
    local = thread == HERE and mode is not CaptureMode.RELAXED
    anywhere = thread != HERE and mode is CaptureMode.GLOBAL
    forbidden = {
        CaptureMode.GLOBAL: local or anywhere,
        CaptureMode.THREAD_LOCAL: local,
        CaptureMode.RELAXED: False,
    }[own]
    with pytest.raises(Refusal) if forbidden else nullcontext() as caught:
        captures.check_unsafe(thread, "a call")
    if forbidden:
        assert caught.value.status is Status.STREAM_CAPTURE_UNSUPPORTED
    assert bool(capture.problem) is forbidden
