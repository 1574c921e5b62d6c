"""Primary contexts, those beside them, the calling thread's context stack, and limits.

Source: CUDA Driver API, Primary Context Management; Context Management; Green Contexts.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.sim.abi import DeviceAttribute, Limit
from trunnion.sim.host import put
from trunnion.sim.launch_attributes import PRIORITIES
from trunnion.sim.objects import Context
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import LimitSet, PersistingLinesReset, Synchronized

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler

__all__ = ["HANDLERS"]

# What a fresh context has, where the documentation says it (CUDA C++ Programming Guide, Device Runtime).
_LIMITS: Final = {
    Limit.STACK_SIZE: 1024,
    Limit.PRINTF_FIFO_SIZE: 1 << 20,
    Limit.MALLOC_HEAP_SIZE: 8 << 20,
    Limit.DEV_RUNTIME_PENDING_LAUNCH_COUNT: 2048,
    Limit.MAX_L2_FETCH_GRANULARITY: 64,
    Limit.PERSISTING_L2_CACHE_SIZE: 0,
}
_MAX_FETCH: Final = 128
_GREEN_DEFAULT_STREAM: Final = 1  # CU_GREEN_CTX_DEFAULT_STREAM


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
        if context.references == 0:
            call.state.destroy(context)


def _state(call: Call, ordinal: int, flags: int | None, active: int | None) -> None:
    context = call.state.contexts[call.state.device(ordinal).ordinal]
    put(ctypes.c_uint32, flags, 0, "flags")
    put(ctypes.c_int32, active, int(context.references > 0), "active")


def _context(call: Call, handle: int) -> Context:
    found = call.state.handled.get(handle)
    if not isinstance(found, Context):
        raise Refusal(Status.INVALID_CONTEXT, f"{handle:#x} is no context of this driver")
    return found


def _create(call: Call, result: int | None, flags: int, ordinal: int) -> None:
    if flags:
        raise Refusal(Status.NOT_SUPPORTED, f"flags are {flags:#x}, 0 is simulated")
    put(ctypes.c_void_p, result, 0, "pctx")
    context = call.state.make_context(call.state.device(ordinal))
    put(ctypes.c_void_p, result, context.handle, "pctx")
    call.state.stack().append(context)


def _create_v4(call: Call, result: int | None, parameters: int | None, flags: int, ordinal: int) -> None:
    if parameters:
        raise Refusal(Status.NOT_SUPPORTED, "ctxCreateParams are given, a null pointer is simulated")
    _create(call, result, flags, ordinal)


def _destroy(call: Call, handle: int | None) -> None:
    context = _made(call, handle or 0, green=False)
    stack = call.state.stack()
    if stack and stack[-1] is context:
        stack.pop()
    _end(call, context)


def _made(call: Call, handle: int, *, green: bool) -> Context:
    context = _context(call, handle)
    if context in call.state.contexts or bool(context.primary) != green:
        wanted = "green context" if green else "context that cuCtxCreate made"
        raise Refusal(Status.INVALID_CONTEXT, f"{handle:#x} is no {wanted}")
    return context


def _end(call: Call, context: Context) -> None:
    with call.state.lock:
        context.references = 0
        call.state.destroy(context)


def _green_create(call: Call, result: int | None, descriptor: int | None, ordinal: int, flags: int) -> None:
    if not descriptor or flags != _GREEN_DEFAULT_STREAM:
        reason = f"desc is {descriptor or 0:#x} and flags are {flags}; not null and {_GREEN_DEFAULT_STREAM} are allowed"
        raise Refusal(Status.INVALID_VALUE, reason)
    primary = call.state.contexts[call.state.device(ordinal).ordinal]
    put(ctypes.c_void_p, result, 0, "phCtx")
    with call.state.lock:
        primary.references += 1
        green = call.state.make_context(primary.device, primary)
    # Measured on an H100, driver 580: both handles are one.
    put(ctypes.c_void_p, result, green.handle, "phCtx")


def _green_destroy(call: Call, handle: int | None) -> None:
    green = _made(call, handle or 0, green=True)
    _end(call, green)
    _release(call, green.device.ordinal)


def _of_green(call: Call, result: int | None, handle: int | None) -> None:
    put(ctypes.c_void_p, result, _made(call, handle or 0, green=True).handle, "pContext")


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


def _get_id(call: Call, handle: int | None, result: int | None) -> None:
    context = call.state.current() if handle is None else _context(call, handle)
    put(ctypes.c_uint64, result, context.number, "ctxId")


def _synchronize(call: Call) -> None:
    context = call.state.current()  # kernels run to their end inside the launch: nothing is ever pending
    with call.state.lock:
        call.state.captures.check_context(context, "cuCtxSynchronize")
    call.state.trace.add(Synchronized(context.device.ordinal, None, context.handle))


def _limit(limit: int) -> Limit:
    if limit not in tuple(Limit):
        raise Refusal(Status.UNSUPPORTED_LIMIT, f"limit {limit} is not simulated")
    return Limit(limit)


def _get_limit(call: Call, result: int | None, limit: int) -> None:
    context = call.state.current().home
    key = _limit(limit)
    if key not in _LIMITS:
        raise Refusal(Status.UNSUPPORTED_LIMIT, f"{key.name} is of compute capability below 9.0")
    put(ctypes.c_size_t, result, context.limits.get(key, _LIMITS[key]), "pvalue")


def _set_limit(call: Call, limit: int, value: int) -> None:
    context = call.state.current().home
    key = _limit(limit)
    if key not in _LIMITS:
        raise Refusal(Status.UNSUPPORTED_LIMIT, f"{key.name} is of compute capability below 9.0")
    with call.state.lock:
        call.state.captures.check_unsafe(call.state.thread(), "cuCtxSetLimit")
    held = value
    if key is Limit.PERSISTING_L2_CACHE_SIZE:  # the documentation: it may be clamped, or ignored
        held = min(value, context.device.attribute(DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE))
        if context.device.attribute(DeviceAttribute.MPS_ENABLED):  # a server decided when it started
            held = context.limits.get(key, _LIMITS[key])
    elif key is Limit.MAX_L2_FETCH_GRANULARITY:
        held = min(value, _MAX_FETCH)
    context.limits[key] = held
    call.state.trace.add(LimitSet(key, value, held, context.device.ordinal))


def _reset_persisting(call: Call) -> None:
    call.state.trace.add(PersistingLinesReset(call.state.current().device.ordinal))


def _priority_range(call: Call, least: int | None, greatest: int | None) -> None:
    call.state.current()
    for target, value in ((least, PRIORITIES[-1]), (greatest, PRIORITIES[0])):
        if target is not None:  # the documentation allows either to be null
            put(ctypes.c_int32, target, value, "priority")


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuDevicePrimaryCtxRetain": _retain,
        "cuDevicePrimaryCtxRelease": _release,
        "cuDevicePrimaryCtxRelease_v2": _release,
        "cuDevicePrimaryCtxGetState": _state,
        "cuCtxCreate_v2": _create,
        "cuCtxCreate_v4": _create_v4,
        "cuCtxDestroy_v2": _destroy,
        "cuGreenCtxCreate": _green_create,
        "cuGreenCtxDestroy": _green_destroy,
        "cuCtxFromGreenCtx": _of_green,
        "cuCtxGetCurrent": _get_current,
        "cuCtxSetCurrent": _set_current,
        "cuCtxPushCurrent_v2": _push,
        "cuCtxPopCurrent_v2": _pop,
        "cuCtxGetDevice": _get_device,
        "cuCtxGetId": _get_id,
        "cuCtxSynchronize": _synchronize,
        "cuCtxGetLimit": _get_limit,
        "cuCtxSetLimit": _set_limit,
        "cuCtxResetPersistingL2Cache": _reset_persisting,
        "cuCtxGetStreamPriorityRange": _priority_range,
    }
)
"""The handlers, by exported symbol (without ``_ptsz``)."""
