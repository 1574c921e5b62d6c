"""Initialisation, versions, errors, entry points and devices.

Source: CUDA Driver API, Initialization; Version Management; Error Handling; Driver Entry Point Access; Device
Management.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.sim.devices import least_version
from trunnion.sim.host import put, text
from trunnion.sim.status import Refusal, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler
    from trunnion.sim.shim import Entry

__all__ = ["HANDLERS", "UNINITIALIZED"]

_PER_THREAD_FLAG: Final = 2
_FLAGS: Final = (0, 1, _PER_THREAD_FLAG)
_INSTANTIATE_IS_WITH_FLAGS: Final = 12000
_FOUND, _NOT_FOUND, _TOO_OLD = 0, 1, 2
_NAMED: Final[tuple[Status, ...]] = tuple(status for status in Status if status is not Status.UNNAMED)
_NAMES: Final = {status: ctypes.create_string_buffer(status.symbol.encode()) for status in _NAMED}
_TEXTS: Final = {status: ctypes.create_string_buffer(status.description.encode()) for status in _NAMED}


def _init(call: Call, flags: int) -> None:
    if flags != 0:
        raise Refusal(Status.INVALID_VALUE, f"flags are {flags}, 0 is allowed")
    call.state.initialize()


def _driver_version(call: Call, version: int | None) -> None:
    put(ctypes.c_int32, version, call.state.driver_version, "driverVersion")


def _find(call: Call, symbol: int | None, version: int, flags: int) -> tuple[Entry | None, int]:
    """Return the entry point of that name, and a ``CUdriverProcAddressQueryResult``."""
    driver = call.state.driver_version
    if flags not in _FLAGS:
        raise Refusal(Status.INVALID_VALUE, f"flags are {flags}, 0, 1 and 2 are allowed")
    if version > driver:
        raise Refusal(Status.INVALID_VALUE, f"cudaVersion is {version}, the driver's is {driver}")
    name = text(symbol, "symbol")
    if name == "cuGraphInstantiate" and version >= _INSTANTIATE_IS_WITH_FLAGS:
        name = "cuGraphInstantiateWithFlags"
    named = [entry for entry in call.entries if entry.base == name and entry.since <= driver]
    wanted = flags == _PER_THREAD_FLAG
    kin = [entry for entry in named if entry.per_thread is wanted] or [
        entry for entry in named if not entry.per_thread
    ]
    fitting = [entry for entry in kin if entry.since <= version]
    if not fitting:
        return None, _TOO_OLD if kin else _NOT_FOUND
    return max(fitting, key=lambda entry: entry.since), _FOUND


def _proc_address(call: Call, symbol: int | None, address: int | None, version: int, flags: int) -> None:
    entry, _ = _find(call, symbol, version, flags)
    if entry is None:
        raise Refusal(Status.NOT_FOUND, f"no {text(symbol, 'symbol')} for CUDA {version}")
    put(ctypes.c_void_p, address, entry.address, "pfn")


def _proc_address_v2(
    call: Call, symbol: int | None, address: int | None, version: int, flags: int, status: int | None
) -> None:
    entry, result = _find(call, symbol, version, flags)
    put(ctypes.c_void_p, address, None if entry is None else entry.address, "pfn")
    if status is not None:
        put(ctypes.c_int32, status, result, "symbolStatus")


def _export_table(_: Call, table: int | None, identity: int | None) -> None:
    # NVRTC asks for a table of the driver's private interface, and reads it unless the driver says that it has none.
    raise Refusal(Status.NOT_FOUND, f"no private interface {identity or 0:#x} for {table or 0:#x}")


def _error_name(call: Call, code: int, result: int | None) -> None:
    _error_text(call, _NAMES, code, result)


def _error_string(call: Call, code: int, result: int | None) -> None:
    _error_text(call, _TEXTS, code, result)


def _error_text(
    _: Call, table: Mapping[Status, ctypes.Array[ctypes.c_char]], code: int, result: int | None
) -> None:
    known = code in _NAMED
    put(ctypes.c_void_p, result, ctypes.addressof(table[Status(code)]) if known else None, "pStr")
    if not known:
        raise Refusal(Status.INVALID_VALUE, f"{code} is no CUresult")


def _device_get(call: Call, result: int | None, ordinal: int) -> None:
    put(ctypes.c_int32, result, call.state.device(ordinal).ordinal, "device")


def _device_count(call: Call, result: int | None) -> None:
    put(ctypes.c_int32, result, len(call.state.devices), "count")


def _device_name(call: Call, result: int | None, length: int, ordinal: int) -> None:
    device = call.state.device(ordinal)
    if not result or length < 1:
        raise Refusal(Status.INVALID_VALUE, f"room for {length} characters at {result or 0:#x}")
    name = device.arch.device_name.encode()[: length - 1]
    ctypes.memmove(result, name + b"\0", len(name) + 1)


def _device_memory(call: Call, result: int | None, ordinal: int) -> None:
    put(ctypes.c_size_t, result, call.state.device(ordinal).arch.memory_bytes, "bytes")


def _device_attribute(call: Call, result: int | None, attribute: int, ordinal: int) -> None:
    device = call.state.device(ordinal)
    if least_version(attribute) > call.state.driver_version:
        version = call.state.driver_version
        raise Refusal(Status.INVALID_VALUE, f"a driver of CUDA {version} has no device attribute {attribute}")
    put(ctypes.c_int32, result, device.attribute(attribute), "pi")


UNINITIALIZED: Final[frozenset[str]] = frozenset(
    ("cuInit", "cuDriverGetVersion", "cuGetProcAddress", "cuGetErrorName", "cuGetErrorString")
)
"""Base names of the entry points that work before ``cuInit``."""

HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuInit": _init,
        "cuDriverGetVersion": _driver_version,
        "cuGetProcAddress": _proc_address,
        "cuGetProcAddress_v2": _proc_address_v2,
        "cuGetExportTable": _export_table,
        "cuGetErrorName": _error_name,
        "cuGetErrorString": _error_string,
        "cuDeviceGet": _device_get,
        "cuDeviceGetCount": _device_count,
        "cuDeviceGetName": _device_name,
        "cuDeviceTotalMem_v2": _device_memory,
        "cuDeviceGetAttribute": _device_attribute,
    }
)
"""The handlers, by exported symbol (without ``_ptsz``)."""
