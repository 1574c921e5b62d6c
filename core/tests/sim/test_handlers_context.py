import ctypes
import threading

import pytest

from trunnion.image import SyntheticKernel, SyntheticVariable, synthetic_cubin
from trunnion.sim.abi import Limit
from trunnion.sim.status import Status

_PERSISTING = Limit.PERSISTING_L2_CACHE_SIZE


def in_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def current(library):
    out = ctypes.c_void_p(1)
    library.ok("cuCtxGetCurrent", ctypes.byref(out))
    return out.value


def test_a_new_thread_has_no_context(library):
    def attempt():
        return (
            current(library),
            library("cuCtxGetDevice", ctypes.byref(ctypes.c_int())),
            library("cuCtxSynchronize"),
            library("cuStreamSynchronize", None),
            library("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p())),
        )

    assert current(library) is not None
    assert in_thread(attempt) == (None, *[Status.INVALID_CONTEXT] * 4)


def test_contexts_are_a_stack_of_the_thread(library):
    first = current(library)
    second = library.handle("cuDevicePrimaryCtxRetain", 1)
    assert second != first
    library.ok("cuCtxPushCurrent_v2", second)
    device = ctypes.c_int()
    library.ok("cuCtxGetDevice", ctypes.byref(device))
    assert (current(library), device.value) == (second, 1)
    popped = ctypes.c_void_p()
    library.ok("cuCtxPopCurrent_v2", ctypes.byref(popped))
    assert (popped.value, current(library)) == (second, first)
    library.ok("cuCtxSetCurrent", second)
    assert current(library) == second
    library.ok("cuCtxSetCurrent", None)
    assert current(library) is None


def test_only_contexts_become_current(library):
    assert library("cuCtxPushCurrent_v2", None) is Status.INVALID_VALUE
    assert library("cuCtxPushCurrent_v2", 0x1234_0000_0000) is Status.INVALID_CONTEXT
    assert library("cuCtxSetCurrent", 0x1234_0000_0000) is Status.INVALID_CONTEXT


def test_a_released_context_is_destroyed(library, simulator):
    context = simulator.state.contexts[1]
    held, context.references = context.references, 0  # whatever other tests retained
    try:
        assert library("cuDevicePrimaryCtxRelease_v2", 1) is Status.INVALID_CONTEXT
        library.context(1)
        flags, active = ctypes.c_uint(9), ctypes.c_int()
        library.ok("cuDevicePrimaryCtxGetState", 1, ctypes.byref(flags), ctypes.byref(active))
        assert (flags.value, active.value) == (0, 1)
        library.ok("cuCtxSynchronize")
        library.ok("cuDevicePrimaryCtxRelease_v2", 1)
        assert current(library) == context.handle
        assert library("cuCtxSynchronize") is Status.CONTEXT_IS_DESTROYED
        library.ok("cuDevicePrimaryCtxGetState", 1, ctypes.byref(flags), ctypes.byref(active))
        assert active.value == 0
    finally:
        context.references = held


def address_of(library, image, variable):
    address = ctypes.c_uint64()
    library.ok("cuLibraryGetGlobal", ctypes.byref(address), None, image, variable)
    return address.value


def test_nothing_of_a_destroyed_context_is_valid_under_the_next_one(library, simulator):
    context = simulator.state.contexts[1]
    held, context.references = context.references, 0  # whatever other tests retained
    other = library.handle("cuStreamCreate", 0)
    variable = SyntheticVariable(name="bias", nbytes=4)
    image = library.library(synthetic_cubin([SyntheticKernel(name="plain")], variables=[variable]))
    kernel = library.kernel("plain", image)
    try:
        library.context(1)
        stream, event = library.handle("cuStreamCreate", 0), library.handle("cuEventCreate", 0)
        function = library.handle("cuKernelGetFunction", kernel)
        address = address_of(library, image, b"bias")
        simulator.state.memory.on(1).write(address, b"used")
        library.ok("cuStreamBeginCapture_v2", stream, 1)
        library.ok("cuStreamBeginCapture_v2", 2, 1)
        library.ok("cuDevicePrimaryCtxRelease_v2", 1)
        assert not simulator.state.captures.standing
        library.context(1)
        assert library("cuStreamGetFlags", stream, ctypes.byref(ctypes.c_uint())) is Status.INVALID_HANDLE
        assert library("cuEventQuery", event) is Status.INVALID_HANDLE
        assert library.launch(function) is Status.INVALID_HANDLE
        assert library.handle("cuKernelGetFunction", kernel) != function
        again = address_of(library, image, b"bias")
        assert simulator.state.memory.on(1).read(again, 4) == bytes(4)
        library.ok("cuStreamSynchronize", other)
        library.ok("cuDevicePrimaryCtxRelease_v2", 1)
    finally:
        context.references = held


def test_streams(library):
    stream = library.handle("cuStreamCreate", 1)
    out, device, capturing = ctypes.c_void_p(), ctypes.c_int(9), ctypes.c_int(9)
    library.ok("cuStreamGetCtx", stream, ctypes.byref(out))
    assert out.value == current(library)
    library.ok("cuStreamGetDevice", stream, ctypes.byref(device))
    library.ok("cuStreamIsCapturing", stream, ctypes.byref(capturing))
    assert (device.value, capturing.value) == (0, 0)
    assert in_thread(lambda: library("cuStreamSynchronize", stream)) is Status.SUCCESS
    library.ok("cuStreamDestroy_v2", stream)
    assert library("cuStreamSynchronize", stream) is Status.INVALID_HANDLE
    assert library("cuStreamDestroy_v2", stream) is Status.INVALID_HANDLE
    assert library("cuStreamCreate", ctypes.byref(out), 8) is Status.INVALID_VALUE


@pytest.mark.parametrize("default", [None, 1, 2])
def test_default_streams_are_of_the_current_device(library, default):
    library.context(1)
    device = ctypes.c_int(9)
    library.ok("cuStreamGetDevice", default, ctypes.byref(device))
    assert device.value == 1


def limit(library):
    out = ctypes.c_size_t()
    library.ok("cuCtxGetLimit", ctypes.byref(out), _PERSISTING)
    return out.value


@pytest.fixture
def made(library):
    """A context that cuCtxCreate made, and a green one; none of them is current."""
    before = current(library)
    made = library.handle("cuCtxCreate_v2", 0, 0)
    green = library.handle("cuCtxFromGreenCtx", library.handle("cuGreenCtxCreate", 0x1234_0000_0000, 0, 1))
    library.ok("cuCtxSetCurrent", before)
    yield made, green
    library.ok("cuCtxDestroy_v2", made)
    library.ok("cuGreenCtxDestroy", green)
    library.ok("cuCtxSetCurrent", before)


def test_a_made_context_has_limits_and_variables_of_its_own_and_a_green_one_has_those_of_the_primary_one(
    library, made
):
    variable = SyntheticVariable(name="bias", nbytes=4)
    image = library.library(synthetic_cubin([SyntheticKernel(name="plain")], variables=[variable]))
    library.ok("cuCtxSetLimit", _PERSISTING, ctypes.c_size_t(4096))
    mine = limit(library), address_of(library, image, b"bias")
    other, green = made
    library.ok("cuCtxSetCurrent", other)
    assert limit(library) == 0
    assert address_of(library, image, b"bias") != mine[1]
    library.ok("cuCtxSetCurrent", green)
    assert (limit(library), address_of(library, image, b"bias")) == mine
    library.ok("cuCtxSetLimit", _PERSISTING, ctypes.c_size_t(0))


def test_a_stream_knows_its_context_and_of_a_green_one_the_primary_too(library, made):
    primary = current(library)
    for context, whose in zip((primary, *made), (primary, made[0], primary), strict=True):
        library.ok("cuCtxSetCurrent", context)
        for stream in (None, 2, library.handle("cuStreamCreate", 1)):
            found, of, green = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
            library.ok("cuStreamGetCtx", stream, ctypes.byref(found))
            library.ok("cuStreamGetCtx_v2", stream, ctypes.byref(of), ctypes.byref(green))
            assert (found.value, of.value) == (context, whose)
            assert green.value == (context if context == made[1] else None)


def test_what_is_of_a_made_context_ends_with_it(library, simulator):
    primary = current(library)
    made = library.handle("cuCtxCreate_v4", None, 0, 0)
    assert current(library) == made
    stream = library.handle("cuStreamCreate", 0)
    library.ok("cuCtxPushCurrent_v2", made)
    library.ok("cuCtxDestroy_v2", made)
    assert (current(library), library("cuCtxSynchronize")) == (made, Status.CONTEXT_IS_DESTROYED)
    assert library("cuStreamSynchronize", stream) is Status.INVALID_HANDLE
    assert library("cuCtxPushCurrent_v2", made) is Status.INVALID_CONTEXT
    library.ok("cuCtxSetCurrent", primary)
    library.ok("cuCtxSynchronize")


def test_only_what_was_made_is_destroyed(library, made):
    other, green = made
    for name, handle in (
        ("cuCtxDestroy_v2", current(library)),
        ("cuCtxDestroy_v2", green),
        ("cuGreenCtxDestroy", other),
        ("cuGreenCtxDestroy", None),
    ):
        assert library(name, handle) is Status.INVALID_CONTEXT
    out = ctypes.c_void_p()
    assert library("cuCtxFromGreenCtx", ctypes.byref(out), other) is Status.INVALID_CONTEXT
    assert library("cuGreenCtxCreate", ctypes.byref(out), None, 0, 1) is Status.INVALID_VALUE
    assert library("cuCtxCreate_v2", ctypes.byref(out), 1, 0) is Status.NOT_SUPPORTED
    assert library("cuCtxCreate_v4", ctypes.byref(out), 0x1234_0000_0000, 0, 0) is Status.NOT_SUPPORTED
    assert library("cuCtxCreate_v2", ctypes.byref(out), 0, 9) is Status.INVALID_DEVICE
