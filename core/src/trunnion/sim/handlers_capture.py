"""Stream capture.

Source: CUDA Driver API, Stream Management.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.sim.abi_graph import EdgeDataStruct
from trunnion.sim.host import HostReader, put
from trunnion.sim.objects import Capture, CaptureMode, CaptureStatus
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import CaptureBegan, CaptureEnded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler
    from trunnion.sim.objects import Stream

__all__ = ["HANDLERS", "begin", "end"]


def _mode(mode: int) -> CaptureMode:
    if mode not in tuple(CaptureMode):
        raise Refusal(Status.INVALID_VALUE, f"mode is {mode}, no CUstreamCaptureMode")
    return CaptureMode(mode)


def begin(call: Call, handle: int | None, mode: int) -> None:
    """Handle ``cuStreamBeginCapture``."""
    stream = call.state.stream(call.stream(handle))
    with call.state.lock:
        capture = call.state.captures.begin(stream, _mode(mode), call.state.thread())
        call.state.add(capture.graph)
    call.state.trace.add(CaptureBegan(call.stream(handle), mode))


def end(call: Call, handle: int | None, result: int | None) -> None:
    """Handle ``cuStreamEndCapture``."""
    stream = call.state.stream(call.stream(handle))
    put(ctypes.c_void_p, result, None, "phGraph")
    with call.state.lock:
        graph = call.state.captures.end(stream, call.state.thread())
    put(ctypes.c_void_p, result, graph.handle, "phGraph")
    call.state.trace.add(CaptureEnded(call.stream(handle), graph.handle))


def _is_capturing(call: Call, handle: int | None, result: int | None) -> None:
    stream = call.state.stream(call.stream(handle))
    with call.state.lock:
        call.state.captures.check_implicit(stream, invalidates=False)
    status = CaptureStatus.NONE if stream.capture is None else stream.capture.status
    put(ctypes.c_int32, result, status, "captureStatus")


def _info(call: Call, handle: int | None, status: int | None, number: int | None) -> Capture | None:
    """Answer what every version asks, and return the capture if it is active."""
    _is_capturing(call, handle, status)
    capture = call.state.stream(call.stream(handle)).capture
    if capture is None or capture.status is not CaptureStatus.ACTIVE:
        return None
    _put_if(ctypes.c_uint64, number, capture.number)
    return capture


def _put_if(kind: Any, address: int | None, value: int) -> None:
    if address is not None:
        put(kind, address, value, "output")


def _info_v1(call: Call, handle: int | None, status: int | None, number: int | None) -> None:
    _info(call, handle, status, number)


def _info_v2(  # noqa: PLR0913, PLR0917 - the driver's own parameters
    call: Call,
    handle: int | None,
    status: int | None,
    number: int | None,
    graph: int | None,
    dependencies: int | None,
    count: int | None,
) -> None:
    _info_v3(call, handle, status, number, graph, dependencies, None, count)


def _info_v3(  # noqa: PLR0913, PLR0917 - the driver's own parameters
    call: Call,
    handle: int | None,
    status: int | None,
    number: int | None,
    graph: int | None,
    dependencies: int | None,
    edges: int | None,
    count: int | None,
) -> None:
    if edges is not None and dependencies is None:
        raise Refusal(Status.INVALID_VALUE, "edgeData_out needs dependencies_out")
    capture = _info(call, handle, status, number)
    if capture is None:
        return
    nodes = _frontier(capture, call.state.stream(call.stream(handle)))
    array = (ctypes.c_void_p * max(1, len(nodes)))(*nodes)
    data = (EdgeDataStruct * max(1, len(nodes)))()  # what a stream's next work waits for is an end
    capture.kept[:] = [array, data]
    _put_if(ctypes.c_void_p, graph, capture.graph.handle)
    _put_if(ctypes.c_void_p, dependencies, ctypes.addressof(array))
    _put_if(ctypes.c_void_p, edges, ctypes.addressof(data))
    _put_if(ctypes.c_size_t, count, len(nodes))


def _frontier(capture: Capture, stream: Stream) -> list[int]:
    return sorted(node.handle for node in capture.frontiers[stream])


def _exchange_mode(call: Call, mode: int | None) -> None:
    with HostReader() as reader:
        (asked,) = reader.array(ctypes.c_int32, mode, 1, "mode")
    before = call.state.captures.exchange_mode(call.state.thread(), _mode(asked))
    put(ctypes.c_int32, mode, before, "mode")


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuStreamBeginCapture_v2": begin,
        "cuStreamEndCapture": end,
        "cuStreamIsCapturing": _is_capturing,
        "cuStreamGetCaptureInfo": _info_v1,
        "cuStreamGetCaptureInfo_v2": _info_v2,
        "cuStreamGetCaptureInfo_v3": _info_v3,
        "cuThreadExchangeStreamCaptureMode": _exchange_mode,
    }
)
"""The handlers, by exported symbol (without ``_ptsz``)."""
