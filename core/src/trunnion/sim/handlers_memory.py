"""Memory sets and copies.

Source: CUDA Driver API, Memory Management.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.errors import DriverError
from trunnion.sim.graph import NodeKind, Work
from trunnion.sim.host import HostReader
from trunnion.sim.status import Refusal, Status
from trunnion.sim.submission import submit
from trunnion.sim.trace import MemoryCopied, MemorySet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler
    from trunnion.sim.state import DriverState

__all__ = ["HANDLERS"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fill:
    """A memory set, whichever entry point it came by; the sizes are in bytes."""

    itemsize: int
    address: int
    value: int
    count: int
    rows: int = 1
    pitch: int = 0


def _check_range(state: DriverState, address: int, nbytes: int, device: int) -> None:
    try:
        state.memory.check(address, nbytes, device)
    except DriverError as error:
        raise Refusal(Status.INVALID_VALUE, error.explanation) from error


def _fill(call: Call, fill: _Fill, handle: int | None) -> None:
    stream = call.state.stream(call.stream(handle))
    device = stream.device.ordinal
    if fill.address % fill.itemsize:
        raise Refusal(Status.INVALID_VALUE, f"{fill.address:#x} is no multiple of {fill.itemsize}")
    pitch = fill.pitch if fill.rows > 1 else 0
    if pitch % fill.itemsize:
        raise Refusal(Status.INVALID_VALUE, f"the pitch of {pitch} bytes is no multiple of {fill.itemsize}")
    width = fill.itemsize * fill.count
    if pitch and pitch < width:
        raise Refusal(Status.INVALID_VALUE, f"rows of {width} bytes with a pitch of {pitch}")
    if fill.count and fill.rows:
        _check_range(call.state, fill.address, pitch * (fill.rows - 1) + width, device)
    event = MemorySet(
        fill.address, fill.value, fill.itemsize, fill.count, device, call.stream(handle), fill.rows, pitch
    )

    def run() -> None:
        data = fill.value.to_bytes(fill.itemsize, "little") * fill.count
        for row in range(fill.rows if fill.count else 0):
            call.state.memory.on(device, "fill").write(fill.address + row * pitch, data)

    submit(call.state, stream, Work(NodeKind.MEMSET, event, run))


def _flat(itemsize: int) -> Handler:
    def handler(call: Call, address: int, value: int, count: int, stream: int | None = None) -> None:
        _guard_synchronous(call)
        _fill(call, _Fill(itemsize=itemsize, address=address, value=value, count=count), stream)

    return handler


def _pitched(itemsize: int) -> Handler:
    def handler(  # noqa: PLR0913, PLR0917 - the driver's own parameters
        call: Call,
        address: int,
        pitch: int,
        value: int,
        width: int,
        height: int,
        stream: int | None = None,
    ) -> None:
        _guard_synchronous(call)
        fill = _Fill(itemsize=itemsize, address=address, value=value, count=width, rows=height, pitch=pitch)
        _fill(call, fill, stream)

    return handler


def _guard_synchronous(call: Call) -> None:
    """Refuse a call without a stream while a capture forbids what is no work of a stream."""
    if "Async" not in call.entry.symbol:
        with call.state.lock:
            call.state.captures.check_implicit(call.state.stream(call.stream(None)), invalidates=True)
            call.state.captures.check_unsafe(call.state.thread(), call.entry.base)


def _copy(call: Call, target: int, source: int, nbytes: int, direction: str, handle: int | None) -> None:
    _guard_synchronous(call)
    stream = call.state.stream(call.stream(handle))
    memory = call.state.memory
    source_device = _side(call.state, source, nbytes, direction[0])
    target_device = _side(call.state, target, nbytes, direction[-1])
    event = MemoryCopied(source, target, nbytes, direction, stream.device.ordinal, call.stream(handle))

    def run() -> None:
        if not nbytes:
            return
        if source_device is None:
            with HostReader() as reader:
                data = reader.read(source, nbytes, "the source")
        else:
            data = memory.on(source_device, "copy").read(source, nbytes)
        if target_device is None:
            ctypes.memmove(target, data, nbytes)
        else:
            memory.on(target_device, "copy").write(target, data)

    submit(call.state, stream, Work(NodeKind.MEMCPY, event, run))


def _side(state: DriverState, address: int, nbytes: int, side: str) -> int | None:
    """Check one side of a copy, and return its device; None for host memory."""
    if not nbytes:
        return None
    found = state.memory.find(address)
    if side == "H":
        with HostReader() as reader:
            reader.read(address, nbytes, "host memory")
        return None
    if found is None:
        raise Refusal(Status.INVALID_VALUE, f"{address:#x} lies in no live allocation")
    _check_range(state, address, nbytes, found.device)
    return found.device


def _copy_unified(call: Call, target: int, source: int, nbytes: int, stream: int | None = None) -> None:
    sides = ("H" if call.state.memory.find(address) is None else "D" for address in (source, target))
    _copy(call, target, source, nbytes, "to".join(sides), stream)


def _copier(direction: str) -> Handler:
    def handler(
        call: Call, target: int | None, source: int | None, nbytes: int, stream: int | None = None
    ) -> None:
        _copy(call, target or 0, source or 0, nbytes, direction, stream)

    return handler


_SIZES: Final = {8: 1, 16: 2, 32: 4}

HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        **{f"cuMemsetD{bits}_v2": _flat(itemsize) for bits, itemsize in _SIZES.items()},
        **{f"cuMemsetD{bits}Async": _flat(itemsize) for bits, itemsize in _SIZES.items()},
        **{f"cuMemsetD2D{bits}_v2": _pitched(itemsize) for bits, itemsize in _SIZES.items()},
        **{f"cuMemsetD2D{bits}Async": _pitched(itemsize) for bits, itemsize in _SIZES.items()},
        "cuMemcpyAsync": _copy_unified,
        **{
            f"cuMemcpy{direction}{kind}_v2": _copier(direction)
            for direction in ("HtoD", "DtoH", "DtoD")
            for kind in ("", "Async")
        },
    }
)
"""The handlers, by exported symbol (without ``_ptsz`` and ``_ptds``)."""
