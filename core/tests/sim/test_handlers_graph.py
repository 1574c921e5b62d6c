import ctypes
import itertools

import pytest

from trunnion.sim.abi import (
    AccessPolicyWindowStruct,
    LaunchAttributeId,
    LaunchAttributeStruct,
    LaunchAttributeValue,
)
from trunnion.sim.abi_graph import EdgeDataStruct, KernelNodeParamsStruct, MemsetNodeParamsStruct
from trunnion.sim.status import Status
from trunnion.sim.trace import GraphInstantiated, GraphLaunched, Launched, MemorySet

WINDOW, COOPERATIVE, CLUSTER, PROGRAMMATIC, PRIORITY = 1, 2, 4, 6, 8


def attribute(number, field, value):
    made = LaunchAttributeStruct(id=number)
    setattr(made.value, field, value)
    return made


PDL = attribute(PROGRAMMATIC, "programmaticStreamSerializationAllowed", 1)


@pytest.fixture
def stream(library):
    return library.handle("cuStreamCreate", 1)


@pytest.fixture
def tensor(simulator):
    import torch

    return simulator.runtime.allocate((8,), torch.int32, 0, 0)


@pytest.fixture
def captured(library, stream, tensor):
    """Capture a memset, a launch with attributes, and a dependent launch; return the graph."""
    cluster = LaunchAttributeStruct(id=CLUSTER)
    cluster.value.clusterDim.x, cluster.value.clusterDim.y, cluster.value.clusterDim.z = 2, 1, 1
    window = attribute(
        WINDOW, "accessPolicyWindow", AccessPolicyWindowStruct(tensor.data_ptr(), 32, 0.5, 2, 1)
    )
    kernel = library.kernel("plain")
    values = (ctypes.c_int32(7), ctypes.c_void_p(tensor.data_ptr()))
    library.ok("cuStreamBeginCapture_v2", stream, 1)
    library.ok("cuMemsetD32Async", tensor.data_ptr(), 5, ctypes.c_uint64(8), stream)
    attributes = (cluster, window, PDL)
    status = library.launch(kernel, stream=stream, values=values, grid=(4, 1, 1), attributes=attributes)
    assert status is Status.SUCCESS
    assert library.launch(kernel, stream=stream, values=values, attributes=(PDL,)) is Status.SUCCESS
    return ended(library, stream)


def ended(library, stream):
    graph = ctypes.c_void_p()
    library.ok("cuStreamEndCapture", stream, ctypes.byref(graph))
    return graph.value


def listed(library, name, handle, outputs=1):
    """Ask for a count, then for that many entries of each array."""
    count = ctypes.c_size_t()
    library.ok(name, handle, *[None] * outputs, ctypes.byref(count))
    arrays = [(ctypes.c_void_p * count.value)() for _ in range(outputs)]
    library.ok(name, handle, *arrays, ctypes.byref(count))
    return [list(array) for array in arrays]


def test_nodes_and_edges_are_told(library, captured):
    (nodes,) = listed(library, "cuGraphGetNodes", captured)
    assert len(nodes) == 3
    assert listed(library, "cuGraphGetRootNodes", captured) == [nodes[:1]]
    kinds = []
    for node in nodes:
        kind = ctypes.c_int(9)
        library.ok("cuGraphNodeGetType", node, ctypes.byref(kind))
        kinds.append(kind.value)
    assert kinds == [2, 0, 0]
    count = ctypes.c_size_t(5)
    sources, targets = ((ctypes.c_void_p * 5)() for _ in range(2))
    assert library("cuGraphGetEdges", captured, sources, targets, ctypes.byref(count)) is Status.LOSSY_QUERY
    data = (EdgeDataStruct * 5)()
    library.ok("cuGraphGetEdges_v2", captured, sources, targets, data, ctypes.byref(count))
    assert count.value == 2
    assert list(zip(sources, targets, strict=True))[:3] == [
        *itertools.pairwise(nodes),
        (None, None),
    ]
    # a memset triggers nothing: only between kernels is the dependency programmatic
    assert [(row.type, row.from_port, row.to_port) for row in data[:2]] == [(0, 0, 0), (1, 1, 0)]
    count = ctypes.c_size_t(1)
    library.ok("cuGraphNodeGetDependencies_v2", nodes[2], sources, data, ctypes.byref(count))
    assert (count.value, sources[0], data[0].type) == (1, nodes[1], 1)
    assert listed(library, "cuGraphNodeGetDependencies", nodes[1]) == [nodes[:1]]


def test_a_kernel_node_is_read_back(library, simulator, captured, tensor):
    (nodes,) = listed(library, "cuGraphGetNodes", captured)
    params = KernelNodeParamsStruct()
    library.ok("cuGraphKernelNodeGetParams_v2", nodes[1], ctypes.byref(params))
    assert (params.gridDimX, params.blockDimX, params.sharedMemBytes) == (4, 32, 0)
    assert params.func is None
    name = ctypes.c_char_p()
    library.ok("cuKernelGetName", ctypes.byref(name), params.kern)
    assert name.value == b"plain"
    pointers = (ctypes.c_void_p * 2).from_address(params.kernelParams)
    assert ctypes.c_int32.from_address(pointers[0]).value == 7
    assert ctypes.c_uint64.from_address(pointers[1]).value == tensor.data_ptr()
    assert params.ctx == simulator.state.contexts[0].handle
    assert library("cuGraphKernelNodeGetParams", nodes[1], ctypes.byref(params)) is Status.INVALID_VALUE
    assert library("cuGraphKernelNodeGetParams_v2", nodes[0], ctypes.byref(params)) is Status.INVALID_VALUE


def test_a_functions_node_is_read_back_by_either_version(library, stream):
    function = library.handle("cuKernelGetFunction", library.kernel("empty"))
    library.ok("cuStreamBeginCapture_v2", stream, 2)
    assert library.launch(function, stream=stream) is Status.SUCCESS
    (nodes,) = listed(library, "cuGraphGetNodes", ended(library, stream))
    params = KernelNodeParamsStruct(kern=0x77)
    library.ok("cuGraphKernelNodeGetParams", nodes[0], ctypes.byref(params))
    assert (params.func, params.kern) == (function, 0x77)
    library.ok("cuGraphKernelNodeGetParams_v2", nodes[0], ctypes.byref(params))
    assert (params.func, params.kern) == (function, None)


def test_a_kernel_nodes_attributes_are_read_back(library, captured, tensor):
    (nodes,) = listed(library, "cuGraphGetNodes", captured)
    value = LaunchAttributeValue()
    library.ok("cuGraphKernelNodeGetAttribute", nodes[1], CLUSTER, ctypes.byref(value))
    assert (value.clusterDim.x, value.clusterDim.y, value.clusterDim.z) == (2, 1, 1)
    library.ok("cuGraphKernelNodeGetAttribute", nodes[1], WINDOW, ctypes.byref(value))
    window = value.accessPolicyWindow
    assert (window.base_ptr, window.num_bytes, window.hitRatio) == (tensor.data_ptr(), 32, 0.5)
    for number in (WINDOW, COOPERATIVE, CLUSTER, PRIORITY):
        library.ok("cuGraphKernelNodeGetAttribute", nodes[2], number, ctypes.byref(value))
        assert bytes(value) == bytes(64)
    for number in (PROGRAMMATIC, LaunchAttributeId.PREFERRED_SHARED_MEMORY_CARVEOUT, 99):
        status = library("cuGraphKernelNodeGetAttribute", nodes[1], number, ctypes.byref(value))
        assert status is Status.INVALID_VALUE


def test_a_memset_node_is_read_back(library, captured, tensor):
    (nodes,) = listed(library, "cuGraphGetNodes", captured)
    params = MemsetNodeParamsStruct()
    library.ok("cuGraphMemsetNodeGetParams", nodes[0], ctypes.byref(params))
    assert (params.dst, params.value, params.elementSize) == (tensor.data_ptr(), 5, 4)
    assert (params.width, params.height, params.pitch) == (8, 1, 0)
    assert library("cuGraphMemsetNodeGetParams", nodes[1], ctypes.byref(params)) is Status.INVALID_VALUE


def test_a_launched_graph_runs(library, simulator, captured, tensor):
    calls = []
    simulator.register_body("plain", calls.append)
    try:
        executable = library.handle("cuGraphInstantiateWithFlags", captured, ctypes.c_uint64(0))
        library.ok("cuGraphUpload", executable, None)
        library.ok("cuGraphDestroy", captured)
        assert tensor.tolist() == [-1] * 8
        simulator.clear_trace()
        other = library.handle("cuStreamCreate", 1)
        library.ok("cuGraphLaunch", executable, other)
        library.ok("cuGraphLaunch", executable, None)
    finally:
        simulator.unregister_body("plain")
    assert tensor.tolist() == [5] * 8
    assert [call.grid[0] for call in calls] == [4, 1, 4, 1]
    assert [type(event) for event in simulator.trace] == [GraphLaunched, MemorySet, Launched, Launched] * 2
    assert {event.stream for event in simulator.trace[:4]} == {other}
    library.ok("cuGraphExecDestroy", executable)
    assert library("cuGraphLaunch", executable, None) is Status.INVALID_HANDLE
    assert library("cuGraphDestroy", captured) is Status.INVALID_HANDLE
    assert (
        library("cuGraphGetNodes", captured, None, ctypes.byref(ctypes.c_size_t())) is Status.INVALID_HANDLE
    )


def test_a_graph_is_captured_as_a_node(library, simulator, stream, captured, tensor):
    executable = library.handle("cuGraphInstantiateWithFlags", captured, ctypes.c_uint64(8))
    assert isinstance(simulator.trace[-1], GraphInstantiated)
    library.ok("cuStreamBeginCapture_v2", stream, 1)
    library.ok("cuGraphLaunch", executable, stream)
    outer = library.handle("cuGraphInstantiateWithFlags", ended(library, stream), ctypes.c_uint64(0))
    assert tensor.tolist() == [-1] * 8
    library.ok("cuGraphLaunch", outer, stream)
    assert tensor.tolist() == [5] * 8


def test_wrong_flags_are_refused(library, captured):
    out = ctypes.c_void_p()
    status = library("cuGraphInstantiateWithFlags", ctypes.byref(out), captured, ctypes.c_uint64(4))
    assert status is Status.INVALID_VALUE


def test_a_graph_does_not_outlive_its_library(library, simulator, stream):
    image = library.library()
    kernel = library.kernel("empty", image)
    library.ok("cuStreamBeginCapture_v2", stream, 1)
    assert library.launch(kernel, stream=stream) is Status.SUCCESS
    executable = library.handle("cuGraphInstantiateWithFlags", ended(library, stream), ctypes.c_uint64(0))
    library.ok("cuLibraryUnload", image)
    assert library("cuGraphLaunch", executable, stream) is Status.INVALID_HANDLE
    assert "unloaded" in simulator.trace[-1].reason
