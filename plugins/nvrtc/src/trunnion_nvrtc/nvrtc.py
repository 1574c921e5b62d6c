"""NVRTC itself: the only module that touches ``cuda.bindings.nvrtc``.

Every status ends here as an exception, and every program is destroyed. Nothing is imported or loaded until a
function is called, so that a machine without NVRTC can import everything else.
"""

from __future__ import annotations

import functools
import importlib
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.errors import BackendUnavailableError, DriverError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["DISTRIBUTION", "NAME", "Program", "build_id", "open_program", "supported_archs", "version"]

NAME = "nvrtc"
"""The plugin's name."""

DISTRIBUTION = "trunnion-nvrtc"
"""The distribution that this package comes in."""

_TOOLS = re.compile(r"release [0-9.]+, V(?P<version>[0-9.]+)")
_BUILD = re.compile(r"Compiler Build ID: (?P<build>\S+)")


@functools.cache
def _bindings() -> Any:
    """Return ``cuda.bindings.nvrtc`` once it is known to work.

    Raises
    ------
    BackendUnavailableError
        If the bindings are not installed, find no library, or belong to another major version of CUDA.
    """
    try:
        bindings_version = importlib.import_module("cuda.bindings").__version__
        nvrtc: Any = importlib.import_module("cuda.bindings.nvrtc")
    except ImportError as error:
        reason = f"cuda.bindings cannot be imported ({error}); run: pip install 'cuda-bindings>=13,<14'"
        raise BackendUnavailableError(NAME, DISTRIBUTION, reason) from error
    ours = bindings_version.partition(".")[0]
    try:
        status, major, minor = nvrtc.nvrtcVersion()
    except RuntimeError as error:
        reason = f"libnvrtc.so.{ours} is not found; run: pip install 'nvidia-cuda-nvrtc=={ours}.*'"
        raise BackendUnavailableError(NAME, DISTRIBUTION, reason, str(error)) from error
    if int(status) != 0 or str(major) != ours:
        reason = (
            f"cuda-bindings {bindings_version} found NVRTC {major}.{minor}, expected {ours}.x; "
            f"run: pip install 'nvidia-cuda-nvrtc=={ours}.*'"
        )
        raise BackendUnavailableError(NAME, DISTRIBUTION, reason)
    return nvrtc


def _check(call: str, result: Sequence[Any]) -> Any:
    """Return what a call returned beside its status.

    Raises
    ------
    DriverError
        If the status is not ``NVRTC_SUCCESS``.
    """
    status, *values = result
    if int(status) != 0:
        raise _failure(call, status)
    return values[0] if values else None


def _failure(call: str, status: Any) -> DriverError:
    _, text = _bindings().nvrtcGetErrorString(status)
    explanation = text.decode("utf-8", "replace") if text else ""
    if status.name == "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE":
        explanation = "libnvrtc-builtins, of the same version as libnvrtc, must lie beside it"
    return DriverError(call, int(status), status.name, explanation)


def version() -> tuple[int, int]:
    """Return NVRTC's version as major and minor number (``nvrtcVersion``).

    Raises
    ------
    BackendUnavailableError
        If NVRTC is not there.
    """
    _, major, minor = _bindings().nvrtcVersion()
    return int(major), int(minor)


def supported_archs() -> tuple[int, ...]:
    """Return the architectures that NVRTC compiles for, as numbers such as 90 (``nvrtcGetSupportedArchs``).

    Raises
    ------
    BackendUnavailableError
        If NVRTC is not there.
    """
    return tuple(sorted(_check("nvrtcGetSupportedArchs", _bindings().nvrtcGetSupportedArchs())))


@functools.cache
def build_id() -> str:
    """Return what tells one build of NVRTC from another, for example ``"13.0.88 CL-36424714"``.

    ``nvrtcVersion`` says too little: builds of one version differ. The text that NVRTC writes at the head
    of its PTX names the build, so an empty program is compiled, once in a process.

    Raises
    ------
    BackendUnavailableError
        If NVRTC is not there.
    DriverError
        If it cannot compile even an empty program.
    """
    with open_program(b"", b"empty.cu", ()) as program:
        result = program.compile([f"--gpu-architecture=compute_{supported_archs()[0]}".encode()])
        if not result.succeeded:
            raise DriverError("nvrtcCompileProgram", result.code, result.code_name, result.log)
        text = program.ptx().decode("utf-8", "replace")
    tools, build = _TOOLS.search(text), _BUILD.search(text)
    exact = tools["version"] if tools else ".".join(map(str, version()))
    return f"{exact} {build['build']}" if build else exact


@dataclass(frozen=True, slots=True)
class CompileResult:
    """How a compilation ended."""

    code: int
    """``nvrtcResult``; 0 is success."""

    code_name: str
    """Its name, for example ``"NVRTC_ERROR_COMPILATION"``."""

    log: str
    """What NVRTC printed, on success too."""

    @property
    def succeeded(self) -> bool:
        """Whether there is something to fetch."""
        return self.code == 0


class Program:
    """An ``nvrtcProgram`` that is alive; made by `open_program`."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def add_name(self, expression: bytes) -> None:
        """Ask for the lowered name of an expression, before compiling (``nvrtcAddNameExpression``)."""
        _check("nvrtcAddNameExpression", _bindings().nvrtcAddNameExpression(self._handle, expression))

    def compile(self, options: Sequence[bytes]) -> CompileResult:
        """Compile, and return how it ended (``nvrtcCompileProgram``).

        Raises
        ------
        DriverError
            If something other than the source or an option is at fault.
        """
        nvrtc = _bindings()
        (status,) = nvrtc.nvrtcCompileProgram(self._handle, len(options), list(options))
        users_fault = {
            nvrtc.nvrtcResult.NVRTC_SUCCESS,
            nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION,
            nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION,
            nvrtc.nvrtcResult.NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID,
        }
        if status not in users_fault:
            raise _failure("nvrtcCompileProgram", status)
        return CompileResult(int(status), status.name, self._log())

    def lowered_name(self, expression: bytes) -> str | None:
        """Return the symbol of an expression (``nvrtcGetLoweredName``); None if NVRTC knows none."""
        found = _check("nvrtcGetLoweredName", _bindings().nvrtcGetLoweredName(self._handle, expression))
        return None if found is None else found.decode("utf-8")

    def cubin(self) -> bytes:
        """Return the cubin (``nvrtcGetCUBIN``); empty if the architecture is a virtual one."""
        return self._fetch("CUBIN")

    def ptx(self) -> bytes:
        """Return the PTX (``nvrtcGetPTX``)."""
        return self._fetch("PTX")

    def _log(self) -> str:
        return self._fetch("ProgramLog").decode("utf-8", "replace").rstrip("\0")

    def _fetch(self, what: str) -> bytes:
        nvrtc = _bindings()
        size = _check(f"nvrtcGet{what}Size", getattr(nvrtc, f"nvrtcGet{what}Size")(self._handle))
        buffer = bytes(size)
        if size:
            # The bindings write into the bytes object: nobody else has seen it yet.
            _check(f"nvrtcGet{what}", getattr(nvrtc, f"nvrtcGet{what}")(self._handle, buffer))
        return buffer


@contextmanager
def open_program(source: bytes, name: bytes, headers: Sequence[tuple[bytes, bytes]]) -> Iterator[Program]:
    """Create a program (``nvrtcCreateProgram``) and destroy it at the end, whatever happens.

    Parameters
    ----------
    source
        CUDA C++ in UTF-8, without a NUL.
    name
        The file name that messages show.
    headers
        Name and text of each header in memory.

    Raises
    ------
    BackendUnavailableError
        If NVRTC is not there.
    DriverError
        If it refuses to make a program.
    """
    nvrtc = _bindings()
    names, texts = [header[0] for header in headers], [header[1] for header in headers]
    made = nvrtc.nvrtcCreateProgram(source, name, len(headers), texts, names)
    handle = _check("nvrtcCreateProgram", made)
    try:
        yield Program(handle)
    finally:
        _check("nvrtcDestroyProgram", nvrtc.nvrtcDestroyProgram(handle))
