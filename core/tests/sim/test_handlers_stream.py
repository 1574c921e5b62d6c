import ctypes
import threading

import pytest

from trunnion.sim.abi import AccessPolicyWindowStruct, LaunchAttributeId, LaunchAttributeValue
from trunnion.sim.launch_attributes import AccessProperty, WindowAttribute
from trunnion.sim.status import Status
from trunnion.sim.trace import EventRecorded, EventWaited, StreamAttributeSet, Synchronized

WINDOW = LaunchAttributeId.ACCESS_POLICY_WINDOW


def value_of(field, value):
    made = LaunchAttributeValue()
    setattr(made, field, value)
    return ctypes.byref(made)


def window_of(*fields):
    return value_of("accessPolicyWindow", AccessPolicyWindowStruct(*fields))


def asked(library, name, stream, kind=ctypes.c_int):
    out = kind(99)
    library.ok(name, stream, ctypes.byref(out))
    return out.value


def test_priorities_are_clamped_to_the_range(library):
    least, greatest = ctypes.c_int(), ctypes.c_int()
    library.ok("cuCtxGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
    assert (least.value, greatest.value) == (0, -5)
    library.ok("cuCtxGetStreamPriorityRange", None, ctypes.byref(greatest))
    for given, held in ((-3, -3), (-9, -5), (4, 0)):
        stream = library.handle("cuStreamCreateWithPriority", 1, given)
        assert asked(library, "cuStreamGetPriority", stream) == held
        assert asked(library, "cuStreamGetFlags", stream, ctypes.c_uint) == 1


def test_every_stream_has_its_number(library):
    streams = [library.handle("cuStreamCreate", 0), library.handle("cuStreamCreate", 0), None, 2]
    numbers = [asked(library, "cuStreamGetId", stream, ctypes.c_uint64) for stream in streams]
    assert len(set(numbers)) == 4
    assert asked(library, "cuStreamGetId", 1, ctypes.c_uint64) == numbers[2]
    found = []

    def elsewhere():
        library.context()
        found.append(asked(library, "cuStreamGetId", 2, ctypes.c_uint64))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found[0] not in numbers  # each thread has a default stream of its own


def test_a_streams_context_has_no_green_one(library):
    context, green = ctypes.c_void_p(), ctypes.c_void_p(1)
    stream = library.handle("cuStreamCreate", 1)
    library.ok("cuStreamGetCtx_v2", stream, ctypes.byref(context), ctypes.byref(green))
    assert context.value == library.simulator.state.contexts[0].handle
    assert green.value is None


def test_a_window_is_set_read_and_copied(library, simulator):
    stream, other = library.handle("cuStreamCreate", 1), library.handle("cuStreamCreate", 1)
    library.ok("cuStreamSetAttribute", stream, WINDOW, window_of(0x4000, 8192, 0.25, 2, 1))
    expected = WindowAttribute(0x4000, 8192, 0.25, AccessProperty.PERSISTING, AccessProperty.STREAMING)
    assert simulator.trace[-1] == StreamAttributeSet(WINDOW, expected, 0, stream)
    read = LaunchAttributeValue()
    library.ok("cuStreamGetAttribute", other, WINDOW, ctypes.byref(read))
    assert bytes(read) == bytes(64)
    library.ok("cuStreamCopyAttributes", other, stream)
    library.ok("cuStreamGetAttribute", other, WINDOW, ctypes.byref(read))
    window = read.accessPolicyWindow
    assert (window.base_ptr, window.num_bytes, window.hitRatio) == (0x4000, 8192, 0.25)
    library.context(1)
    foreign = library.handle("cuStreamCreate", 1)
    assert library("cuStreamCopyAttributes", foreign, stream) is Status.INVALID_HANDLE


def test_all_copied_attributes_are_traced(library, simulator):
    """As many as differ: a window that the source does not have is taken from the target."""
    stream, other = library.handle("cuStreamCreate", 1), library.handle("cuStreamCreate", 1)
    sync, domain = LaunchAttributeId.SYNCHRONIZATION_POLICY, LaunchAttributeId.MEM_SYNC_DOMAIN
    library.ok("cuStreamSetAttribute", stream, WINDOW, window_of(0x4000, 8192, 0.25, 2, 1))
    library.ok("cuStreamSetAttribute", stream, domain, value_of("memSyncDomain", 1))
    library.ok("cuStreamSetAttribute", other, sync, value_of("syncPolicy", 4))
    simulator.clear_trace()
    library.ok("cuStreamCopyAttributes", stream, other)
    assert simulator.trace == (
        StreamAttributeSet(
            WINDOW, WindowAttribute(0, 0, 0.0, AccessProperty.NORMAL, AccessProperty.NORMAL), 0, stream
        ),
        StreamAttributeSet(sync, 4, 0, stream),
        StreamAttributeSet(domain, 0, 0, stream),
    )
    simulator.clear_trace()
    library.ok("cuStreamCopyAttributes", stream, other)
    assert simulator.trace == ()


def test_attributes_are_copied_within_a_context(library, simulator):
    stream = library.handle("cuStreamCreate", 1)
    library.handle("cuCtxCreate_v2", 0, 0)
    other = library.handle("cuStreamCreate", 1)
    assert library("cuStreamCopyAttributes", other, stream) is Status.INVALID_HANDLE


@pytest.mark.parametrize(
    "fields",
    [(0x4000, 1 << 30, 0.5, 2, 1), (0x4000, 64, 1.5, 2, 1), (0x4000, 64, 0.5, 2, 2), (0x4000, 64, 0.5, 3, 1)],
)
def test_wrong_windows_are_refused(library, fields):
    stream = library.handle("cuStreamCreate", 1)
    assert library("cuStreamSetAttribute", stream, WINDOW, window_of(*fields)) is Status.INVALID_VALUE


def test_other_attributes_of_a_stream(library):
    stream = library.handle("cuStreamCreate", 1)
    read = LaunchAttributeValue()
    for number, field, given, held in (
        (LaunchAttributeId.PRIORITY, "priority", -9, -5),
        (LaunchAttributeId.SYNCHRONIZATION_POLICY, "syncPolicy", 4, 4),
        (LaunchAttributeId.MEM_SYNC_DOMAIN, "memSyncDomain", 1, 1),
    ):
        library.ok("cuStreamSetAttribute", stream, number, value_of(field, given))
        library.ok("cuStreamGetAttribute", stream, number, ctypes.byref(read))
        assert getattr(read, field) == held
    wrong = value_of("syncPolicy", 9)
    sync = LaunchAttributeId.SYNCHRONIZATION_POLICY
    assert library("cuStreamSetAttribute", stream, sync, wrong) is Status.INVALID_VALUE
    cluster = LaunchAttributeId.CLUSTER_DIMENSION
    assert library("cuStreamSetAttribute", stream, cluster, wrong) is Status.INVALID_VALUE
    assert library("cuStreamGetAttribute", stream, cluster, ctypes.byref(read)) is Status.INVALID_VALUE
    assert library("cuStreamGetAttribute", stream, WINDOW, None) is Status.INVALID_VALUE
    assert library("cuStreamSetAttribute", stream, WINDOW, None) is Status.INVALID_VALUE


def test_waiting_is_traced(library, simulator):
    stream = library.handle("cuStreamCreate", 1)
    library.ok("cuStreamSynchronize", stream)
    library.ok("cuCtxSynchronize")
    library.ok("cuStreamQuery", stream)
    primary = simulator.state.contexts[0].handle
    assert simulator.trace[-2:] == (Synchronized(0, stream, primary), Synchronized(0, None, primary))


def test_events(library, simulator):
    first, second = library.handle("cuEventCreate", 0), library.handle("cuEventCreate", 0)
    stream = library.handle("cuStreamCreate", 1)
    elapsed = ctypes.c_float(9)
    assert library("cuEventElapsedTime_v2", ctypes.byref(elapsed), first, second) is Status.INVALID_HANDLE
    library.ok("cuEventRecord", first, stream)
    library.ok("cuEventRecordWithFlags", second, None, 0)
    library.ok("cuStreamWaitEvent", None, first, 0)
    assert simulator.trace[-3:] == (
        EventRecorded(first, 0, stream),
        EventRecorded(second, 0, 0),
        EventWaited(first, 0, 0),
    )
    library.ok("cuEventQuery", first)
    library.ok("cuEventSynchronize", first)
    library.ok("cuEventElapsedTime_v2", ctypes.byref(elapsed), first, second)
    assert elapsed.value == 0
    library.ok("cuEventDestroy_v2", first)
    assert library("cuEventQuery", first) is Status.INVALID_HANDLE
    untimed = library.handle("cuEventCreate", 2)
    library.ok("cuEventRecord", untimed, stream)
    assert library("cuEventElapsedTime", ctypes.byref(elapsed), untimed, second) is Status.INVALID_HANDLE


def test_wrong_events_are_refused(library):
    out = ctypes.c_void_p()
    assert library("cuEventCreate", ctypes.byref(out), 8) is Status.INVALID_VALUE
    assert library("cuEventCreate", ctypes.byref(out), 4) is Status.INVALID_VALUE  # interprocess, with timing
    event = library.handle("cuEventCreate", 0)
    assert library("cuEventRecordWithFlags", event, None, 1) is Status.NOT_SUPPORTED
    assert library("cuStreamWaitEvent", None, event, 2) is Status.INVALID_VALUE
    stream = library.handle("cuStreamCreate", 1)
    library.context(1)
    assert library("cuEventRecord", event, None) is Status.INVALID_HANDLE
    library.ok("cuStreamWaitEvent", None, event, 0)  # to wait for another device's event is allowed
    library.ok("cuEventRecord", event, stream)
