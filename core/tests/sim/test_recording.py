import ctypes
import gc
import threading

import pytest
import torch

from trunnion.errors import ArgumentTypeError, ArgumentValueError, DriverError, LifecycleError
from trunnion.sim.graph import NodeKind
from trunnion.sim.status import Status
from trunnion.sim.trace import Captured, GraphLaunched, Launched, MemorySet


@pytest.fixture
def tensor(simulator):
    return simulator.runtime.allocate((4,), torch.int32, 0, 0)


def test_a_block_becomes_a_graph(library, simulator, tensor):
    kernel, address = library.kernel("empty"), tensor.data_ptr()
    with simulator.capture() as graph:
        stream = simulator.runtime.current_stream(0)
        library.ok("cuMemsetD32Async", address, 3, ctypes.c_uint64(4), stream)
        assert library.launch(kernel, stream=stream) is Status.SUCCESS
        assert graph.nodes == ()
    assert simulator.runtime.current_stream(0) == 0
    assert [node.kind for node in graph.nodes] == [NodeKind.MEMSET, NodeKind.KERNEL]
    assert isinstance(graph.nodes[0].event, MemorySet)
    assert graph.nodes[1].event.kernel == "empty"
    assert graph.edges == ((0, 1, False),)
    assert tensor.tolist() == [-1] * 4
    simulator.clear_trace()
    graph.launch()
    graph.launch(0)
    assert tensor.tolist() == [3] * 4
    launches = [event for event in simulator.trace if isinstance(event, Launched)]
    assert [event.stream for event in launches] == [stream, 0]
    assert sum(isinstance(event, GraphLaunched) for event in simulator.trace) == 2


def test_a_given_stream_is_captured(library, simulator):
    stream, kernel = simulator.new_stream(1), library.kernel("empty")
    with simulator.capture(stream, device=1) as graph:
        assert simulator.runtime.current_stream(1) == stream == graph.stream
        assert library.launch(kernel, stream=stream) is Status.SUCCESS
        assert isinstance(simulator.trace[-1], Captured)
    assert graph.nodes[0].event.device == 1


def test_what_invalidates_a_capture_is_named(library, simulator):
    with pytest.raises(DriverError, match="cuStreamSynchronize") as caught, simulator.capture() as graph:
        assert library("cuStreamSynchronize", graph.stream) is Status.STREAM_CAPTURE_UNSUPPORTED
    assert caught.value.code == Status.STREAM_CAPTURE_INVALIDATED
    with pytest.raises(ArgumentValueError):
        graph.launch()


def test_an_error_in_the_block_ends_the_capture(library, simulator):
    stream = simulator.new_stream()
    with pytest.raises(ZeroDivisionError), simulator.capture(stream):
        raise ZeroDivisionError
    assert library.launch(library.kernel("empty"), stream=stream) is Status.SUCCESS
    assert isinstance(simulator.trace[-1], Launched)


def test_wrong_captures_are_refused(library, simulator):
    with pytest.raises(ArgumentValueError, match="relaxed"), simulator.capture(mode="local"):
        pass
    with pytest.raises(DriverError) as caught, simulator.capture(stream=1):
        pass
    assert caught.value.code == Status.STREAM_CAPTURE_UNSUPPORTED


@pytest.mark.parametrize(
    ("argument", "given", "kind"),
    [
        ("stream", "x", ArgumentTypeError),
        ("stream", [1], ArgumentTypeError),
        ("stream", True, ArgumentTypeError),
        ("stream", -1, ArgumentValueError),
        ("device", "cuda", ArgumentTypeError),
        ("device", 9, ArgumentValueError),
        ("mode", [1], ArgumentTypeError),
        ("mode", None, ArgumentTypeError),
    ],
)
def test_wrong_arguments_of_a_capture_are_refused_by_their_names(simulator, argument, given, kind):
    before = _held(simulator)
    with pytest.raises(kind, match=f"'{argument}'"), simulator.capture(**{argument: given}):
        pass
    assert _held(simulator) == before


@pytest.mark.parametrize(
    ("handle", "kind"),
    [
        ("x", ArgumentTypeError),
        (None, ArgumentTypeError),
        (True, ArgumentTypeError),
        (-1, ArgumentValueError),
    ],
)
def test_a_current_stream_is_a_handle(simulator, handle, kind):
    with pytest.raises(kind, match="'handle'"), simulator.stream(handle):
        pass
    assert simulator.runtime.current_stream(0) == 0


def test_an_error_of_a_body_comes_out_of_the_graph(library, simulator):
    kernel = library.kernel("empty")
    with simulator.capture() as graph:
        assert library.launch(kernel, stream=graph.stream) is Status.SUCCESS

    def broken(call):
        raise ZeroDivisionError

    simulator.register_body("empty", broken)
    try:
        with pytest.raises(ZeroDivisionError):
            graph.launch()
    finally:
        simulator.unregister_body("empty")


def test_threads_capture_each_its_own_stream(library, simulator):
    kernel = library.kernel("empty")
    streams = [simulator.new_stream(number % 2) for number in range(8)]
    found = []

    def work(number):
        for _ in range(10):
            with simulator.capture(streams[number], device=number % 2) as graph:
                for width in range(1, 6):
                    assert (
                        library.launch(kernel, stream=graph.stream, grid=(width, 1, number + 1))
                        is Status.SUCCESS
                    )
            graph.launch()
            found.append((number, [node.event.grid for node in graph.nodes], len(graph.edges)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [(n, [(width, 1, n + 1) for width in range(1, 6)], 4) for n in range(8) for _ in range(10)]
    assert sorted(found) == expected
    launches = [event for event in simulator.trace if isinstance(event, Launched)]
    assert len(launches) == 8 * 10 * 5
    assert {(event.stream, event.device, event.grid[2]) for event in launches} == {
        (stream, number % 2, number + 1) for number, stream in enumerate(streams)
    }


def test_a_graph_keeps_what_was_allocated_for_it(library, simulator):
    with simulator.capture() as graph:
        scratch = simulator.runtime.allocate((4,), torch.int32, 0, graph.stream)
        address = scratch.data_ptr()
        library.ok("cuMemsetD32Async", address, 3, ctypes.c_uint64(4), graph.stream)
    del scratch
    graph.launch()
    assert simulator.memory.find(address) is not None


@pytest.mark.parametrize("kind", ["copy", "fill"])
def test_a_node_over_memory_that_is_gone_is_called_by_its_kind(library, simulator, tensor, kind):
    """No kernel ran: it is the graph's copy that reads what was freed since."""
    gone = simulator.runtime.allocate((4,), torch.int32, 0, 0)
    address, count = gone.data_ptr(), ctypes.c_uint64(4)
    stream = simulator.new_stream()
    with simulator.capture(stream) as graph:
        if kind == "copy":
            size = ctypes.c_uint64(16)
            source, target = map(ctypes.c_uint64, (address, tensor.data_ptr()))
            library.ok("cuMemcpyDtoDAsync_v2", target, source, size, graph.stream)
        else:
            library.ok("cuMemsetD32Async", ctypes.c_uint64(address), 3, count, graph.stream)
    del gone
    with pytest.raises(DriverError, match="in no live allocation") as caught:
        graph.launch()
    assert (caught.value.call, caught.value.code) == (kind, Status.ILLEGAL_ADDRESS)


@pytest.mark.parametrize("stream", [0, 1, 2])
def test_a_default_stream_is_its_devices(simulator, stream):
    if stream != 2:
        with pytest.raises(DriverError) as caught, simulator.capture(stream, device=1):
            pass
        assert caught.value.code_name == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
        return
    with simulator.current(0), simulator.capture(stream, device=1) as graph:
        assert simulator.state.current().device.ordinal == 1
    graph.launch()
    assert [event.device for event in simulator.trace if isinstance(event, GraphLaunched)] == [1]


def _held(simulator):
    """What a device allocated, and everything that a handle stands for."""
    gc.collect()
    return simulator.memory.used(0), set(simulator.state.handled)


@pytest.fixture
def allocating(library, simulator):
    """What allocates, and launches a kernel, on the stream that captures."""
    kernel = library.kernel("empty")

    def work(graph):
        scratch = simulator.runtime.allocate((4,), torch.int32, 0, graph.stream)
        assert library.launch(kernel, stream=graph.stream) is Status.SUCCESS
        return scratch

    return work


@pytest.mark.parametrize("launched", [False, True])
@pytest.mark.parametrize("way", ["close", "collect"])
def test_a_graph_that_is_done_with_holds_nothing(simulator, allocating, way, launched):
    before = _held(simulator)
    with simulator.capture() as graph:
        allocating(graph)
    if launched:
        graph.launch()
    assert _held(simulator) != before
    if way == "collect":
        del graph
    else:
        graph.close()
        graph.close()
        assert len(graph.nodes) == 1
        with pytest.raises(LifecycleError, match="capture"):
            graph.launch()
    assert _held(simulator) == before


@pytest.mark.parametrize("end", ["error", "invalid", "unjoined", "refused", "mode"])
def test_a_capture_that_fails_holds_nothing(library, simulator, allocating, end):
    """Though who began it keeps what it was to be, and an event that was recorded in it."""
    event, side = library.handle("cuEventCreate", 0), library.handle("cuStreamCreate", 1)
    before, begun = _held(simulator), []
    stream, mode = (1 if end == "refused" else None), ("local" if end == "mode" else "relaxed")

    def capture():
        with simulator.capture(stream, mode=mode) as graph:
            begun.append(graph)
            allocating(graph)
            library.ok("cuEventRecord", event, graph.stream)
            if end == "error":
                raise ZeroDivisionError
            if end == "invalid":
                library("cuStreamSynchronize", graph.stream)
            else:
                library.ok("cuStreamWaitEvent", side, event, 0)
                library.ok("cuMemsetD8Async", ctypes.c_uint64(1), 0, ctypes.c_uint64(0), side)

    with pytest.raises((ZeroDivisionError, DriverError, ArgumentValueError)):
        capture()
    assert len(begun) == (end not in {"refused", "mode"})
    assert _held(simulator) == before


def test_a_stream_that_was_given_outlives_its_graph(library, simulator, allocating):
    stream = simulator.new_stream()
    with simulator.capture(stream) as graph:
        allocating(graph)
    graph.close()
    library.ok("cuStreamSynchronize", stream)
