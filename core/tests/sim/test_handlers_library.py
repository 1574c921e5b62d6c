import ctypes
import hashlib
import struct
import threading

import pytest

from trunnion.image import SyntheticKernel, SyntheticVariable, pack_parameters, synthetic_cubin
from trunnion.sim.abi import FunctionAttribute
from trunnion.sim.status import Status
from trunnion.sim.trace import AttributeSet, LibraryLoaded, LibraryUnloaded


def load(library, data, size=None):
    out = ctypes.c_void_p()
    buffer = ctypes.create_string_buffer(data, size or len(data))
    return library("cuLibraryLoadData", ctypes.byref(out), buffer, None, None, 0, None, None, 0)


def test_an_image_is_read_to_the_end_that_its_tables_give(library, simulator):
    image = synthetic_cubin((SyntheticKernel(name="k"),))
    simulator.clear_trace()
    assert load(library, image + b"rubbish") is Status.SUCCESS
    (event,) = simulator.trace
    assert isinstance(event, LibraryLoaded)
    assert (event.nbytes, event.sha256) == (len(image), hashlib.sha256(image).hexdigest())


@pytest.mark.parametrize(
    ("image", "status"),
    [
        (b"rubbish" * 20, Status.INVALID_IMAGE),
        (b"\x7fELF" + bytes(200), Status.INVALID_IMAGE),
        (b"\x7fELF\x02\x01" + bytes(200), Status.INVALID_IMAGE),
        (b"\x50\xed\x55\xba" + bytes(60), Status.NOT_SUPPORTED),
        (b".version 8.0\n.target sm_90a\n.entry k(\0", Status.INVALID_PTX),
        (b"// a comment\n.version 8.0\0", Status.INVALID_PTX),
        (b" /* another */ .target sm_90\0", Status.INVALID_PTX),
        (b".version 9.9\n.target sm_90\0", Status.UNSUPPORTED_PTX_VERSION),
        (b".version 8.6\n.target sm_90\n.entry k() .blocksareclusters {}\0", Status.NOT_SUPPORTED),
    ],
)
def test_what_is_no_cubin_is_refused(library, image, status):
    assert load(library, image) is status


def test_an_image_whose_tables_point_nowhere_is_refused_and_not_read(library):
    image = bytearray(synthetic_cubin((SyntheticKernel(name="k"),)))
    struct.pack_into("<Q", image, 40, 1 << 30)  # e_shoff: far behind the buffer
    assert load(library, bytes(image)) is Status.INVALID_IMAGE
    struct.pack_into("<Q", image, 40, 1 << 62)
    assert load(library, bytes(image)) is Status.INVALID_IMAGE


def test_null_pointers_and_options_are_refused(library):
    out = ctypes.c_void_p()
    arguments = (ctypes.byref(out), None, None, None, 0, None, None, 0)
    assert library("cuLibraryLoadData", *arguments) is Status.INVALID_VALUE
    image = ctypes.create_string_buffer(synthetic_cubin((SyntheticKernel(name="k"),)))
    assert library("cuLibraryLoadData", None, image, None, None, 0, None, None, 0) is Status.INVALID_VALUE
    arguments = (ctypes.byref(out), image, None, None, 1, None, None, 0)
    assert library("cuLibraryLoadData", *arguments) is Status.NOT_SUPPORTED


@pytest.mark.parametrize("arch", ["sm_80", "sm_100a", "sm_103", "sm_120a"])
def test_an_image_for_another_family_has_no_binary(library, simulator, arch):
    handle = library.library(synthetic_cubin((SyntheticKernel(name="k"),), arch))
    out = ctypes.c_void_p()
    with simulator.configured(arch="sm_90a"):  # each device; one that differs might run it
        assert library("cuLibraryGetKernel", ctypes.byref(out), handle, b"k") is Status.NO_BINARY_FOR_GPU


@pytest.mark.parametrize("arch", ["sm_90", "sm_90a"])
def test_an_image_for_the_family_runs(library, arch):
    assert library.kernel("k", library.library(synthetic_cubin((SyntheticKernel(name="k"),), arch)))


def test_kernels_are_found_by_exact_name(library):
    handle, out = library.library(), ctypes.c_void_p()
    assert library.kernel("plain", handle) == library.kernel("plain", handle)
    assert library("cuLibraryGetKernel", ctypes.byref(out), handle, b"plai") is Status.NOT_FOUND
    assert library("cuLibraryGetKernel", ctypes.byref(out), handle + 1, b"plain") is Status.INVALID_HANDLE


def test_unloading_ends_every_handle(library, simulator):
    handle = library.library()
    kernel = library.kernel("plain", handle)
    function = library.handle("cuKernelGetFunction", kernel)
    library.ok("cuLibraryUnload", handle)
    assert simulator.trace[-1] == LibraryUnloaded(handle)
    assert library("cuLibraryUnload", handle) is Status.INVALID_HANDLE
    assert library("cuKernelGetFunction", ctypes.byref(ctypes.c_void_p()), kernel) is Status.INVALID_HANDLE
    assert library.launch(kernel) is Status.INVALID_HANDLE
    assert library.launch(function) is Status.INVALID_HANDLE


def test_a_function_belongs_to_the_current_context(library):
    kernel = library.kernel("plain")
    first = library.handle("cuKernelGetFunction", kernel)
    assert library.handle("cuKernelGetFunction", kernel) == first
    library.context(1)
    assert library.handle("cuKernelGetFunction", kernel) != first
    library.ok("cuCtxSetCurrent", None)
    assert library("cuKernelGetFunction", ctypes.byref(ctypes.c_void_p()), kernel) is Status.INVALID_CONTEXT


def test_parameters_come_from_the_image(library):
    kernel = library.kernel("plain")
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()

    def info(index, *, size_pointer=True):
        out = ctypes.byref(size) if size_pointer else None
        return library("cuKernelGetParamInfo", kernel, ctypes.c_size_t(index), ctypes.byref(offset), out)

    assert (info(0), offset.value, size.value) == (Status.SUCCESS, 0, 4)
    assert (info(1, size_pointer=False), offset.value, size.value) == (Status.SUCCESS, 8, 4)
    assert (info(1), offset.value, size.value) == (Status.SUCCESS, 8, 8)
    assert info(2) is Status.INVALID_VALUE
    found = []
    thread = threading.Thread(target=lambda: found.append(info(0)))
    thread.start()
    thread.join()
    assert found == [Status.INVALID_CONTEXT]


# As an H200 under driver 580 answers.
@pytest.mark.parametrize(
    ("attribute", "value", "device", "status"),
    [
        (8, 100000, 0, Status.SUCCESS),
        (8, 232448, 0, Status.SUCCESS),
        (8, 232449, 0, Status.INVALID_VALUE),
        (8, -1, 0, Status.INVALID_VALUE),
        (8, 1024, 9, Status.INVALID_DEVICE),
        (9, -1, 0, Status.SUCCESS),
        (9, 100, 0, Status.SUCCESS),
        (9, 101, 0, Status.INVALID_VALUE),
        (9, -2, 0, Status.INVALID_VALUE),
        (0, 1024, 0, Status.INVALID_VALUE),
        (10, 1, 0, Status.INVALID_VALUE),
        (14, 1, 0, Status.SUCCESS),
        (15, 3, 0, Status.INVALID_VALUE),
        (99, 1024, 0, Status.INVALID_VALUE),
    ],
)
def test_attributes_that_can_be_set(library, simulator, attribute, value, device, status):
    kernel = library.kernel("plain")
    simulator.clear_trace()
    assert library("cuKernelSetAttribute", attribute, value, kernel, device) is status
    expected = (AttributeSet("plain", device, attribute, value),) if status is Status.SUCCESS else ()
    assert tuple(event for event in simulator.trace if isinstance(event, AttributeSet)) == expected


def attribute_of(library, kernel, attribute, device=0):
    out = ctypes.c_int()
    library.ok("cuKernelGetAttribute", ctypes.byref(out), attribute, kernel, device)
    return out.value


def test_attributes_are_of_one_kernel_and_device(library):
    kernel, other = library.kernel("plain"), library.kernel("empty")
    key = FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
    library.ok("cuKernelSetAttribute", key, 100000, kernel, 1)
    assert attribute_of(library, kernel, key, 1) == 100000
    assert attribute_of(library, kernel, key, 0) == attribute_of(library, other, key, 1) == 49152


def test_attributes_that_the_image_gives(library):
    assert attribute_of(library, library.kernel("bounded"), FunctionAttribute.MAX_THREADS_PER_BLOCK) == 128
    for unbounded in (
        "plain",
        "required",
    ):  # the latter's only block is asked of a launch (an H100, driver 580)
        assert (
            attribute_of(library, library.kernel(unbounded), FunctionAttribute.MAX_THREADS_PER_BLOCK) == 1024
        )
    assert attribute_of(library, library.kernel("clustered"), FunctionAttribute.REQUIRED_CLUSTER_WIDTH) == 2
    assert attribute_of(library, library.kernel("clustered"), FunctionAttribute.CLUSTER_SIZE_MUST_BE_SET) == 1
    assert attribute_of(library, library.kernel("plain"), FunctionAttribute.NUM_REGS) == 32


PTX = """// made by hand
.version 8.7
.target {target}
.address_size 64
.visible .entry copy(
    .param .u32 count,
    .param .u64 .ptr .align 1 into
)
.maxntid 128, 1, 1
{{
    .shared .align 4 .b8 room[2048];
    ret;
}}
"""


def ptx(target):
    return PTX.format(target=target).encode() + b"\0"


def test_a_kernel_of_ptx_is_launched(library, simulator):
    kernel = library.kernel("copy", library.library(ptx("sm_80")))
    values = (ctypes.c_uint32(7), ctypes.c_uint64(0x1122))
    assert library.launch(kernel, values=values) is Status.SUCCESS
    assert simulator.trace[-1].parameters == ((7).to_bytes(4, "little"), (0x1122).to_bytes(8, "little"))
    assert library.launch(kernel, values=values, block=(129, 1, 1)) is Status.INVALID_VALUE
    assert library.launch(kernel, values=values, smem=49152 - 2047) is Status.INVALID_VALUE


@pytest.mark.parametrize(
    ("target", "runs"),
    [
        ("sm_75", True),
        ("sm_90", True),
        ("sm_90a", True),
        ("sm_80a", False),
        ("sm_100", False),
        ("sm_100f", False),
    ],
)
def test_ptx_is_assembled_for_what_is_not_newer(library, simulator, target, runs):
    image, out = library.library(ptx(target)), ctypes.c_void_p()
    with simulator.configured(arch="sm_90a"):
        status = library("cuLibraryGetKernel", ctypes.byref(out), image, b"copy")
    assert status is (Status.SUCCESS if runs else Status.NO_BINARY_FOR_GPU)


def test_ptx_that_is_newer_than_the_driver_is_refused(library, simulator):
    out = ctypes.c_void_p()
    arguments = (ctypes.byref(out), library.image(ptx("sm_90")), None, None, 0, None, None, 0)
    with simulator.configured(driver_version=12070):
        assert library("cuLibraryLoadData", *arguments) is Status.UNSUPPORTED_PTX_VERSION
    with simulator.configured(driver_version=12080):
        assert library("cuLibraryLoadData", *arguments) is Status.SUCCESS


@pytest.mark.parametrize(
    ("behind", "status"),
    [
        (b"\x11", Status.INVALID_PTX),
        (b"\xc3\xa9", Status.INVALID_PTX),
        (b"\xfe\xab", Status.INVALID_PTX),
        (b"// \xc3\xa9\n\t\r\n", Status.SUCCESS),
    ],
)
def test_ptx_is_text(library, behind, status):
    out = ctypes.c_void_p()
    image = library.image(ptx("sm_80").rstrip(b"\0") + behind + b"\0")
    assert library("cuLibraryLoadData", ctypes.byref(out), image, None, None, 0, None, None, 0) is status


@pytest.mark.parametrize("wide", [False, True])
def test_both_kinds_of_parameter_tables_are_followed(library, simulator, wide):
    parameters = pack_parameters(((4, 4), (200, 8), (8, 8)))
    image = synthetic_cubin([SyntheticKernel(name="table", parameters=parameters, wide=wide)])
    values = (ctypes.c_uint32(1), (ctypes.c_uint8 * 200)(*range(200)), ctypes.c_uint64(3))
    assert library.launch(library.kernel("table", library.library(image)), values=values) is Status.SUCCESS
    assert simulator.trace[-1].parameters == tuple(bytes(value) for value in values)


def test_more_parameters_than_a_narrow_table_holds(library, simulator):
    layouts = [(4096, 8), (4096, 8), (4, 4)]
    image = synthetic_cubin([SyntheticKernel(name="large", parameters=pack_parameters(layouts))])
    values = tuple((ctypes.c_uint8 * size)(*[ordinal] * size) for ordinal, (size, _) in enumerate(layouts, 1))
    assert library.launch(library.kernel("large", library.library(image)), values=values) is Status.SUCCESS
    assert [len(data) for data in simulator.trace[-1].parameters] == [4096, 4096, 4]
    assert {data[0] for data in simulator.trace[-1].parameters} == {1, 2, 3}


VARIABLES = (
    SyntheticVariable(name="filter", nbytes=12, constant=True, init=b"twelve bytes"),
    SyntheticVariable(name="counter", nbytes=4),
)


def look_up(library, handle, name):
    address, nbytes = ctypes.c_uint64(), ctypes.c_size_t()
    status = library("cuLibraryGetGlobal", ctypes.byref(address), ctypes.byref(nbytes), handle, name)
    return status, address.value, nbytes.value


def test_a_variable_lies_in_each_device_s_own_memory_and_holds_what_the_image_says(library, simulator):
    handle = library.library(synthetic_cubin((SyntheticKernel(name="k"),), "sm_90a", VARIABLES))
    status, first, nbytes = look_up(library, handle, b"filter")
    assert (status, nbytes) == (Status.SUCCESS, 12)
    assert look_up(library, handle, b"filter")[1] == first
    assert simulator.memory.on(0).read(first, 12) == b"twelve bytes"
    assert simulator.memory.on(0).read(look_up(library, handle, b"counter")[1], 4) == bytes(4)
    library.context(1)
    _, second, _ = look_up(library, handle, b"filter")
    assert simulator.memory.find(second).device == 1
    other = library.library(synthetic_cubin((SyntheticKernel(name="k"),), "sm_90a", VARIABLES))
    assert look_up(library, other, b"filter")[1] not in (first, second)


def test_a_variable_is_found_by_its_exact_name_under_a_context(library):
    handle = library.library(synthetic_cubin((SyntheticKernel(name="k"),), "sm_90a", VARIABLES))
    assert look_up(library, handle, b"filte")[0] is Status.NOT_FOUND
    assert look_up(library, handle, b"k")[0] is Status.NOT_FOUND
    assert look_up(library, handle + 1, b"filter")[0] is Status.INVALID_HANDLE
    assert library("cuLibraryGetGlobal", None, None, handle, b"filter") is Status.INVALID_VALUE
    nbytes = ctypes.c_size_t()
    library.ok("cuLibraryGetGlobal", None, ctypes.byref(nbytes), handle, b"filter")
    assert nbytes.value == 12
    library.ok("cuCtxSetCurrent", None)
    assert look_up(library, handle, b"filter")[0] is Status.INVALID_CONTEXT


def test_variables_take_no_allocator_s_memory_and_go_with_their_library(library, simulator):
    before = simulator.memory.used(0), len(simulator.memory.allocations())
    handle = library.library(synthetic_cubin((SyntheticKernel(name="k"),), "sm_90a", VARIABLES))
    assert simulator.memory.used(0) == before[0]
    assert len(simulator.memory.allocations()) > before[1]
    library.ok("cuLibraryUnload", handle)
    assert len(simulator.memory.allocations()) == before[1]


def test_handles_are_given_again_where_that_is_asked_for(library, simulator):
    image = synthetic_cubin((SyntheticKernel(name="k"),))
    with simulator.reusing_handles():
        first = library.library(image)
        assert library("cuLibraryUnload", first) is Status.SUCCESS
        assert library.library(image) == first
    assert library("cuLibraryUnload", first) is Status.SUCCESS
    assert library.library(image) != first
