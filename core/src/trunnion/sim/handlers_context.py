"""Primary contexts, the calling thread's context stack, and streams.

Source: CUDA Driver API, Primary Context Management; Context Management; Stream Management.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.sim.host import put
from trunnion.sim.state import Context, Stream
from trunnion.sim.status import Refusal, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler

__all__ = ["HANDLERS"]

_NON_BLOCKING: Final = 1


def _retain(call: Call, result: int | None, ordinal: int) -> None:
    context = call.state.contexts[call.state.device(ordinal).ordinal]
    put(ctypes.c_void_p, result, context.handle, "pctx")
    with call.state.lock:
        context.references += 1


def _release(call: Call, ordinal: int) -> None:
    context = call.state.contexts[call.state.device(ordinal).ordinal]
    with call.state.lock:
        if context.references == 0:
            raise Refusal(Status.INVALID_CONTEXT, f"the primary context of device {ordinal} is not retained")
        context.references -= 1


def _state(call: Call, ordinal: int, flags: int | None, active: int | None) -> None:
    context = call.state.contexts[call.state.device(ordinal).ordinal]
    put(ctypes.c_uint32, flags, 0, "flags")
    put(ctypes.c_int32, active, int(context.references > 0), "active")


def _context(call: Call, handle: int) -> Context:
    found = call.state.handled.get(handle)
    if not isinstance(found, Context):
        raise Refusal(Status.INVALID_CONTEXT, f"{handle:#x} is no context of this driver")
    return found


def _get_current(call: Call, result: int | None) -> None:
    stack = call.state.stack()
    put(ctypes.c_void_p, result, stack[-1].handle if stack else None, "pctx")


def _set_current(call: Call, handle: int | None) -> None:
    stack = call.state.stack()
    context = None if handle is None else _context(call, handle)
    if stack:
        stack.pop()
    if context is not None:
        stack.append(context)


def _push(call: Call, handle: int | None) -> None:
    if handle is None:
        raise Refusal(Status.INVALID_VALUE, "ctx is null")
    call.state.stack().append(_context(call, handle))


def _pop(call: Call, result: int | None) -> None:
    stack = call.state.stack()
    if not stack:
        raise Refusal(Status.INVALID_CONTEXT, "the calling thread has no context to pop")
    context = stack.pop()
    if result is not None:  # the documentation allows to ignore what is popped
        put(ctypes.c_void_p, result, context.handle, "pctx")


def _get_device(call: Call, result: int | None) -> None:
    put(ctypes.c_int32, result, call.state.current().device.ordinal, "device")


def _synchronize(call: Call) -> None:
    call.state.current()  # kernels run to their end inside the launch: nothing is ever pending


def _stream_create(call: Call, result: int | None, flags: int) -> None:
    if flags not in (0, _NON_BLOCKING):
        raise Refusal(Status.INVALID_VALUE, f"flags are {flags}, 0 and 1 are allowed")
    stream = Stream(call.state.new_handle(), call.state.current().device)
    put(ctypes.c_void_p, result, stream.handle, "phStream")
    call.state.add(stream)


def _stream_destroy(call: Call, handle: int | None) -> None:
    del call.state.handled[call.state.get(Stream, handle).handle]


def _stream_synchronize(call: Call, handle: int | None) -> None:
    call.state.stream_device(call.stream(handle))


def _stream_capturing(call: Call, handle: int | None, result: int | None) -> None:
    call.state.stream_device(call.stream(handle))
    put(ctypes.c_int32, result, 0, "captureStatus")  # CU_STREAM_CAPTURE_STATUS_NONE: no capture is simulated


def _stream_context(call: Call, handle: int | None, result: int | None) -> None:
    device = call.state.stream_device(call.stream(handle))
    put(ctypes.c_void_p, result, call.state.contexts[device.ordinal].handle, "pctx")


def _stream_device(call: Call, handle: int | None, result: int | None) -> None:
    put(ctypes.c_int32, result, call.state.stream_device(call.stream(handle)).ordinal, "device")


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuDevicePrimaryCtxRetain": _retain,
        "cuDevicePrimaryCtxRelease": _release,
        "cuDevicePrimaryCtxRelease_v2": _release,
        "cuDevicePrimaryCtxGetState": _state,
        "cuCtxGetCurrent": _get_current,
        "cuCtxSetCurrent": _set_current,
        "cuCtxPushCurrent_v2": _push,
        "cuCtxPopCurrent_v2": _pop,
        "cuCtxGetDevice": _get_device,
        "cuCtxSynchronize": _synchronize,
        "cuStreamCreate": _stream_create,
        "cuStreamDestroy_v2": _stream_destroy,
        "cuStreamSynchronize": _stream_synchronize,
        "cuStreamIsCapturing": _stream_capturing,
        "cuStreamGetCtx": _stream_context,
        "cuStreamGetDevice": _stream_device,
    }
)
"""The handlers, by exported symbol (without ``_ptsz``)."""
