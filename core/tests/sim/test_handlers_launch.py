import ctypes
import threading

import pytest

from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.sim.abi import AccessPolicyWindowStruct, LaunchAttributeId, LaunchAttributeStruct
from trunnion.sim.launch_attributes import AccessProperty, LaunchAttributes, WindowAttribute
from trunnion.sim.objects import PER_THREAD_STREAM
from trunnion.sim.status import Status
from trunnion.sim.trace import CallRefused, Launched


def attribute(number, field=None, value=None):
    made = LaunchAttributeStruct(id=number)
    if field is not None:
        setattr(made.value, field, value)
    return made


def cluster(x, y=1, z=1):
    made = attribute(LaunchAttributeId.CLUSTER_DIMENSION)
    made.value.clusterDim.x, made.value.clusterDim.y, made.value.clusterDim.z = x, y, z
    return made


def window(*fields):
    return attribute(
        LaunchAttributeId.ACCESS_POLICY_WINDOW, "accessPolicyWindow", AccessPolicyWindowStruct(*fields)
    )


COOPERATIVE = attribute(LaunchAttributeId.COOPERATIVE, "cooperative", 1)


def launched(simulator):
    return [event for event in simulator.trace if isinstance(event, Launched)]


def test_a_launch_copies_exactly_the_bytes_of_each_parameter(library, simulator):
    number, pointer = ctypes.c_int64(-2), ctypes.c_void_p(0x1122334455667788)
    status = library.launch(
        library.kernel("plain"), grid=(2, 3, 4), block=(8, 4, 2), values=(number, pointer)
    )
    assert status is Status.SUCCESS
    (event,) = launched(simulator)
    assert event.parameters == (b"\xfe\xff\xff\xff", bytes.fromhex("8877665544332211"))
    assert (event.kernel, event.device, event.stream) == ("plain", 0, 0)
    assert (event.grid, event.block, event.cluster) == ((2, 3, 4), (8, 4, 2), None)
    assert event.attributes == LaunchAttributes()


def test_the_older_entry_point_launches_too(library, simulator):
    function = library.handle("cuKernelGetFunction", library.kernel("empty"))
    stream = library.handle("cuStreamCreate", 1)
    library.ok("cuLaunchKernel", function, 1, 2, 3, 4, 5, 6, 1000, stream, None, None)
    (event,) = launched(simulator)
    assert (event.grid, event.block, event.dynamic_smem_bytes) == ((1, 2, 3), (4, 5, 6), 1000)
    assert event.stream == stream


# As an H200 under driver 580 answers.
@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"grid": (0, 1, 1)}, Status.INVALID_VALUE),
        ({"grid": (1, 0, 1)}, Status.INVALID_VALUE),
        ({"grid": ((1 << 31) - 1, 65535, 65535)}, Status.SUCCESS),
        ({"grid": (1 << 31, 1, 1)}, Status.INVALID_VALUE),
        ({"grid": (1, 65536, 1)}, Status.INVALID_VALUE),
        ({"grid": (1, 1, 65536)}, Status.INVALID_VALUE),
        ({"block": (0, 1, 1)}, Status.INVALID_VALUE),
        ({"block": (1024, 1, 1)}, Status.SUCCESS),
        ({"block": (1, 1024, 1)}, Status.SUCCESS),
        ({"block": (1025, 1, 1)}, Status.INVALID_VALUE),
        ({"block": (32, 33, 1)}, Status.INVALID_VALUE),
        ({"block": (1, 1, 64)}, Status.SUCCESS),
        ({"block": (1, 1, 65)}, Status.INVALID_VALUE),
        ({"smem": 49152}, Status.SUCCESS),
        ({"smem": 49153}, Status.INVALID_VALUE),
        ({"attributes": (attribute(LaunchAttributeId.IGNORE),)}, Status.SUCCESS),
        ({"attributes": (attribute(99),)}, Status.INVALID_VALUE),
        ({"attributes": (attribute(LaunchAttributeId.PROGRAMMATIC_EVENT),)}, Status.NOT_SUPPORTED),
        ({"attributes": (COOPERATIVE,)}, Status.SUCCESS),
        ({"attributes": (COOPERATIVE,), "grid": (100000, 1, 1)}, Status.COOPERATIVE_LAUNCH_TOO_LARGE),
        ({"attributes": (cluster(2),), "grid": (4, 1, 1)}, Status.SUCCESS),
        ({"attributes": (cluster(2),), "grid": (3, 1, 1)}, Status.INVALID_CLUSTER_SIZE),
        ({"attributes": (cluster(0),), "grid": (4, 1, 1)}, Status.INVALID_CLUSTER_SIZE),
        ({"attributes": (cluster(16),), "grid": (16, 1, 1)}, Status.INVALID_CLUSTER_SIZE),
        ({"attributes": (window(0x1000, 1 << 20, 0.5, 2, 1),)}, Status.SUCCESS),
        ({"attributes": (window(0x1000, 1 << 20, 1.5, 2, 1),)}, Status.INVALID_VALUE),
        ({"attributes": (window(0x1000, 1 << 20, -1.0, 2, 1),)}, Status.INVALID_VALUE),
        ({"attributes": (window(0x1000, 1 << 30, 0.5, 2, 1),)}, Status.INVALID_VALUE),
        ({"attributes": (window(0x1000, 1 << 20, 0.5, 2, 2),)}, Status.INVALID_VALUE),
    ],
)
def test_limits(library, simulator, fields, status):
    assert library.launch(library.kernel("empty"), **fields) is status
    assert len(launched(simulator)) == (status is Status.SUCCESS)
    if status is not Status.SUCCESS:
        assert isinstance(simulator.trace[-1], CallRefused)


def test_a_wrong_hit_property_is_refused(library):
    # The documentation knows three; the H200's driver took a fourth in silence.
    attributes = (window(0x1000, 1 << 20, 0.5, 3, 1),)
    assert library.launch(library.kernel("empty"), attributes=attributes) is Status.INVALID_VALUE


def test_shared_memory_is_raised_for_one_kernel_and_device(library):
    kernel = library.kernel("empty")
    library.ok("cuKernelSetAttribute", 8, 100000, kernel, 0)
    assert library.launch(kernel, smem=100000) is Status.SUCCESS
    assert library.launch(kernel, smem=100001) is Status.INVALID_VALUE
    assert library.launch(library.kernel("empty"), smem=100000) is Status.INVALID_VALUE
    library.context(1)
    assert library.launch(kernel, smem=100000) is Status.INVALID_VALUE
    library.ok("cuKernelSetAttribute", 8, 1024, kernel, 1)
    assert library.launch(kernel, smem=1025) is Status.INVALID_VALUE


def test_a_block_fits_the_kernels_own_bounds(library):
    bounded, required = library.kernel("bounded"), library.kernel("required")
    assert library.launch(bounded, block=(64, 2, 1)) is Status.SUCCESS
    assert library.launch(bounded, block=(129, 1, 1)) is Status.INVALID_VALUE
    assert library.launch(required, block=(64, 1, 1)) is Status.SUCCESS
    assert library.launch(required, block=(32, 1, 1)) is Status.INVALID_VALUE


@pytest.mark.parametrize(
    ("registers", "threads", "fits"),
    [
        (64, 1024, True),
        (65, 1024, False),  # 72 of each thread: registers are given out by eights
        (72, 896, True),  # 28 warps of 2304
        (72, 897, False),  # 29 warps, though the last has one thread
        (255, 256, True),
        (255, 257, False),
        (None, 1024, True),
    ],
)
def test_a_blocks_registers_fit_the_multiprocessor(library, simulator, registers, threads, fits):
    image = synthetic_cubin([SyntheticKernel(name="hungry", registers=registers)])
    status = library.launch(library.kernel("hungry", library.library(image)), block=(threads, 1, 1))
    assert status is (Status.SUCCESS if fits else Status.LAUNCH_OUT_OF_RESOURCES)
    assert len(launched(simulator)) == fits


def test_a_kernels_own_cluster_holds(library, simulator):
    kernel = library.kernel("clustered")
    assert library.launch(kernel, grid=(4, 1, 1)) is Status.SUCCESS
    assert launched(simulator)[-1].cluster == (2, 1, 1)
    assert library.launch(kernel, grid=(4, 1, 1), attributes=(cluster(2),)) is Status.SUCCESS
    assert library.launch(kernel, grid=(3, 1, 1)) is Status.INVALID_CLUSTER_SIZE
    assert library.launch(kernel, grid=(4, 1, 1), attributes=(cluster(4),)) is Status.INVALID_CLUSTER_SIZE


def test_a_grid_may_count_clusters(library):
    """As it does of a kernel with the second part of ``__block_size__`` (measured: an H100, driver 580)."""
    counting = SyntheticKernel(name="counting", cluster=(2, 1, 1), grid_counts_clusters=True)
    kernel = library.kernel("counting", library.library(synthetic_cubin([counting])))
    for attributes in ((), (cluster(2),)):
        assert library.launch(kernel, grid=(3, 1, 1), attributes=attributes) is Status.SUCCESS
    assert library.launch(kernel, grid=(4, 1, 1), attributes=(cluster(4),)) is Status.INVALID_CLUSTER_SIZE


@pytest.mark.parametrize(("static", "dynamic"), [(20000, 29152), (60000, 172448), (232448, 0)])
def test_what_is_left_beside_static_shared_memory_that_nobody_raised(library, static, dynamic):
    """Where the static memory alone is more than others have to ask for, all is (measured: an H100, driver 580)."""
    image = synthetic_cubin([SyntheticKernel(name="static", static_smem_bytes=static)])
    kernel = library.kernel("static", library.library(image))
    assert library.launch(kernel, smem=dynamic) is Status.SUCCESS
    assert library.launch(kernel, smem=dynamic + 1) is Status.INVALID_VALUE


def test_more_than_eight_blocks_need_the_attribute(library):
    kernel = library.kernel("empty")
    library.ok("cuKernelSetAttribute", 14, 1, kernel, 0)
    assert library.launch(kernel, grid=(16, 1, 1), attributes=(cluster(16),)) is Status.SUCCESS
    assert library.launch(kernel, grid=(32, 1, 1), attributes=(cluster(32),)) is Status.INVALID_CLUSTER_SIZE


def test_attributes_are_decoded(library, simulator):
    attributes = (
        cluster(2),
        COOPERATIVE,
        attribute(
            LaunchAttributeId.PROGRAMMATIC_STREAM_SERIALIZATION, "programmaticStreamSerializationAllowed", 1
        ),
        attribute(LaunchAttributeId.PRIORITY, "priority", -5),
        window(0x7000, 4096, 0.25, 2, 1),
    )
    assert library.launch(library.kernel("empty"), grid=(4, 1, 1), attributes=attributes) is Status.SUCCESS
    event = launched(simulator)[0]
    assert (event.window, event.priority) == (event.attributes.window, -5)
    assert event.attributes == LaunchAttributes(
        cluster=(2, 1, 1),
        cooperative=True,
        programmatic_stream_serialization=True,
        priority=-5,
        window=WindowAttribute(0x7000, 4096, 0.25, AccessProperty.PERSISTING, AccessProperty.STREAMING),
    )


def test_bad_parameter_pointers_are_refused_and_not_followed(library):
    kernel = library.kernel("plain")
    assert library.launch(kernel) is Status.INVALID_VALUE
    array = (ctypes.c_void_p * 2)(ctypes.addressof(ctypes.c_int(1)), 0x10)
    arguments = (kernel, 1, 1, 1, 1, 1, 1, 0, None, array, None)
    assert library("cuLaunchKernel", *arguments) is Status.INVALID_VALUE
    assert library("cuLaunchKernelEx", None, kernel, None, None) is Status.INVALID_VALUE


def packed(data, size=None, keys=(1, 2)):
    """Return what ``extra`` points at, and what must live as long."""
    buffer = ctypes.create_string_buffer(data, len(data))
    count = ctypes.c_size_t(len(data) if size is None else size)
    held = {1: ctypes.addressof(buffer), 2: ctypes.addressof(count)}
    words = [word for key in keys for word in (key, held.get(key, 0))]
    return (ctypes.c_void_p * (len(words) + 1))(*words, 0), buffer, count


def test_parameters_arrive_in_one_buffer_too(library, simulator):
    extra, *held = packed(bytes(range(16)))
    assert library.launch(library.kernel("plain"), extra=extra) is Status.SUCCESS
    assert launched(simulator)[0].parameters == (bytes(range(4)), bytes(range(8, 16)))
    assert held


@pytest.mark.parametrize("wrong", [{"size": 15}, {"keys": (1,)}, {"keys": (2,)}, {"keys": (1, 2, 7)}])
def test_a_wrong_buffer_of_parameters_is_refused(library, simulator, wrong):
    extra, *held = packed(bytes(16), **wrong)
    assert library.launch(library.kernel("plain"), extra=extra) is Status.INVALID_VALUE
    assert held
    assert not launched(simulator)


def test_parameters_come_by_one_way(library):
    extra, *held = packed(bytes(16))
    values = (ctypes.c_int(), ctypes.c_void_p())
    assert library.launch(library.kernel("plain"), extra=extra, values=values) is Status.INVALID_VALUE
    assert held


def in_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


# As an H200 under driver 580 answers.
def test_a_thread_with_no_context_launches_on_real_streams_only(library, simulator):
    kernel, stream = library.kernel("empty"), library.handle("cuStreamCreate", 1)
    assert in_thread(lambda: library.launch(kernel)) is Status.INVALID_CONTEXT
    assert in_thread(lambda: library.launch(kernel, stream=stream)) is Status.SUCCESS
    assert launched(simulator)[-1].device == 0


def test_a_stream_decides_the_device(library, simulator):
    kernel, stream = library.kernel("empty"), library.handle("cuStreamCreate", 1)
    function = library.handle("cuKernelGetFunction", kernel)
    library.context(1)
    assert library.launch(kernel, stream=stream) is Status.SUCCESS
    assert launched(simulator)[-1].device == 0
    assert library.launch(kernel) is Status.SUCCESS
    assert launched(simulator)[-1].device == 1
    assert library.launch(function, stream=stream) is Status.SUCCESS


def test_a_function_does_not_run_on_another_devices_stream(library):
    kernel, stream = library.kernel("empty"), library.handle("cuStreamCreate", 1)
    first = library.handle("cuKernelGetFunction", kernel)
    library.context(1)
    second = library.handle("cuKernelGetFunction", kernel)
    assert library.launch(first) is Status.INVALID_HANDLE
    assert library.launch(second, stream=stream) is Status.INVALID_HANDLE


@pytest.mark.parametrize("handle", [0x7777_0000_0000, 12345])
def test_handles_that_are_none(library, handle):
    kernel = library.kernel("empty")
    assert library.launch(handle) is Status.INVALID_HANDLE
    assert library.launch(kernel, stream=handle) is Status.INVALID_HANDLE


def test_the_null_stream_of_a_per_thread_call_is_the_threads(library, simulator):
    kernel = library.kernel("empty")
    assert library.launch(kernel, entry="cuLaunchKernelEx_ptsz") is Status.SUCCESS
    library.ok("cuLaunchKernel_ptsz", kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    assert [event.stream for event in launched(simulator)] == [PER_THREAD_STREAM] * 2


def preferred(x, y=1, z=1):
    made = attribute(LaunchAttributeId.PREFERRED_CLUSTER_DIMENSION)
    dims = made.value.preferredClusterDim
    dims.x, dims.y, dims.z = x, y, z
    return made


@pytest.mark.parametrize(
    ("made", "field", "value"),
    [
        (attribute(LaunchAttributeId.MEM_SYNC_DOMAIN, "memSyncDomain", 1), "mem_sync_domain", 1),
        (
            attribute(
                LaunchAttributeId.CLUSTER_SCHEDULING_POLICY_PREFERENCE,
                "clusterSchedulingPolicyPreference",
                2,
            ),
            "scheduling_policy",
            2,
        ),
        (
            attribute(LaunchAttributeId.PREFERRED_SHARED_MEMORY_CARVEOUT, "sharedMemCarveout", 50),
            "carveout",
            50,
        ),
    ],
)
def test_every_attribute_is_recorded(library, simulator, made, field, value):
    assert library.launch(library.kernel("empty"), grid=(8, 2, 1), attributes=(made,)) is Status.SUCCESS
    (event,) = launched(simulator)
    assert event.attributes == LaunchAttributes(**{field: value})


@pytest.mark.parametrize(
    ("number", "field", "value"),
    [
        (LaunchAttributeId.MEM_SYNC_DOMAIN, "memSyncDomain", 2),
        (LaunchAttributeId.CLUSTER_SCHEDULING_POLICY_PREFERENCE, "clusterSchedulingPolicyPreference", 3),
        (LaunchAttributeId.PREFERRED_SHARED_MEMORY_CARVEOUT, "sharedMemCarveout", 101),
        (LaunchAttributeId.PREFERRED_SHARED_MEMORY_CARVEOUT, "sharedMemCarveout", 0xFFFFFFFF),
        (LaunchAttributeId.PRIORITY, "priority", 1),
        (LaunchAttributeId.PRIORITY, "priority", -6),
    ],
)
def test_values_out_of_range_are_refused(library, number, field, value):
    attributes = (attribute(number, field, value),)
    assert library.launch(library.kernel("empty"), attributes=attributes) is Status.INVALID_VALUE


@pytest.mark.parametrize(
    ("regular", "wide", "grid", "fits"),
    [
        (cluster(2), preferred(4), (8, 1, 1), True),
        (cluster(2), preferred(3), (6, 1, 1), False),
        (cluster(2), preferred(4), (6, 1, 1), False),
        (cluster(2), preferred(0), (8, 1, 1), False),
        (cluster(2), preferred(2, 1, 2), (8, 1, 2), False),
        (cluster(2), preferred(32), (64, 1, 1), False),
        (cluster(2), preferred(16), (64, 1, 1), True),
    ],
)
def test_a_preferred_cluster_is_a_multiple_that_divides_the_grid(library, regular, wide, grid, fits):
    status = library.launch(library.kernel("empty"), grid=grid, attributes=(regular, wide))
    assert status is (Status.SUCCESS if fits else Status.INVALID_CLUSTER_SIZE)


def test_a_preferred_cluster_needs_a_regular_one_and_no_cooperative_launch(library):
    kernel = library.kernel("empty")
    assert library.launch(kernel, grid=(8, 1, 1), attributes=(preferred(4),)) is Status.INVALID_CLUSTER_SIZE
    together = attribute(LaunchAttributeId.COOPERATIVE, "cooperative", 1)
    given = (cluster(2), preferred(4), together)
    assert library.launch(kernel, grid=(8, 1, 1), attributes=given) is Status.NOT_SUPPORTED


def test_static_shared_memory_counts(library, simulator):
    image = synthetic_cubin([SyntheticKernel(name="static", static_smem_bytes=4096)])
    kernel = library.kernel("static", library.library(image))
    assert library.launch(kernel, smem=49152 - 4096) is Status.SUCCESS
    assert library.launch(kernel, smem=49152 - 4095) is Status.INVALID_VALUE
    assert library("cuKernelSetAttribute", 8, 232448 - 4095, kernel, 0) is Status.INVALID_VALUE
    library.ok("cuKernelSetAttribute", 8, 232448 - 4096, kernel, 0)
    assert library.launch(kernel, smem=232448 - 4096) is Status.SUCCESS


def test_a_streams_window_and_priority_hold_for_its_launches(library, simulator):
    stream = library.handle("cuStreamCreateWithPriority", 1, -3)
    value = window(0x5000, 4096, 1.0, 2, 1).value
    library.ok("cuStreamSetAttribute", stream, 1, ctypes.byref(value))
    kernel = library.kernel("empty")
    assert library.launch(kernel, stream=stream) is Status.SUCCESS
    own = window(0x9000, 128, 0.5, 0, 0)
    assert library.launch(kernel, stream=stream, attributes=(own,)) is Status.SUCCESS
    value.accessPolicyWindow.num_bytes = 0
    library.ok("cuStreamSetAttribute", stream, 1, ctypes.byref(value))
    assert library.launch(kernel, stream=stream) is Status.SUCCESS
    first, second, third = launched(simulator)
    assert (first.window.address, first.priority, first.attributes) == (0x5000, -3, LaunchAttributes())
    assert second.window.address == 0x9000
    assert third.window is None
