"""Streams and events.

Source: CUDA Driver API, Stream Management; Event Management.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.sim.abi import AccessPolicyWindowStruct, LaunchAttributeId, LaunchAttributeValue
from trunnion.sim.host import HostReader, put
from trunnion.sim.launch_attributes import PRIORITIES, AccessProperty, WindowAttribute, check_window
from trunnion.sim.objects import Event, Stream
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import EventRecorded, EventWaited, StreamAttributeSet, Synchronized

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler

__all__ = ["HANDLERS"]

_NON_BLOCKING: Final = 1
_NO_TIMING: Final = 2
_EVENT_FLAGS: Final = range(8)  # blocking sync, no timing, interprocess
_INTERPROCESS: Final = 4
_EXTERNAL: Final = 1
_NO_WINDOW: Final = WindowAttribute(0, 0, 0.0, AccessProperty.NORMAL, AccessProperty.NORMAL)
_OTHERS: Final = {
    LaunchAttributeId.SYNCHRONIZATION_POLICY: range(1, 5),
    LaunchAttributeId.MEM_SYNC_DOMAIN: range(2),
}


def _create(call: Call, result: int | None, flags: int) -> None:
    _create_with_priority(call, result, flags, 0)


def _create_with_priority(call: Call, result: int | None, flags: int, priority: int) -> None:
    if flags not in (0, _NON_BLOCKING):
        raise Refusal(Status.INVALID_VALUE, f"flags are {flags}, 0 and 1 are allowed")
    stream = call.state.new_stream(call.state.current(), flags)
    stream.priority = min(max(priority, PRIORITIES[0]), PRIORITIES[-1])
    put(ctypes.c_void_p, result, stream.handle, "phStream")


def _destroy(call: Call, handle: int | None) -> None:
    stream = call.state.get(Stream, handle)
    with call.state.lock:
        if stream.capture is not None:
            call.state.captures.check_waitable(stream, "cuStreamDestroy")
        del call.state.handled[stream.handle]


def _synchronize(call: Call, handle: int | None) -> None:
    stream = call.state.stream(call.stream(handle))
    with call.state.lock:
        call.state.captures.check_waitable(stream, "cuStreamSynchronize")
        # Of whatever stream: an H100's driver 580 refuses it beside a capture that is not relaxed (measured).
        call.state.captures.check_unsafe(call.state.thread(), "cuStreamSynchronize")
    call.state.trace.add(Synchronized(stream.device.ordinal, call.stream(handle), stream.context.handle))


def _query(call: Call, handle: int | None) -> None:
    stream = call.state.stream(call.stream(handle))
    with call.state.lock:
        call.state.captures.check_waitable(stream, "cuStreamQuery")


def _context(call: Call, handle: int | None, result: int | None) -> None:
    put(ctypes.c_void_p, result, call.state.stream(call.stream(handle)).context.handle, "pctx")


def _context_v2(call: Call, handle: int | None, result: int | None, green: int | None) -> None:
    context = call.state.stream(call.stream(handle)).context
    put(ctypes.c_void_p, result, context.home.handle, "pctx")
    put(ctypes.c_void_p, green, context.handle if context.primary else None, "pGreenCtx")


def _outside(call: Call, handle: int | None) -> Stream:
    """Return a stream that is not capturing: an H200's driver invalidates a capture whose stream it is asked about."""
    stream = call.state.stream(call.stream(handle))
    with call.state.lock:
        call.state.captures.check_waitable(stream, call.entry.base)
    return stream


def _device(call: Call, handle: int | None, result: int | None) -> None:
    put(ctypes.c_int32, result, _outside(call, handle).device.ordinal, "device")


def _flags(call: Call, handle: int | None, result: int | None) -> None:
    put(ctypes.c_uint32, result, _outside(call, handle).flags, "flags")


def _priority(call: Call, handle: int | None, result: int | None) -> None:
    put(ctypes.c_int32, result, call.state.stream(call.stream(handle)).priority, "priority")


def _number(call: Call, handle: int | None, result: int | None) -> None:
    put(ctypes.c_uint64, result, _outside(call, handle).number, "streamId")


def _set_attribute(call: Call, handle: int | None, attribute: int, source: int | None) -> None:
    stream = call.state.stream(call.stream(handle))
    with HostReader() as reader:
        size = ctypes.sizeof(LaunchAttributeValue)
        value = LaunchAttributeValue.from_buffer_copy(reader.read(source, size, "value"))
    held: WindowAttribute | int
    if attribute == LaunchAttributeId.ACCESS_POLICY_WINDOW:
        held = stream.window = check_window(value.accessPolicyWindow, stream.device)
    elif attribute == LaunchAttributeId.PRIORITY:
        held = stream.priority = min(max(value.priority, PRIORITIES[0]), PRIORITIES[-1])
    else:
        number = int(value.syncPolicy)  # every other attribute is an int at the union's start
        if number not in _other(attribute):
            raise Refusal(Status.INVALID_VALUE, f"stream attribute {attribute} is {number}")
        held = stream.attributes[attribute] = number
    call.state.trace.add(StreamAttributeSet(attribute, held, stream.device.ordinal, call.stream(handle)))


def _other(attribute: int) -> range:
    if attribute not in _OTHERS:
        raise Refusal(Status.INVALID_VALUE, f"streams have no attribute {attribute} here")
    return _OTHERS[LaunchAttributeId(attribute)]


def _get_attribute(call: Call, handle: int | None, attribute: int, result: int | None) -> None:
    stream = call.state.stream(call.stream(handle))
    if not result:
        raise Refusal(Status.INVALID_VALUE, "value_out is a null pointer")
    value = LaunchAttributeValue()
    if attribute == LaunchAttributeId.ACCESS_POLICY_WINDOW:
        window = stream.window or _NO_WINDOW
        value.accessPolicyWindow = AccessPolicyWindowStruct(
            window.address, window.nbytes, window.hit_ratio, window.hit_property, window.miss_property
        )
    elif attribute == LaunchAttributeId.PRIORITY:
        value.priority = stream.priority
    else:
        value.syncPolicy = stream.attributes.get(attribute, _other(attribute).start)
    ctypes.memmove(result, ctypes.byref(value), ctypes.sizeof(value))


def _copy_attributes(call: Call, target: int | None, source: int | None) -> None:
    to, origin = call.state.stream(call.stream(target)), call.state.stream(call.stream(source))
    if to.context.home is not origin.context.home:
        raise Refusal(Status.INVALID_HANDLE, "the streams are of different contexts")
    before = _copied(to)
    to.window, to.attributes = origin.window, dict(origin.attributes)
    for attribute, value in _copied(to).items():
        if value != before[attribute]:
            event = StreamAttributeSet(attribute, value, to.device.ordinal, call.stream(target))
            call.state.trace.add(event)


def _copied(stream: Stream) -> dict[int, WindowAttribute | int]:
    """Return the attributes of a stream that are copied, whether they were set or not: all but its priority."""
    held: dict[int, WindowAttribute | int] = {
        LaunchAttributeId.ACCESS_POLICY_WINDOW: stream.window or _NO_WINDOW
    }
    for number, allowed in _OTHERS.items():
        held[number] = stream.attributes.get(number, allowed.start)
    return held


def _event_create(call: Call, result: int | None, flags: int) -> None:
    context = call.state.current()
    if flags not in _EVENT_FLAGS or (flags & _INTERPROCESS and not flags & _NO_TIMING):
        raise Refusal(Status.INVALID_VALUE, f"flags are {flags}, no CUevent_flags that go together")
    event = Event(call.state.new_handle(), context, flags)
    put(ctypes.c_void_p, result, event.handle, "phEvent")
    call.state.add(event)


def _event_destroy(call: Call, handle: int | None) -> None:
    del call.state.handled[call.state.get(Event, handle).handle]


def _event_record(call: Call, handle: int | None, stream: int | None) -> None:
    event = call.state.get(Event, handle)
    target = call.state.stream(call.stream(stream))
    if event.context.home is not target.context.home:
        raise Refusal(Status.INVALID_HANDLE, "the event and the stream are of different contexts")
    with call.state.lock:
        call.state.captures.record(event, target)
    call.state.trace.add(EventRecorded(event.handle, target.device.ordinal, call.stream(stream)))


def _event_record_with_flags(call: Call, handle: int | None, stream: int | None, flags: int) -> None:
    if flags:
        status = Status.NOT_SUPPORTED if flags == _EXTERNAL else Status.INVALID_VALUE
        raise Refusal(status, f"flags are {flags}, 0 is simulated")
    _event_record(call, handle, stream)


def _stream_wait(call: Call, stream: int | None, handle: int | None, flags: int) -> None:
    event = call.state.get(Event, handle)
    target = call.state.stream(call.stream(stream))
    if flags:
        status = Status.NOT_SUPPORTED if flags == _EXTERNAL else Status.INVALID_VALUE
        raise Refusal(status, f"Flags are {flags}, 0 is simulated")
    with call.state.lock:
        call.state.captures.wait(target, event)
    call.state.trace.add(EventWaited(event.handle, target.device.ordinal, call.stream(stream)))


def _event_query(call: Call, handle: int | None) -> None:
    event = call.state.get(Event, handle)
    with call.state.lock:
        call.state.captures.check_event(event, "cuEventQuery")


def _event_synchronize(call: Call, handle: int | None) -> None:
    event = call.state.get(Event, handle)
    with call.state.lock:
        call.state.captures.check_event(event, "cuEventSynchronize")


def _event_elapsed(call: Call, result: int | None, start: int | None, end: int | None) -> None:
    for event in (call.state.get(Event, start), call.state.get(Event, end)):
        if not event.recorded or event.flags & _NO_TIMING:
            raise Refusal(Status.INVALID_HANDLE, "the event was not recorded, or takes no time")
        with call.state.lock:
            call.state.captures.check_event(event, "cuEventElapsedTime")
    put(ctypes.c_float, result, 0, "pMilliseconds")  # nothing here takes device time


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuStreamCreate": _create,
        "cuStreamCreateWithPriority": _create_with_priority,
        "cuStreamDestroy_v2": _destroy,
        "cuStreamSynchronize": _synchronize,
        "cuStreamQuery": _query,
        "cuStreamGetCtx": _context,
        "cuStreamGetCtx_v2": _context_v2,
        "cuStreamGetDevice": _device,
        "cuStreamGetFlags": _flags,
        "cuStreamGetPriority": _priority,
        "cuStreamGetId": _number,
        "cuStreamSetAttribute": _set_attribute,
        "cuStreamGetAttribute": _get_attribute,
        "cuStreamCopyAttributes": _copy_attributes,
        "cuStreamWaitEvent": _stream_wait,
        "cuEventCreate": _event_create,
        "cuEventDestroy_v2": _event_destroy,
        "cuEventRecord": _event_record,
        "cuEventRecordWithFlags": _event_record_with_flags,
        "cuEventQuery": _event_query,
        "cuEventSynchronize": _event_synchronize,
        "cuEventElapsedTime": _event_elapsed,
        "cuEventElapsedTime_v2": _event_elapsed,
    }
)
"""The handlers, by exported symbol (without ``_ptsz``)."""
