import ctypes

import pytest

from trunnion.sim.status import Status


def address_of(library, symbol, version, flags=0):
    out, result = ctypes.c_void_p(1), ctypes.c_int32(7)
    status = library(
        "cuGetProcAddress_v2",
        symbol.encode(),
        ctypes.byref(out),
        version,
        ctypes.c_uint64(flags),
        ctypes.byref(result),
    )
    return status, out.value, result.value


def exported(library, symbol):
    return ctypes.cast(library.c[symbol], ctypes.c_void_p).value


# As an H200 under driver 580 answers.
@pytest.mark.parametrize(
    ("symbol", "version", "flags", "expected"),
    [
        ("cuInit", 13000, 0, "cuInit"),
        ("cuCtxPushCurrent", 12000, 0, "cuCtxPushCurrent_v2"),
        ("cuDevicePrimaryCtxRelease", 10000, 0, "cuDevicePrimaryCtxRelease"),
        ("cuDevicePrimaryCtxRelease", 12000, 0, "cuDevicePrimaryCtxRelease_v2"),
        ("cuGetProcAddress", 11030, 0, "cuGetProcAddress"),
        ("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"),
        ("cuLaunchKernel", 12000, 0, "cuLaunchKernel"),
        ("cuLaunchKernel", 12000, 1, "cuLaunchKernel"),
        ("cuLaunchKernel", 12000, 2, "cuLaunchKernel_ptsz"),
        ("cuInit", 12000, 2, "cuInit"),
    ],
)
def test_an_entry_point_is_found_by_base_name_version_and_stream_flag(
    library, symbol, version, flags, expected
):
    assert address_of(library, symbol, version, flags) == (Status.SUCCESS, exported(library, expected), 0)


@pytest.mark.parametrize(
    ("symbol", "version", "result"),
    [
        ("cuNoSuchThing", 12000, 1),
        ("cuCtxPushCurrent_v2", 12000, 1),
        ("cuLaunchKernelEx", 11000, 2),
        ("cuInit", 1000, 2),
    ],
)
def test_what_is_not_found_is_null_and_says_why(library, symbol, version, result):
    assert address_of(library, symbol, version) == (Status.SUCCESS, None, result)


def test_a_bad_flag_or_a_newer_version_is_invalid(library):
    assert address_of(library, "cuLaunchKernel", 12000, 7)[0] is Status.INVALID_VALUE
    assert address_of(library, "cuInit", 99000)[0] is Status.INVALID_VALUE


def test_the_old_entry_point_says_not_found(library):
    out = ctypes.c_void_p()
    arguments = (b"cuNoSuchThing", ctypes.byref(out), 12000, ctypes.c_uint64(0))
    assert library("cuGetProcAddress", *arguments) is Status.NOT_FOUND
    library.ok("cuGetProcAddress", b"cuInit", ctypes.byref(out), 12000, ctypes.c_uint64(0))
    assert out.value == exported(library, "cuInit")


def test_asking_for_entry_points_leaves_no_trace(library, simulator):
    simulator.clear_trace()
    address_of(library, "cuInit", 99000)
    assert simulator.trace == ()


def test_init_takes_no_flags(library):
    assert library("cuInit", 1) is Status.INVALID_VALUE


def test_versions_and_counts(library, simulator):
    number = ctypes.c_int()
    library.ok("cuDriverGetVersion", ctypes.byref(number))
    assert number.value == simulator.driver_version
    library.ok("cuDeviceGetCount", ctypes.byref(number))
    assert number.value == simulator.devices
    assert library("cuDriverGetVersion", None) is Status.INVALID_VALUE


@pytest.mark.parametrize("ordinal", [-1, 99])
def test_a_device_that_is_not_there(library, ordinal):
    number, name = ctypes.c_int(), ctypes.create_string_buffer(8)
    assert library("cuDeviceGet", ctypes.byref(number), ordinal) is Status.INVALID_DEVICE
    assert library("cuDeviceGetAttribute", ctypes.byref(number), 1, ordinal) is Status.INVALID_DEVICE
    assert library("cuDeviceGetName", name, 8, ordinal) is Status.INVALID_DEVICE
    assert (
        library("cuDevicePrimaryCtxRetain", ctypes.byref(ctypes.c_void_p()), ordinal) is Status.INVALID_DEVICE
    )


@pytest.mark.parametrize(
    ("attribute", "value"), [(1, 1024), (16, 132), (75, 9), (97, 232448), (109, 134217728)]
)
def test_device_attributes_are_an_h200s(library, attribute, value):
    number = ctypes.c_int()
    library.ok("cuDeviceGetAttribute", ctypes.byref(number), attribute, 0)
    assert number.value == value


@pytest.mark.parametrize("attribute", [0, 999])
def test_an_attribute_that_is_not_there(library, attribute):
    assert library("cuDeviceGetAttribute", ctypes.byref(ctypes.c_int()), attribute, 0) is Status.INVALID_VALUE


def test_a_name_is_cut_to_the_room_for_it(library):
    name = ctypes.create_string_buffer(b"xxxxxxxx")
    library.ok("cuDeviceGetName", name, 4, 0)
    assert name.raw[:5] == b"Sim\0x"
    assert library("cuDeviceGetName", name, 0, 0) is Status.INVALID_VALUE


def test_error_names(library):
    text = ctypes.c_char_p()
    library.ok("cuGetErrorName", 719, ctypes.byref(text))
    assert text.value == b"CUDA_ERROR_LAUNCH_FAILED"
    library.ok("cuGetErrorString", 719, ctypes.byref(text))
    assert text.value == b"launch failed"
    assert library("cuGetErrorName", 123456, ctypes.byref(text)) is Status.INVALID_VALUE
    assert text.value is None
