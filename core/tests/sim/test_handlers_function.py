import ctypes

import pytest

from trunnion.image import SyntheticKernel, pack_parameters, synthetic_cubin
from trunnion.sim.abi import FunctionAttribute
from trunnion.sim.status import Status
from trunnion.sim.trace import AttributeSet

IMAGE = synthetic_cubin(
    (
        SyntheticKernel(
            name="first",
            parameters=pack_parameters(((4, 4), (8, 8))),
            static_smem_bytes=4096,
            registers=40,
            max_threads=(128, 2, 1),
        ),
        SyntheticKernel(name="second", cluster=(2, 2, 1)),
    )
)


@pytest.fixture
def image(library):
    return library.library(IMAGE)


@pytest.fixture
def kernel(library, image):
    return library.kernel("first", image)


def read(library, name, *arguments, kind=ctypes.c_int):
    out = kind()
    library.ok(name, ctypes.byref(out), *arguments)
    return out.value


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        (FunctionAttribute.MAX_THREADS_PER_BLOCK, 256),
        (FunctionAttribute.SHARED_SIZE_BYTES, 4096),
        (FunctionAttribute.NUM_REGS, 40),
        (FunctionAttribute.BINARY_VERSION, 90),
        (FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, 49152 - 4096),
        (FunctionAttribute.PREFERRED_SHARED_MEMORY_CARVEOUT, -1),
        (FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0),
        (FunctionAttribute.REQUIRED_CLUSTER_WIDTH, 0),
    ],
)
def test_attributes_from_the_start(library, kernel, attribute, value):
    assert read(library, "cuKernelGetAttribute", attribute, kernel, 0) == value
    assert read(library, "cuFuncGetAttribute", attribute, kernel) == value
    function = library.handle("cuKernelGetFunction", kernel)
    assert read(library, "cuFuncGetAttribute", attribute, function) == value


def test_what_a_function_sets_goes_before_what_its_kernel_sets(library, simulator, kernel):
    function = library.handle("cuKernelGetFunction", kernel)
    library.ok("cuFuncSetAttribute", function, 8, 1000)
    assert simulator.trace[-1] == AttributeSet("first", 0, 8, 1000)
    library.ok("cuKernelSetAttribute", 8, 90000, kernel, 0)
    assert read(library, "cuKernelGetAttribute", 8, kernel, 0) == 90000
    assert read(library, "cuFuncGetAttribute", 8, function) == 1000
    values = (ctypes.c_int(), ctypes.c_void_p())
    assert library.launch(kernel, smem=1001, values=values) is Status.INVALID_VALUE
    assert library.launch(kernel, smem=1000, values=values) is Status.SUCCESS


def test_a_kernels_handle_serves_as_a_function(library, kernel):
    library.ok("cuFuncSetAttribute", kernel, 14, 1)
    assert read(library, "cuKernelGetAttribute", 14, kernel, 0) == 1
    assert read(library, "cuKernelGetAttribute", 14, kernel, 1) == 0


def test_a_required_cluster_can_be_set_unless_the_compiler_did(library, kernel, image):
    for axis in (11, 12, 13):
        library.ok("cuKernelSetAttribute", axis, 1 + (axis == 11), kernel, 0)
    values = (ctypes.c_int(), ctypes.c_void_p())
    assert library.launch(kernel, grid=(3, 1, 1), values=values) is Status.INVALID_CLUSTER_SIZE
    assert library.launch(kernel, grid=(4, 1, 1), values=values) is Status.SUCCESS
    second = library.kernel("second", image)
    assert library("cuKernelSetAttribute", 11, 4, second, 0) is Status.NOT_PERMITTED
    assert read(library, "cuKernelGetAttribute", 12, second, 0) == 2
    assert read(library, "cuKernelGetAttribute", 10, second, 0) == 1


def test_names_and_parameters(library, kernel, image):
    function = library.handle("cuKernelGetFunction", kernel)
    assert read(library, "cuKernelGetName", kernel, kind=ctypes.c_char_p) == b"first"
    assert read(library, "cuFuncGetName", function, kind=ctypes.c_char_p) == b"first"
    assert library.handle("cuKernelGetLibrary", kernel) == image
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    index = ctypes.c_uint64(1)
    library.ok("cuFuncGetParamInfo", function, index, ctypes.byref(offset), ctypes.byref(size))
    assert (offset.value, size.value) == (8, 8)
    beyond = ctypes.c_uint64(2)
    assert library("cuFuncGetParamInfo", function, beyond, ctypes.byref(offset), None) is Status.INVALID_VALUE


def test_kernels_are_counted_and_listed(library, image):
    assert read(library, "cuLibraryGetKernelCount", image, kind=ctypes.c_uint) == 2
    kernels = (ctypes.c_void_p * 3)()
    library.ok("cuLibraryEnumerateKernels", kernels, 3, image)
    names = [read(library, "cuKernelGetName", handle, kind=ctypes.c_char_p) for handle in kernels[:2]]
    assert (names, kernels[2]) == ([b"first", b"second"], None)
    assert library("cuLibraryEnumerateKernels", None, 3, image) is Status.INVALID_VALUE


def test_unloading_takes_all_handles_along(library, kernel, image):
    function = library.handle("cuKernelGetFunction", kernel)
    library.ok("cuLibraryUnload", image)
    out = ctypes.byref(ctypes.c_int())
    assert library("cuFuncGetAttribute", out, 0, function) is Status.INVALID_HANDLE
    assert library("cuKernelGetAttribute", out, 0, kernel, 0) is Status.INVALID_HANDLE


PTX = """
.version 8.0
.target {}
.address_size 64
.visible .entry made() {{ ret; }}
"""


@pytest.mark.parametrize(
    ("image", "binary", "virtual"),
    [
        (synthetic_cubin((SyntheticKernel(name="made"),), "sm_80"), 80, 80),
        (synthetic_cubin((SyntheticKernel(name="made"),), "sm_86"), 86, 86),
        (PTX.format("sm_75").encode() + b"\0", 89, 75),  # which the driver assembles for the device
    ],
)
def test_the_versions_are_those_of_the_image(library, simulator, image, binary, virtual):
    with simulator.configured(arch="sm_89"):
        made = library.kernel("made", library.library(image))
        assert read(library, "cuKernelGetAttribute", FunctionAttribute.BINARY_VERSION, made, 0) == binary
        assert read(library, "cuFuncGetAttribute", FunctionAttribute.PTX_VERSION, made) == virtual


@pytest.mark.parametrize(
    ("registers", "bound", "most"),
    [
        (None, None, 1024),
        (64, None, 1024),
        (65, None, 896),
        (100, None, 608),
        (100, (300, 1, 1), 300),
        (100, (1024, 1, 1), 608),
        (255, None, 256),
    ],
)
def test_the_largest_block_is_the_largest_that_is_launched(library, registers, bound, most):
    """Of a kernel without bounds, or with some, whose registers allow less than the device."""
    image = synthetic_cubin((SyntheticKernel(name="wide", registers=registers, max_threads=bound),))
    wide = library.kernel("wide", library.library(image))
    assert read(library, "cuFuncGetAttribute", FunctionAttribute.MAX_THREADS_PER_BLOCK, wide) == most
    assert library.launch(wide, block=(most, 1, 1)) is Status.SUCCESS
    more = library.launch(wide, block=(most + 32, 1, 1))
    assert more in {Status.INVALID_VALUE, Status.LAUNCH_OUT_OF_RESOURCES}
