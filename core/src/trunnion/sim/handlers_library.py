"""Libraries.

Source: CUDA Driver API, Library Management. Where a driver under lazy loading finds a malformed image only
when a kernel is asked for, the simulator finds it at once, as a driver under ``CUDA_MODULE_LOADING=EAGER``
does.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError
from trunnion.image import CubinInfo, read_cubin, read_ptx
from trunnion.image.ptx import least_cuda
from trunnion.messages import quoted
from trunnion.sim.host import HostReader, put, text
from trunnion.sim.objects import Kernel, Library
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import LibraryLoaded, LibraryUnloaded
from trunnion.sim.variables import place_variables, variable_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.image import PtxInfo
    from trunnion.sim.call import Call, Handler

__all__ = ["HANDLERS"]

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_NO_BITS: Final = 8  # SHT_NOBITS: a section without bytes in the file
_ELF64: Final = b"\x7fELF\x02\x01"
_FAT_BINARY: Final = (b"\x50\xed\x55\xba", b"\xb1\x43\x62\x46")
_PTX: Final = (b".v", b".t", b"//", b"/*")  # .version, .target and comments
_NO_TEXT: Final = re.compile(
    rb'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?(?:\*/|\Z)|(?P<bad>[^\t-\r -~])', re.DOTALL
)
"""Finds strings, comments, and between them bytes that no text has."""
_UNKNOWN_CUDA: Final = (
    100,
    0,
)  # brings each version of PTX that nobody knows: newer than all that is simulated
_MAX_IMAGE: Final = 1 << 31


def _image(address: int | None) -> bytes:
    """Return an ELF image's bytes: from its start to the end that its own tables give."""
    with HostReader() as reader:
        start = reader.read(address, len(_ELF64) + 2, "code")
        if not start.startswith(_ELF64):
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


def _read_image(call: Call, code: int | None) -> tuple[bytes, CubinInfo, str | None]:
    """Return an image's bytes, what it says about itself, and for PTX the least architecture that it needs."""
    text = _text(code)
    if text is not None:
        info = _assemble(call, text)
        arch = call.state.devices[0].arch.name
        return text, CubinInfo(arch=arch, kernels=info.kernels, variables=info.variables), info.target
    try:
        data = _image(code)
    except Refusal as refusal:
        if (
            code and refusal.status is Status.INVALID_VALUE
        ):  # what could not be read lies behind the image's end
            raise Refusal(Status.INVALID_IMAGE, refusal.reason) from refusal
        raise
    try:
        return data, read_cubin(data), None
    except CorruptArtifactError as error:
        raise Refusal(Status.INVALID_IMAGE, str(error)) from error


def _text(address: int | None) -> bytes | None:
    """Return PTX, which ends with a zero byte; None if something else is there."""
    with HostReader() as reader:
        at = address or 0
        while (byte := reader.read(at, 1, "code")) in (b" ", b"\t", b"\r", b"\n"):
            at += 1
        if byte not in (b".", b"/"):
            return None
        start = reader.read(at, 2, "code")
    return ctypes.string_at(address or 0) if start in _PTX else None


def _assemble(call: Call, text: bytes) -> PtxInfo:
    """Return what PTX says about itself, if the driver's compiler would take it."""
    try:
        info = read_ptx(text, call.state.devices[0].arch.name)
    except CorruptArtifactError as error:
        raise Refusal(Status.INVALID_PTX, str(error)) from error
    bad = next((found for found in _NO_TEXT.finditer(text) if found["bad"]), None)
    if bad is not None:
        reason = f"PTX has byte {bad[0].hex()} at {bad.start()}, which is no text: is its final NUL missing?"
        raise Refusal(Status.INVALID_PTX, reason)
    major, minor = least_cuda(info.version) or _UNKNOWN_CUDA
    if 1000 * major + 10 * minor > call.state.driver_version:
        reason = f"PTX {info.version} is newer than a driver of CUDA {call.state.driver_version}"
        raise Refusal(Status.UNSUPPORTED_PTX_VERSION, reason)
    if b".blocksareclusters" in text:
        raise Refusal(Status.NOT_SUPPORTED, "a kernel whose grid counts clusters is not simulated")
    return info


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
    with call.state.lock:
        call.state.captures.check_unsafe(call.state.thread(), "cuLibraryLoadData")
    data, info, target = _read_image(call, code)
    library = Library(call.state.new_handle(), hashlib.sha256(data).hexdigest(), info, target)
    for kernel in info.kernels:
        library.kernels[kernel.name] = Kernel(call.state.new_handle(), library, kernel)
    place_variables(call.state, library)
    put(ctypes.c_void_p, result, library.handle, "library")
    call.state.add(library)
    call.state.trace.add(LibraryLoaded(library.handle, library.sha256, len(data)))


def _unload(call: Call, handle: int | None) -> None:
    library = call.state.get(Library, handle)
    with call.state.lock:
        call.state.captures.check_unsafe(call.state.thread(), "cuLibraryUnload")
        for kernel in library.kernels.values():
            for function in kernel.functions.values():
                call.state.remove(function)
            call.state.remove(kernel)
        call.state.remove(library)
        library.variables.clear()
    call.state.trace.add(LibraryUnloaded(library.handle))


def _get_kernel(call: Call, result: int | None, handle: int | None, name: int | None) -> None:
    library = call.state.get(Library, handle)
    library.check_runs_on(*call.state.devices)  # which of them is for whoever uses the kernel to say
    symbol = text(name, "name")
    kernel = library.kernels.get(symbol)
    if kernel is None:
        raise Refusal(
            Status.NOT_FOUND,
            f"no kernel {quoted(symbol)} (there are: {', '.join(library.kernels) or 'none'})",
        )
    put(ctypes.c_void_p, result, kernel.handle, "pKernel")
    call.state.add(kernel)


def _get_global(
    call: Call, result: int | None, size: int | None, handle: int | None, name: int | None
) -> None:
    library = call.state.get(Library, handle)
    context = call.state.current()
    library.check_runs_on(context.device)
    found = variable_in(call.state, library, text(name, "name"), context)
    if not (result or size):
        raise Refusal(Status.INVALID_VALUE, "dptr and bytes are null pointers, one may be")
    if result:
        put(ctypes.c_uint64, result, found.address, "dptr")
    if size:
        put(ctypes.c_size_t, size, found.nbytes, "bytes")


def _kernel_count(call: Call, result: int | None, handle: int | None) -> None:
    put(ctypes.c_uint32, result, len(call.state.get(Library, handle).kernels), "count")


def _enumerate_kernels(call: Call, result: int | None, count: int, handle: int | None) -> None:
    kernels = tuple(call.state.get(Library, handle).kernels.values())[:count]
    if kernels and not result:
        raise Refusal(Status.INVALID_VALUE, "kernels is a null pointer")
    array = (ctypes.c_void_p * len(kernels))(*(kernel.handle for kernel in kernels))
    ctypes.memmove(result or 0, array, ctypes.sizeof(array))
    for kernel in kernels:
        call.state.add(kernel)


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuLibraryLoadData": _load,
        "cuLibraryUnload": _unload,
        "cuLibraryGetKernel": _get_kernel,
        "cuLibraryGetGlobal": _get_global,
        "cuLibraryGetKernelCount": _kernel_count,
        "cuLibraryEnumerateKernels": _enumerate_kernels,
    }
)
"""The handlers, by exported symbol."""
