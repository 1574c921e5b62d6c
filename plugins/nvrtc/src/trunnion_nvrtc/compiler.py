"""CUDA C++ to a cubin, through NVRTC. It needs no device and no driver."""

from __future__ import annotations

import hashlib
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.contract.compiler import DeviceCompiler, DeviceImage, ImageKernel
from trunnion.contract.spec import Target
from trunnion.errors import CompileError, ProgramError, UnsupportedFeatureError, shorten
from trunnion.image.cubin import read_cubin
from trunnion_nvrtc import nvrtc
from trunnion_nvrtc.device import device_arch
from trunnion_nvrtc.headers import needs_toolkit, reachable_headers, toolkit_directories
from trunnion_nvrtc.options import merge_options, render_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.contract.compiler import CompileRequest
    from trunnion.model.program import DeviceCode

__all__ = ["NvrtcCompiler"]

_VERSION = 1  # of what this module makes of a request; it changes whenever some image does
_ARCH = re.compile(r"(?P<kind>sm|compute)_(?P<number>\d+)(?P<variant>[af]?)")
_FIRST_WITH = {"": 0, "a": 90, "f": 100}
_MACRO = re.compile(r"[A-Za-z_]\w*(\([^()\n]*\))?", re.ASCII)

# NVRTC looks for "x.h" beside the source file. An absolute path that does not exist keeps it out of the
# working directory, and keeps the working directory out of line tables.
_FOLDER = "/trunnion/"


@dataclass(frozen=True, slots=True)
class _Job:
    """One call of NVRTC, everything checked and spelled as NVRTC wants it."""

    code: DeviceCode
    arch: str
    file_name: str
    options: tuple[str, ...]
    kernels: tuple[str, ...]

    @property
    def compiler(self) -> str:
        """Name and version of the compiler, for messages."""
        return "NVRTC {}.{}".format(*nvrtc.version())

    def run(self) -> tuple[bytes, tuple[str, ...], str]:
        """Return the cubin, the symbol of each kernel, and the log.

        Raises
        ------
        CompileError
            If NVRTC refuses the source.
        ProgramError
            If NVRTC refuses an option.
        """
        source = _encoded(self.code.source, "code.source")
        headers = [
            (_encoded(name, f"code.includes[{i}]"), _encoded(text, f"code.includes[{i}]"))
            for i, (name, text) in enumerate(self.code.includes)
        ]
        options = [_encoded(option, "code") for option in self.options]
        names = [_encoded(name, f"kernels[{i}].name") for i, name in enumerate(self.kernels)]
        path = _encoded(_FOLDER + self.file_name, "code.name")
        with nvrtc.open_program(source, path, headers) as program:
            for expression in names:
                program.add_name(expression)
            result = program.compile(options)
            log = result.log.replace(_FOLDER, "")
            if result.code_name == "NVRTC_ERROR_INVALID_OPTION":
                raise ProgramError(f"{self.compiler} refuses an option: {log.strip()}", field="code.options")
            if not result.succeeded:
                raise self._refusal(log)
            found = [program.lowered_name(expression) for expression in names]
            for name, symbol in zip(self.kernels, found, strict=True):
                if symbol is None:
                    raise self._refusal(f"{log}\nno symbol was made for the name {shorten(name)}")
            return program.cubin(), tuple(symbol for symbol in found if symbol is not None), log

    def _refusal(self, log: str) -> CompileError:
        text = self.code.source if isinstance(self.code.source, str) else ""
        error = CompileError(self.compiler, log, text, self.options, self.arch, self._line(log))
        if "__nv_name_map" in log:
            names = ", ".join(shorten(name) for name in self.kernels)
            error.add_note(
                f"hint: the program launches {names}; lines of __nv_name_map look these names up in the source, "
                "and there one is missing, ambiguous or no kernel"
            )
        missing = re.search(r'(?:could not|cannot) open source file "([^"\n]+)"', log)
        if missing:
            error.add_note(
                f"hint: {missing[1]} is neither a header in memory (DeviceCode.includes) nor in an include "
                "path (option --include-path=/absolute/folder); CUDA's own headers come with: "
                "pip install nvidia-cuda-runtime nvidia-cuda-cccl"
            )
        return error

    def _line(self, log: str) -> int:
        """Return the line that the first error names; 0 if that is in another file."""
        found = re.search(r"^(.*)\((\d+)\): (?:catastrophic )?error", log, re.MULTILINE)
        return int(found[2]) if found and found[1] == self.file_name else 0


class NvrtcCompiler(DeviceCompiler):
    """The device compiler ``nvrtc``.

    Notes
    -----
    The same request and headers give the same bytes, in whatever folder the process runs. ``device-debug``
    is the exception: NVRTC writes the working directory into the debugging information.
    """

    def compile(self, request: CompileRequest) -> DeviceImage:
        """Return the cubin of one CUDA C++ source.

        Raises
        ------
        CompileError
            If NVRTC refuses the source, or a kernel is not in it; a note says how to get a missing header.
        ProgramError
            If an option, a macro, a name or the target is not one that NVRTC takes.
        UnsupportedFeatureError
            If there are several sources to link.
        BackendUnavailableError
            If NVRTC is not there.
        """
        code = _only_source(request.code)
        arch = _checked_arch(request.target)
        merged = merge_options(code.options, request.options)
        directories = _directories(code, merged.pop("include-path", ()))
        options = (
            f"--gpu-architecture={arch}",
            f"--frandom-seed={_seed(code)}",
            *render_options(merged),
            *_macros(code),
            *(f"--include-path={directory}" for directory in directories),
        )
        names = tuple(_kernel_name(kernel.name, index) for index, kernel in enumerate(request.kernels))
        job = _Job(code, arch, code.name.rpartition("/")[2] or "kernel.cu", options, names)
        data, symbols, log = job.run()
        return DeviceImage(
            kind="cubin",
            data=data,
            target=request.target,
            kernels=_kernels(data, names, symbols),
            headers_read=reachable_headers(code, directories),
            log=log,
            toolchain={"nvrtc": nvrtc.build_id()},
        )

    def surroundings(self, request: CompileRequest) -> dict[str, str]:
        """Return what the image depends on beyond the request and the fingerprint, without compiling.

        Parameters
        ----------
        request
            What would be compiled.

        Returns
        -------
        dict[str, str]
            The SHA-256 of each header file that could be included, by path; for ``device-debug`` the working
            directory too.

        Raises
        ------
        ProgramError
            If an option is not one that may be given.
        UnsupportedFeatureError
            If there are several sources to link.
        """
        code = _only_source(request.code)
        merged = merge_options(code.options, request.options)
        held = {name for name, _ in code.includes}
        reached = reachable_headers(code, _directories(code, merged.get("include-path", ())))
        found = {
            path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in reached if path not in held
        }
        return {**found, "working directory": str(Path.cwd())} if "device-debug" in merged else found

    def fingerprint(self) -> str:
        """Return the exact build of NVRTC and the version of this module."""
        return f"nvrtc {nvrtc.build_id()}, request form {_VERSION}"

    def default_target(self) -> Target | None:
        """Return the target of device 0; None without a driver or a device."""
        arch = device_arch(0)
        return None if arch is None else Target("cuda", arch)


def _directories(code: DeviceCode, given: Sequence[str]) -> tuple[str, ...]:
    """Return where headers are looked for: CUDA's own come last, and only if a header is not in memory."""
    return (*given, *toolkit_directories()) if needs_toolkit(code) else tuple(given)


def _seed(code: DeviceCode) -> str:
    """Return what unnamed namespaces are named by; left alone, NVRTC takes its process and the time."""
    return f"0x{zlib.crc32(_encoded(code.source, 'code.source')):08x}"


def _kernels(data: bytes, names: Sequence[str], symbols: Sequence[str]) -> tuple[ImageKernel, ...]:
    """Return each kernel with the parameter table that the cubin has of it."""
    info = read_cubin(data)
    kernels = []
    for index, (name, symbol) in enumerate(zip(names, symbols, strict=True)):
        kernel = info.kernel(symbol)
        if kernel is None:
            raise ProgramError(
                f"{shorten(name)} is in the image and is no kernel", field=f"kernels[{index}].name"
            )
        kernels.append(ImageKernel(name, symbol, kernel.parameters))
    return tuple(kernels)


def _only_source(code: Sequence[DeviceCode]) -> DeviceCode:
    if len(code) != 1:
        raise UnsupportedFeatureError(
            nvrtc.NAME,
            [f"{len(code)} parts of device code"],
            "put them into one source, or include them as headers",
        )
    if code[0].language != "cuda":
        raise ProgramError(f"got {shorten(code[0].language)}, NVRTC compiles 'cuda'", field="code.language")
    return code[0]


def _checked_arch(target: Target) -> str:
    """Return the real architecture of a target.

    Raises
    ------
    ProgramError
        If it is none, or not one that this NVRTC compiles for.
    """
    found = _ARCH.fullmatch(target.arch)
    if target.kind != "cuda" or found is None:
        raise ProgramError(
            f"got {str(target)!r}, expected a CUDA architecture such as 'sm_90a'", field="target"
        )
    number = int(found["number"])
    if found["kind"] == "compute":
        real = target.arch.replace("compute", "sm")
        raise ProgramError(
            f"got {target.arch!r}, a virtual architecture, of which there is no cubin; use {real!r}",
            field="target",
        )
    supported = nvrtc.supported_archs()
    if number not in supported or number < _FIRST_WITH[found["variant"]]:
        known = ", ".join(f"sm_{one}" for one in supported)
        raise ProgramError(
            f"got {target.arch!r}, this NVRTC compiles for {known}, with 'a' from sm_90 and 'f' from sm_100",
            field="target",
        )
    return target.arch


def _macros(code: DeviceCode) -> list[str]:
    macros = []
    for index, (name, value) in enumerate(code.defines):
        field = f"code.defines[{index}]"
        if not _MACRO.fullmatch(name):
            raise ProgramError(f"got macro {shorten(name)}, expected a C identifier", field=field)
        if value is not None and ("\n" in value or "\r" in value):
            raise ProgramError(f"got {shorten(value)} for macro {name}, expected one line", field=field)
        macros.append(f"--define-macro={name}" if value is None else f"--define-macro={name}={value}")
    return macros


def _kernel_name(name: str, index: int) -> str:
    # NVRTC puts the name into a line of source of its own making: a second line would be read as code.
    if not name.strip() or any(character in name for character in "\n\r"):
        raise ProgramError(
            f"got {shorten(name)}, expected a C++ name expression on one line", field=f"kernels[{index}].name"
        )
    return name


def _encoded(text: str | bytes, field: str) -> bytes:
    """Return text as NVRTC takes it: UTF-8 that ends at the first NUL."""
    try:
        data = text if isinstance(text, bytes) else text.encode("utf-8")
        data.decode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise ProgramError(f"is not Unicode text: {error.reason} at {error.start}", field=field) from error
    if b"\0" in data:
        raise ProgramError("has a NUL character, where NVRTC would stop reading", field=field)
    return data
