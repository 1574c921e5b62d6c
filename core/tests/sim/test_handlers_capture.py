import ctypes
import threading

import pytest

from trunnion.sim.abi_graph import EdgeDataStruct
from trunnion.sim.status import Status
from trunnion.sim.trace import CaptureBegan, Captured, CaptureEnded, Launched

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
_PERSISTING = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE


def in_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


@pytest.fixture
def stream(library):
    return library.handle("cuStreamCreate", 1)


@pytest.fixture
def kernel(library):
    return library.kernel("empty")


def begin(library, stream, mode=THREAD_LOCAL):
    return library("cuStreamBeginCapture_v2", stream, mode)


def end(library, stream):
    graph = ctypes.c_void_p(1)
    return library("cuStreamEndCapture", stream, ctypes.byref(graph)), graph.value


def status(library, stream):
    found = ctypes.c_int(9)
    library.ok("cuStreamIsCapturing", stream, ctypes.byref(found))
    return found.value


def test_what_is_captured_does_not_run(library, simulator, stream, kernel):
    ran = []
    simulator.register_body("empty", ran.append)
    try:
        assert begin(library, stream) is Status.SUCCESS
        assert status(library, stream) == 1
        assert library.launch(kernel, stream=stream) is Status.SUCCESS
        result, graph = end(library, stream)
    finally:
        simulator.unregister_body("empty")
    assert result is Status.SUCCESS
    assert graph
    assert not ran
    assert status(library, stream) == 0
    kinds = [type(event) for event in simulator.trace]
    assert [kind for kind in kinds if kind in (CaptureBegan, Captured, CaptureEnded, Launched)] == [
        CaptureBegan,
        Captured,
        CaptureEnded,
    ]


@pytest.mark.parametrize("handle", [None, 1])
def test_the_legacy_stream_is_not_captured(library, handle):
    assert begin(library, handle) is Status.STREAM_CAPTURE_UNSUPPORTED


def test_the_threads_own_default_stream_is_captured(library, simulator, kernel):
    library.ok("cuStreamBeginCapture_v2_ptsz", None, RELAXED)
    assert library.launch(kernel, entry="cuLaunchKernelEx_ptsz") is Status.SUCCESS
    assert isinstance(simulator.trace[-1], Captured)
    assert end(library, 2)[0] is Status.SUCCESS


def test_wrong_modes_and_states_are_refused(library, stream):
    assert begin(library, stream, 3) is Status.INVALID_VALUE
    assert end(library, stream) == (Status.ILLEGAL_STATE, None)
    assert begin(library, stream) is Status.SUCCESS
    assert begin(library, stream) is Status.ILLEGAL_STATE
    assert end(library, stream)[0] is Status.SUCCESS


def test_another_thread_ends_a_relaxed_capture_only(library, stream):
    assert begin(library, stream) is Status.SUCCESS
    assert in_thread(lambda: end(library, stream))[0] is Status.STREAM_CAPTURE_WRONG_THREAD
    assert end(library, stream)[0] is Status.SUCCESS
    assert begin(library, stream, RELAXED) is Status.SUCCESS
    assert in_thread(lambda: end(library, stream))[0] is Status.SUCCESS


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cuStreamSynchronize", "stream"),
        ("cuStreamQuery", "stream"),
        ("cuCtxSynchronize", ""),
        ("cuStreamDestroy_v2", "stream"),
    ],
)
def test_waiting_for_a_capture_invalidates_it(library, stream, kernel, name, arguments):
    assert begin(library, stream, RELAXED) is Status.SUCCESS
    assert library(name, *([stream] if arguments else [])) is Status.STREAM_CAPTURE_UNSUPPORTED
    assert status(library, stream) == 2
    assert library.launch(kernel, stream=stream) is Status.STREAM_CAPTURE_INVALIDATED
    assert end(library, stream) == (Status.STREAM_CAPTURE_INVALIDATED, None)
    assert status(library, stream) == 0
    assert library.launch(kernel, stream=stream) is Status.SUCCESS


@pytest.mark.parametrize("name", ["cuStreamGetDevice", "cuStreamGetId", "cuStreamGetFlags"])
def test_some_questions_about_a_capturing_stream_invalidate_its_capture(library, stream, kernel, name):
    """Seen on an H200 under driver 580, in every mode; the documentation says nothing of it."""
    asked = ctypes.c_uint64()
    assert begin(library, stream, RELAXED) is Status.SUCCESS
    assert library(name, stream, ctypes.byref(asked)) is Status.STREAM_CAPTURE_UNSUPPORTED
    assert library.launch(kernel, stream=stream) is Status.STREAM_CAPTURE_INVALIDATED
    assert end(library, stream) == (Status.STREAM_CAPTURE_INVALIDATED, None)
    assert library(name, stream, ctypes.byref(asked)) is Status.SUCCESS


@pytest.mark.parametrize("name", ["cuStreamGetCtx", "cuStreamGetPriority"])
def test_other_questions_do_not(library, stream, name):
    assert begin(library, stream, GLOBAL) is Status.SUCCESS
    assert library(name, stream, ctypes.byref(ctypes.c_uint64())) is Status.SUCCESS
    assert end(library, stream)[0] is Status.SUCCESS


_RELAXED_ALONE = pytest.mark.parametrize(
    ("mode", "result"),
    [
        (GLOBAL, Status.STREAM_CAPTURE_UNSUPPORTED),
        (THREAD_LOCAL, Status.STREAM_CAPTURE_UNSUPPORTED),
        (RELAXED, Status.SUCCESS),
    ],
)


@_RELAXED_ALONE
def test_another_stream_is_waited_for_beside_a_relaxed_capture_only(library, stream, mode, result):
    """As on an H100, driver 580."""
    other = ctypes.c_void_p()
    library.ok("cuStreamCreate", ctypes.byref(other), 1)
    assert begin(library, stream, mode) is Status.SUCCESS
    assert library("cuStreamSynchronize", other) is result
    assert (end(library, stream)[0] is Status.SUCCESS) == (result is Status.SUCCESS)


@_RELAXED_ALONE
def test_a_limit_is_set_in_a_relaxed_capture_only(library, stream, mode, result):
    assert begin(library, stream, mode) is Status.SUCCESS
    assert library("cuCtxGetLimit", ctypes.byref(ctypes.c_size_t()), _PERSISTING) is Status.SUCCESS
    assert status(library, stream) == 1
    assert library("cuCtxSetLimit", _PERSISTING, ctypes.c_size_t(0)) is result
    assert (end(library, stream)[0] is Status.SUCCESS) == (result is Status.SUCCESS)


def test_the_legacy_stream_waits_for_blocking_streams(library, simulator, stream, kernel):
    assert begin(library, stream) is Status.SUCCESS
    assert library.launch(kernel) is Status.SUCCESS  # the stream was made not to block
    assert end(library, stream)[0] is Status.SUCCESS
    blocking = library.handle("cuStreamCreate", 0)
    assert begin(library, blocking) is Status.SUCCESS
    found = ctypes.c_int()
    asked = library("cuStreamIsCapturing", None, ctypes.byref(found))
    assert asked is Status.STREAM_CAPTURE_IMPLICIT
    assert status(library, blocking) == 1
    assert library.launch(kernel) is Status.STREAM_CAPTURE_IMPLICIT
    assert end(library, blocking)[0] is Status.STREAM_CAPTURE_INVALIDATED
    assert not [event for event in simulator.trace if isinstance(event, Launched)][1:]


def test_a_blocking_capture_holds_up_its_own_device_only(library, kernel):
    blocking = library.handle("cuStreamCreate", 0)
    assert begin(library, blocking) is Status.SUCCESS
    library.context(1)
    assert library.launch(kernel) is Status.SUCCESS
    assert end(library, blocking)[0] is Status.SUCCESS


@pytest.mark.parametrize(
    ("mode", "thread_mode", "here", "elsewhere"),
    [
        (GLOBAL, GLOBAL, False, False),
        (GLOBAL, THREAD_LOCAL, False, True),
        (THREAD_LOCAL, GLOBAL, False, True),
        (THREAD_LOCAL, RELAXED, True, True),
        (RELAXED, GLOBAL, True, True),
    ],
)
def test_modes_forbid_what_is_no_work_of_a_stream(library, stream, mode, thread_mode, here, elsewhere):
    def load():
        exchanged = ctypes.c_int(thread_mode)
        library.ok("cuThreadExchangeStreamCaptureMode", ctypes.byref(exchanged))
        try:
            library.context()
            handle = ctypes.c_void_p()
            image = library.image()
            return library("cuLibraryLoadData", ctypes.byref(handle), image, None, None, 0, None, None, 0)
        finally:
            library.ok("cuThreadExchangeStreamCaptureMode", ctypes.byref(exchanged))

    for attempt, allowed in ((load, here), (lambda: in_thread(load), elsewhere)):
        assert begin(library, stream, mode) is Status.SUCCESS
        expected = (
            (Status.SUCCESS,) * 2
            if allowed
            else (
                Status.STREAM_CAPTURE_UNSUPPORTED,
                Status.STREAM_CAPTURE_INVALIDATED,
            )
        )
        assert (attempt(), end(library, stream)[0]) == expected


def test_a_threads_mode_is_swapped(library):
    mode = ctypes.c_int(RELAXED)
    library.ok("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    assert mode.value == GLOBAL
    library.ok("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    assert mode.value == RELAXED
    assert library("cuThreadExchangeStreamCaptureMode", ctypes.byref(ctypes.c_int(3))) is Status.INVALID_VALUE


def test_events_fork_and_join(library, simulator, stream, kernel):
    side = library.handle("cuStreamCreate", 1)
    fork, join = (library.handle("cuEventCreate", 2) for _ in range(2))
    assert begin(library, stream) is Status.SUCCESS
    assert library.launch(kernel, stream=stream) is Status.SUCCESS
    library.ok("cuEventRecord", fork, stream)
    library.ok("cuStreamWaitEvent", side, fork, 0)
    assert status(library, side) == 1
    assert library.launch(kernel, stream=side) is Status.SUCCESS
    assert library.launch(kernel, stream=stream) is Status.SUCCESS
    library.ok("cuEventRecord", join, side)
    assert library("cuEventQuery", fork) is not Status.SUCCESS
    # that invalidated it; the whole again, to its end
    assert end(library, stream)[0] is Status.STREAM_CAPTURE_INVALIDATED
    assert begin(library, stream) is Status.SUCCESS
    assert library.launch(kernel, stream=stream) is Status.SUCCESS
    library.ok("cuEventRecord", fork, stream)
    library.ok("cuStreamWaitEvent", side, fork, 0)
    assert library.launch(kernel, stream=side) is Status.SUCCESS
    assert library.launch(kernel, stream=stream) is Status.SUCCESS
    library.ok("cuEventRecord", join, side)
    library.ok("cuStreamWaitEvent", stream, join, 0)
    assert library.launch(kernel, stream=stream) is Status.SUCCESS
    result, graph = end(library, stream)
    assert result is Status.SUCCESS
    assert status(library, side) == 0
    nodes = simulator.state.handled[graph].nodes
    at = {node: index for index, node in enumerate(nodes)}
    assert [sorted(at[source] for source in node.dependencies) for node in nodes] == [[], [0], [0], [1, 2]]


def test_a_stream_that_was_not_joined_spoils_the_graph(library, stream, kernel):
    side, fork = library.handle("cuStreamCreate", 1), library.handle("cuEventCreate", 2)
    assert begin(library, stream) is Status.SUCCESS
    library.ok("cuEventRecord", fork, stream)
    library.ok("cuStreamWaitEvent", side, fork, 0)
    assert library.launch(kernel, stream=side) is Status.SUCCESS
    assert end(library, side)[0] is Status.STREAM_CAPTURE_UNMATCHED
    assert end(library, stream) == (Status.STREAM_CAPTURE_UNJOINED, None)
    assert status(library, side) == 0


def test_no_dependency_crosses_a_captures_border(library, stream, kernel):
    other, event = library.handle("cuStreamCreate", 1), library.handle("cuEventCreate", 2)
    assert begin(library, stream) is Status.SUCCESS
    library.ok("cuStreamWaitEvent", stream, event, 0)  # never recorded: nothing to wait for
    library.ok("cuEventRecord", event, other)
    assert library("cuStreamWaitEvent", stream, event, 0) is Status.STREAM_CAPTURE_ISOLATION
    assert end(library, stream)[0] is Status.STREAM_CAPTURE_INVALIDATED


def test_two_captures_do_not_merge(library, stream):
    other, event = library.handle("cuStreamCreate", 1), library.handle("cuEventCreate", 2)
    assert begin(library, stream) is Status.SUCCESS
    assert begin(library, other) is Status.SUCCESS
    library.ok("cuEventRecord", event, other)
    assert library("cuStreamWaitEvent", stream, event, 0) is Status.STREAM_CAPTURE_MERGE
    assert end(library, stream)[0] is Status.STREAM_CAPTURE_INVALIDATED
    assert end(library, other)[0] is Status.STREAM_CAPTURE_INVALIDATED


def test_the_captures_state_is_told(library, stream, kernel):
    found, number, graph = ctypes.c_int(9), ctypes.c_uint64(), ctypes.c_void_p()
    nodes, data, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    outputs = [ctypes.byref(found), ctypes.byref(number), ctypes.byref(graph), ctypes.byref(nodes)]
    library.ok("cuStreamGetCaptureInfo_v3", stream, *outputs, ctypes.byref(data), ctypes.byref(count))
    assert (found.value, graph.value) == (0, None)
    assert begin(library, stream) is Status.SUCCESS
    assert library.launch(kernel, stream=stream) is Status.SUCCESS
    library.ok("cuStreamGetCaptureInfo_v3", stream, *outputs, ctypes.byref(data), ctypes.byref(count))
    assert (found.value, count.value) == (1, 1)
    assert EdgeDataStruct.from_address(data.value).type == 0
    node = ctypes.c_void_p.from_address(nodes.value).value
    first = number.value
    library.ok("cuStreamGetCaptureInfo_v2", stream, *outputs, ctypes.byref(count))
    assert ctypes.c_void_p.from_address(nodes.value).value == node
    library.ok("cuStreamGetCaptureInfo", stream, *outputs[:2])
    assert number.value == first
    kind = ctypes.c_int(9)
    library.ok("cuGraphNodeGetType", node, ctypes.byref(kind))
    assert kind.value == 0
    assert end(library, stream) == (Status.SUCCESS, graph.value)
    assert library("cuStreamGetCaptureInfo", stream, None, None) is Status.INVALID_VALUE


def test_synchronous_memory_calls_are_refused(library, simulator, stream):
    import torch

    tensor = simulator.runtime.allocate((8,), torch.int32, 0, 0)
    assert begin(library, stream) is Status.SUCCESS
    arguments = (tensor.data_ptr(), 0, ctypes.c_uint64(4))
    assert library("cuMemsetD8_v2", *arguments) is Status.STREAM_CAPTURE_UNSUPPORTED
    assert end(library, stream)[0] is Status.STREAM_CAPTURE_INVALIDATED
    library.ok("cuMemsetD8_v2", *arguments)
