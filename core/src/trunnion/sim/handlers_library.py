"""Libraries and kernels.

Source: CUDA Driver API, Library Management. Where a driver under lazy loading finds a malformed image only
when a kernel is asked for, the simulator finds it at once, as a driver under ``CUDA_MODULE_LOADING=EAGER``
does.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError
from trunnion.image import read_cubin
from trunnion.sim.abi import DeviceAttribute, FunctionAttribute
from trunnion.sim.devices import can_run
from trunnion.sim.host import HostReader, put, text
from trunnion.sim.state import Function, Kernel, Library
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import AttributeSet, LibraryLoaded, LibraryUnloaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler
    from trunnion.sim.devices import Device

__all__ = ["HANDLERS"]

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_NO_BITS: Final = 8  # SHT_NOBITS: a section without bytes in the file
_ELF64: Final = b"\x7fELF\x02\x01"
_FAT_BINARY: Final = (b"\x50\xed\x55\xba", b"\xb1\x43\x62\x46")
_PTX: Final = (b".version", b"//", b".target")
_MAX_IMAGE: Final = 1 << 31


def _image(address: int | None) -> bytes:
    """Return an ELF image's bytes: from its start to the end that its own tables give."""
    with HostReader() as reader:
        start = reader.read(address, len(_ELF64) + 2, "code")
        if not start.startswith(_ELF64):
            if start.startswith(_PTX):
                raise Refusal(
                    Status.JIT_COMPILER_NOT_FOUND, "the image is PTX, which the simulator cannot compile"
                )
            if start[:4] in _FAT_BINARY:
                raise Refusal(Status.NOT_SUPPORTED, "the image is a fat binary; load the cubin in it")
            raise Refusal(Status.INVALID_IMAGE, f"the image begins with {start.hex()}, no 64-bit ELF file")
        header = _HEADER.unpack(reader.read(address, _HEADER.size, "the image's header"))
        (program_at, section_at), (program_size, program_count) = header[5:7], header[9:11]
        section_size, section_count = header[11:13]
        if section_size != _SECTION.size:
            raise Refusal(
                Status.INVALID_IMAGE, f"section headers of {section_size} bytes, not {_SECTION.size}"
            )
        end = max(program_at + program_size * program_count, section_at + section_size * section_count)
        _check_size(end)
        table = reader.read((address or 0) + section_at, section_size * section_count, "the section table")
        for row in _SECTION.iter_unpack(table):
            if row[1] != _NO_BITS:
                end = max(end, row[4] + row[5])
        _check_size(end)
        return reader.read(address, end, "the image")


def _check_size(end: int) -> None:
    if end > _MAX_IMAGE:
        raise Refusal(Status.INVALID_IMAGE, f"the image's tables reach to {end} bytes")


def _load(
    call: Call,
    result: int | None,
    code: int | None,
    _jit_options: int | None,
    _jit_values: int | None,
    jit_count: int,
    _options: int | None,
    _values: int | None,
    count: int,
) -> None:
    if jit_count or count:
        raise Refusal(
            Status.NOT_SUPPORTED, f"{jit_count} JIT options and {count} library options, 0 are simulated"
        )
    try:
        data = _image(code)
    except Refusal as refusal:
        if (
            code and refusal.status is Status.INVALID_VALUE
        ):  # what could not be read lies behind the image's end
            raise Refusal(Status.INVALID_IMAGE, refusal.reason) from refusal
        raise
    try:
        info = read_cubin(data)
    except CorruptArtifactError as error:
        raise Refusal(Status.INVALID_IMAGE, str(error)) from error
    library = Library(call.state.new_handle(), hashlib.sha256(data).hexdigest(), info)
    for kernel in info.kernels:
        library.kernels[kernel.name] = Kernel(call.state.new_handle(), library, kernel)
    put(ctypes.c_void_p, result, library.handle, "library")
    call.state.add(library)
    call.state.trace.add(LibraryLoaded(library.handle, library.sha256, len(data)))


def _unload(call: Call, handle: int | None) -> None:
    library = call.state.get(Library, handle)
    with call.state.lock:
        for kernel in library.kernels.values():
            for function in kernel.functions.values():
                call.state.handled.pop(function.handle, None)
            call.state.handled.pop(kernel.handle, None)
        call.state.handled.pop(library.handle, None)
    call.state.trace.add(LibraryUnloaded(library.handle))


def _get_kernel(call: Call, result: int | None, handle: int | None, name: int | None) -> None:
    library = call.state.get(Library, handle)
    device = call.state.devices[0]  # all devices have one architecture
    if not can_run(library.info.arch, device):
        raise Refusal(
            Status.NO_BINARY_FOR_GPU,
            f"the image is for {library.info.arch}, the device is {device.arch.name}",
        )
    symbol = text(name, "name")
    kernel = library.kernels.get(symbol)
    if kernel is None:
        raise Refusal(
            Status.NOT_FOUND, f"no kernel {symbol!a} (there are: {', '.join(library.kernels) or 'none'})"
        )
    put(ctypes.c_void_p, result, kernel.handle, "pKernel")
    call.state.add(kernel)


def _get_function(call: Call, result: int | None, handle: int | None) -> None:
    kernel = call.state.get(Kernel, handle)
    device = call.state.current().device
    with call.state.lock:
        function = kernel.functions.get(device.ordinal)
        if function is None:
            function = Function(call.state.new_handle(), kernel, device)
            kernel.functions[device.ordinal] = function
            call.state.add(function)
    put(ctypes.c_void_p, result, function.handle, "pFunc")


def _attribute(attribute: int) -> FunctionAttribute:
    if attribute not in tuple(FunctionAttribute):
        raise Refusal(Status.INVALID_VALUE, f"there is no function attribute {attribute}")
    return FunctionAttribute(attribute)


def _settable(kernel: Kernel, attribute: FunctionAttribute, device: Device) -> range:
    """Return the values that an attribute may be set to."""
    if attribute is FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return range(device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) + 1)
    if attribute is FunctionAttribute.PREFERRED_SHARED_MEMORY_CARVEOUT:
        return range(-1, 101)
    if attribute is FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        return range(1 << 31)
    if attribute is FunctionAttribute.CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return range(3)
    required = (
        FunctionAttribute.REQUIRED_CLUSTER_WIDTH,
        FunctionAttribute.REQUIRED_CLUSTER_HEIGHT,
        FunctionAttribute.REQUIRED_CLUSTER_DEPTH,
    )
    if attribute in required and kernel.info.cluster is None:
        return range(1 << 31)
    raise Refusal(Status.INVALID_VALUE, f"{attribute.name} cannot be set")


def _set_attribute(call: Call, attribute: int, value: int, handle: int | None, ordinal: int) -> None:
    kernel = call.state.get(Kernel, handle)
    device = call.state.device(ordinal)
    key = _attribute(attribute)
    allowed = _settable(kernel, key, device)
    if value not in allowed:
        raise Refusal(
            Status.INVALID_VALUE,
            f"{key.name} is {value}, from {allowed.start} to {allowed.stop - 1} is allowed",
        )
    kernel.attributes[device.ordinal, key] = value
    call.state.trace.add(AttributeSet(kernel.info.name, device.ordinal, key, value))


def _get_attribute(call: Call, result: int | None, attribute: int, handle: int | None, ordinal: int) -> None:
    kernel = call.state.get(Kernel, handle)
    device = call.state.device(ordinal)
    key = _attribute(attribute)
    major, minor = device.compute_capability
    threads = kernel.info.required_threads or kernel.info.max_threads
    cluster = kernel.info.cluster
    fixed = {
        FunctionAttribute.MAX_THREADS_PER_BLOCK: math.prod(threads)
        if threads
        else device.attribute(DeviceAttribute.MAX_THREADS_PER_BLOCK),
        FunctionAttribute.NUM_REGS: kernel.info.registers or 0,
        FunctionAttribute.BINARY_VERSION: 10 * major + minor,
        FunctionAttribute.PTX_VERSION: 10 * major + minor,
    }
    if cluster is not None:
        fixed |= {
            FunctionAttribute.CLUSTER_SIZE_MUST_BE_SET: 1,
            FunctionAttribute.REQUIRED_CLUSTER_WIDTH: cluster[0],
            FunctionAttribute.REQUIRED_CLUSTER_HEIGHT: cluster[1],
            FunctionAttribute.REQUIRED_CLUSTER_DEPTH: cluster[2],
        }
    put(ctypes.c_int32, result, fixed.get(key, kernel.attribute(device, key)), "pi")


def _param_info(call: Call, handle: int | None, index: int, offset: int | None, size: int | None) -> None:
    kernel = call.state.get(Kernel, handle)
    call.state.current()  # measured on an H200: without a context it is refused
    if index >= len(kernel.info.parameters):
        raise Refusal(
            Status.INVALID_VALUE,
            f"parameter {index} of {len(kernel.info.parameters)} in {kernel.info.name!a}",
        )
    parameter = kernel.info.parameters[index]
    put(ctypes.c_size_t, offset, parameter.offset, "paramOffset")
    if size is not None:
        put(ctypes.c_size_t, size, parameter.size, "paramSize")


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuLibraryLoadData": _load,
        "cuLibraryUnload": _unload,
        "cuLibraryGetKernel": _get_kernel,
        "cuKernelGetFunction": _get_function,
        "cuKernelSetAttribute": _set_attribute,
        "cuKernelGetAttribute": _get_attribute,
        "cuKernelGetParamInfo": _param_info,
    }
)
"""The handlers, by exported symbol (without ``_ptsz``)."""
