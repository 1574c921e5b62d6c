"""Streams, captures, limits and memory of the simulated driver, as ``cuda.bindings`` calls them."""

import ctypes

import pytest
import torch
from cuda.bindings import driver

from trunnion.image import SyntheticKernel, pack_parameters, synthetic_cubin
from trunnion.sim.launch_attributes import LaunchAttributes
from trunnion.sim.status import Status
from trunnion.sim.trace import Launched, MemorySet, PersistingLinesReset, StreamAttributeSet, Synchronized

IMAGE = synthetic_cubin(
    (
        SyntheticKernel(name="scale", parameters=pack_parameters(((8, 8), (4, 4), (8, 8)))),
        SyntheticKernel(name="empty", static_smem_bytes=2048),
        SyntheticKernel(name="column", parameters=pack_parameters(((128, 64),))),
    )
)
KINDS = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_double)
ID = driver.CUlaunchAttributeID
LOCAL = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

pytestmark = pytest.mark.usefixtures("current_context")


def ok(result):
    status, *values = result
    assert status == driver.CUresult.CUDA_SUCCESS, status
    return values[0] if len(values) == 1 else values


@pytest.fixture
def stream(simulator):
    return ok(driver.cuStreamCreateWithPriority(1, -2))


def attribute(kind, **fields):
    made = driver.CUlaunchAttribute()
    made.id = kind
    for name, value in fields.items():
        setattr(made.value, name, value)
    return made


def config_of(stream=0, attributes=(), grid=4, block=64):
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = block, 1, 1
    config.hStream = driver.CUstream(int(stream))
    config.attrs, config.numAttrs = list(attributes), len(attributes)
    return config


def launch(kernel, config, values=(), kinds=()):
    return driver.cuLaunchKernelEx(config, driver.CUfunction(int(kernel)), (values, kinds), 0)


PDL = attribute(
    ID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, programmaticStreamSerializationAllowed=1
)


def test_a_launch_is_captured_read_back_and_run(simulator, kernels, stream):
    tensor = simulator.tensor(torch.ones(4))

    def scale(call):
        view = call.memory.view(call.pointer(0), "float32", (call.scalar(1, "int32"),))
        view.mul_(call.scalar(2, "float64"))

    kernel, values = kernels("scale"), (tensor.data_ptr(), 4, 3.0)
    simulator.register_body("scale", scale)
    try:
        ok(driver.cuStreamBeginCapture(stream, LOCAL))
        assert ok(driver.cuStreamIsCapturing(stream)) == 1
        ok(driver.cuMemsetD32Async(tensor.data_ptr(), 0x40000000, 4, stream))
        ok(launch(kernel, config_of(stream), values, KINDS))
        ok(launch(kernel, config_of(stream, (PDL,), grid=2), values, KINDS))
        assert ok(driver.cuStreamGetCaptureInfo(stream))[0] == 1
        graph = ok(driver.cuStreamEndCapture(stream))
        _, count = ok(driver.cuGraphGetNodes(graph))
        nodes, _ = ok(driver.cuGraphGetNodes(graph, count))
        kinds = [int(ok(driver.cuGraphNodeGetType(node))) for node in nodes]
        assert kinds == [2, 0, 0]
        memset = ok(driver.cuGraphMemsetNodeGetParams(nodes[0]))
        assert (int(memset.dst), memset.value, memset.width) == (tensor.data_ptr(), 0x40000000, 4)
        params = ok(driver.cuGraphKernelNodeGetParams(nodes[2]))
        assert (params.gridDimX, params.blockDimX, int(params.kern)) == (2, 64, int(kernel))
        assert ok(driver.cuKernelGetName(params.kern)) == b"scale"
        pointers = (ctypes.c_void_p * 3).from_address(int(params.kernelParams))
        assert ctypes.c_uint64.from_address(pointers[0]).value == tensor.data_ptr()
        assert ctypes.c_double.from_address(pointers[2]).value == 3.0
        priority = ok(driver.cuGraphKernelNodeGetAttribute(nodes[1], ID.CU_LAUNCH_ATTRIBUTE_PRIORITY))
        assert priority.priority == -2
        _, _, edges, _ = ok(driver.cuGraphGetEdges(graph, 2))
        assert [int(edge.type) for edge in edges] == [0, 1]
        executable = ok(driver.cuGraphInstantiate(graph, 0))
        ok(driver.cuGraphDestroy(graph))
        assert tensor.tolist() == [1] * 4
        ok(driver.cuGraphLaunch(executable, stream))
        assert tensor.tolist() == [18] * 4
        ok(driver.cuGraphExecDestroy(executable))
    finally:
        simulator.unregister_body("scale")


def test_an_invalidated_capture_has_no_graph(simulator, kernels, stream):
    ok(driver.cuStreamBeginCapture(stream, LOCAL))
    (status,) = driver.cuStreamSynchronize(stream)
    assert status == driver.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    (status,) = launch(kernels("empty"), config_of(stream))
    assert status == driver.CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
    status, graph = driver.cuStreamEndCapture(stream)
    assert status == driver.CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
    assert graph is None or int(graph) == 0


def test_the_threads_mode_is_exchanged(simulator):
    relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = ok(driver.cuThreadExchangeStreamCaptureMode(relaxed))
    assert ok(driver.cuThreadExchangeStreamCaptureMode(before)) == relaxed


def test_events_join_streams(simulator, kernels, stream):
    side, fork, join = ok(driver.cuStreamCreate(1)), ok(driver.cuEventCreate(2)), ok(driver.cuEventCreate(2))
    kernel = kernels("empty")
    ok(driver.cuStreamBeginCapture(stream, LOCAL))
    ok(driver.cuEventRecord(fork, stream))
    ok(driver.cuStreamWaitEvent(side, fork, 0))
    ok(launch(kernel, config_of(side)))
    ok(driver.cuEventRecord(join, side))
    ok(driver.cuStreamWaitEvent(stream, join, 0))
    ok(launch(kernel, config_of(stream)))
    graph = ok(driver.cuStreamEndCapture(stream))
    assert ok(driver.cuGraphGetEdges(graph))[-1] == 1
    ok(driver.cuEventSynchronize(join))


def test_a_streams_window_is_set_and_taken_away(simulator, kernels, stream):
    most = ok(
        driver.cuDeviceGetAttribute(
            driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0
        )
    )
    limit = driver.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE
    before = ok(driver.cuCtxGetLimit(limit))
    ok(driver.cuCtxSetLimit(limit, 2 * most))
    assert ok(driver.cuCtxGetLimit(limit)) == most
    value = driver.CUstreamAttrValue()
    window = value.accessPolicyWindow
    window.base_ptr, window.num_bytes, window.hitRatio = 0x4000, 4096, 0.5
    window.hitProp = driver.CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
    window.missProp = driver.CUaccessProperty.CU_ACCESS_PROPERTY_STREAMING
    kind = ID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
    ok(driver.cuStreamSetAttribute(stream, kind, value))
    held = ok(driver.cuStreamGetAttribute(stream, kind)).accessPolicyWindow
    assert (int(held.base_ptr), held.num_bytes, held.hitRatio) == (0x4000, 4096, 0.5)
    kernel = kernels("empty")
    ok(launch(kernel, config_of(stream)))
    window.num_bytes = 0
    ok(driver.cuStreamSetAttribute(stream, kind, value))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuCtxResetPersistingL2Cache())
    ok(driver.cuCtxSetLimit(limit, before))
    ok(launch(kernel, config_of(stream)))
    first, second = (event for event in simulator.trace if isinstance(event, Launched))
    assert (first.window.address, first.window.nbytes, second.window) == (0x4000, 4096, None)
    order = [type(event) for event in simulator.trace]
    assert order.index(StreamAttributeSet) < order.index(Launched) < order.index(Synchronized)
    assert order.index(Synchronized) < order.index(PersistingLinesReset)


def test_a_streams_answers(simulator, stream):
    assert ok(driver.cuStreamGetPriority(stream)) == -2
    assert ok(driver.cuStreamGetFlags(stream)) == 1
    assert int(ok(driver.cuStreamGetDevice(stream))) == 0
    assert int(ok(driver.cuStreamGetCtx(stream))) == simulator.state.contexts[0].handle
    assert ok(driver.cuStreamGetId(stream)) > 0
    assert ok(driver.cuCtxGetStreamPriorityRange()) == [0, -5]


def test_memory_is_set_and_copied(simulator, stream):
    tensor = simulator.runtime.allocate((4, 8), torch.int32, 0, 0)
    ok(driver.cuMemsetD2D32Async(tensor.data_ptr(), 32, 5, 2, 4, stream))
    assert tensor[:, :3].tolist() == [[5, 5, -1]] * 4
    ok(driver.cuMemsetD8(tensor.data_ptr(), 0, 32))
    assert tensor[0].tolist() == [0] * 8
    ok(driver.cuMemsetD2D16(tensor.data_ptr(), 32, 1, 2, 2))
    ok(driver.cuMemsetD16Async(tensor.data_ptr() + 64, 2, 2, stream))
    assert tensor[:, 0].tolist() == [0x10001, 0x10001, 0x20002, 5]
    host = (ctypes.c_int32 * 8)()
    ok(driver.cuMemcpyDtoHAsync(ctypes.addressof(host), tensor.data_ptr(), 32, stream))
    assert host[0] == 0x10001
    ok(driver.cuMemcpyHtoD(tensor.data_ptr() + 96, ctypes.addressof(host), 32))
    assert tensor[3].tolist() == list(host)
    (status,) = driver.cuMemsetD8Async(tensor.data_ptr(), 0, 129, stream)
    assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE
    assert sum(isinstance(event, MemorySet) for event in simulator.trace) == 4


@pytest.mark.parametrize("cooperative", [False, True])  # beside which no cluster may be preferred
def test_every_launch_attribute_arrives(simulator, kernels, stream, cooperative):
    cluster, wide = (
        attribute(ID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION),
        attribute(ID.CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION),
    )
    for dims, width in ((cluster.value.clusterDim, 2), (wide.value.preferredClusterDim, 4)):
        dims.x, dims.y, dims.z = width, 1, 1
    attributes = (
        cluster,
        attribute(ID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative=1) if cooperative else wide,
        attribute(ID.CU_LAUNCH_ATTRIBUTE_PRIORITY, priority=-4),
        attribute(
            ID.CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
            clusterSchedulingPolicyPreference=driver.CUclusterSchedulingPolicy.CU_CLUSTER_SCHEDULING_POLICY_SPREAD,
        ),
        attribute(
            ID.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
            memSyncDomain=driver.CUlaunchMemSyncDomain.CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE,
        ),
        attribute(ID.CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, sharedMemCarveout=25),
        PDL,
    )
    ok(launch(kernels("empty"), config_of(stream, attributes)))
    assert simulator.trace[-1].attributes == LaunchAttributes(
        cluster=(2, 1, 1),
        preferred_cluster=None if cooperative else (4, 1, 1),
        cooperative=True if cooperative else None,
        priority=-4,
        scheduling_policy=1,
        mem_sync_domain=1,
        carveout=25,
        programmatic_stream_serialization=True,
    )


def test_a_kernels_answers(simulator, kernels):
    kernel = kernels("empty")
    function = ok(driver.cuKernelGetFunction(kernel))
    shared = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
    dynamic = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    assert ok(driver.cuKernelGetAttribute(shared, kernel, 0)) == 2048
    assert ok(driver.cuFuncGetAttribute(dynamic, function)) == 49152 - 2048
    ok(driver.cuFuncSetAttribute(function, dynamic, 100000))
    assert ok(driver.cuFuncGetAttribute(dynamic, function)) == 100000
    assert ok(driver.cuFuncGetName(function)) == b"empty"
    assert ok(driver.cuKernelGetParamInfo(kernels("scale"), 2)) == [16, 8]
    assert ok(driver.cuFuncGetParamInfo(ok(driver.cuKernelGetFunction(kernels("scale"))), 1)) == [8, 4]


def test_occupancy(simulator, kernels):
    function = ok(driver.cuKernelGetFunction(kernels("empty")))
    assert ok(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, 1024, 0)) == 2
    assert ok(driver.cuOccupancyMaxPotentialClusterSize(function, config_of())) == 8
    cluster = attribute(ID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
    cluster.value.clusterDim.x, cluster.value.clusterDim.y, cluster.value.clusterDim.z = 2, 1, 1
    config = config_of(attributes=(cluster,), block=1024)
    assert ok(driver.cuOccupancyMaxActiveClusters(function, config)) == 132


def test_an_im2col_map_arrives_in_the_kernel(simulator, kernels):
    tensor = simulator.tensor(torch.arange(2 * 4 * 4 * 8.0).reshape(2, 4, 4, 8))
    u64, u32 = driver.cuuint64_t, driver.cuuint32_t
    none = driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE
    encoded = ok(
        driver.cuTensorMapEncodeIm2col(
            driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            4,
            tensor.data_ptr(),
            [u64(8), u64(4), u64(4), u64(2)],
            [u64(32), u64(128), u64(512)],
            [-1, 0],
            [-1, -2],
            8,
            16,
            [u32(1)] * 4,
            none,
            driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    columns = []
    body = lambda call: columns.append(call.im2col_map(0).load((0, -1, 0, 1), (1, 2)))  # noqa: E731 - one use
    simulator.register_body("column", body)
    try:
        ok(launch(kernels("column"), config_of(), (encoded,), (None,)))
    finally:
        simulator.unregister_body("column")
    simulator.raise_pending()
    # pixels begin at w = -1 and end before w = 3, in rows 0 and 1; the filter's position is w + 1, h + 2
    expected = torch.zeros(16, 8)
    expected[:8] = tensor.cpu()[1, 2:4, 0:4].reshape(8, 8)
    assert torch.equal(columns[0], expected)


def test_a_planted_fault_is_what_the_caller_sees(simulator, kernels, stream):
    kernel = kernels("empty")
    with simulator.fault("cuLaunchKernelEx", Status.LAUNCH_OUT_OF_RESOURCES, nth=2):
        found = [launch(kernel, config_of(stream))[0] for _ in range(3)]
    failed = driver.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    assert [status == failed for status in found] == [False, True, False]


def test_another_devices_rules(simulator, kernels):
    with simulator.configured(arch="sm_80", driver_version=12020):
        major = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
        assert ok(driver.cuDeviceGetAttribute(major, 0)) == 8
        assert ok(driver.cuDriverGetVersion()) == 12020
        library = ok(driver.cuLibraryLoadData(IMAGE, [], [], 0, [], [], 0))
        status, _ = driver.cuLibraryGetKernel(library, b"empty")
        assert status == driver.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
        ok(driver.cuLibraryUnload(library))
