"""`Program`: one ``nvrtcProgram`` with typed results, for whoever wants NVRTC without the rest."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trunnion.errors import CompileError, DriverError, LifecycleError, ProgramError, shorten
from trunnion.model.fields import members
from trunnion.storage.remembered import Answer, remembered
from trunnion.turns import Turns
from trunnion_nvrtc.availability import is_loaded
from trunnion_nvrtc.compiler.nvrtc import bindings, check, failure, supported_archs, title, version
from trunnion_nvrtc.compiler.outputs import CompiledOutput, output_named
from trunnion_nvrtc.compiler.results import NVRTC_RESULTS, ResultCode, result_code
from trunnion_nvrtc.compiler.source import encoded, kernel_name
from trunnion_nvrtc.installation import nvrtc_in_wheels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Self

    from trunnion_nvrtc.compiler.outputs import Output

__all__ = ["CompileResult", "Program", "build_id", "build_of"]

_TOOLS = re.compile(r"release [0-9.]+, V(?P<version>[0-9.]+)")
_BUILD = re.compile(r"Compiler Build ID: (?P<build>\S+)")
_LIBRARY = re.compile(r"(?m)^\S+ \S+ \S+ \S+ (\d+) +(/.*/libnvrtc\.so[.0-9]*)$")
"""A line of ``/proc/self/maps``: the file's inode, and its path."""
_ARCHITECTURE = re.compile("--?(?:gpu-architecture|arch)=(.+)")
_VIRTUAL = re.compile(r"^-{1,2}(?:arch|gpu-architecture)=(compute_\w+)$")
_SOURCE_FAULTS = frozenset({5, 6, 10})
"""Statuses of ``nvrtcCompileProgram`` that the source, an option or a name is to blame for."""
_INVALID_OPTION = 5
_HEAD_BYTES = 4096
_PAIR = 2


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
    """One ``nvrtcProgram``. Close it, or use it in a ``with`` statement: nothing else destroys it at once.

    One thread at a time is inside of it; several programs compile at once.

    Parameters
    ----------
    source
        CUDA C++.
    name
        The file name that messages show.
    headers
        Name and text of each header in memory.

    Raises
    ------
    BackendUnavailableError
        If NVRTC is not there.
    ProgramError
        If a text is none, or would not arrive whole.
    DriverError
        If NVRTC refuses to make a program (``nvrtcCreateProgram``).
    """

    # The class has one too, for `__del__`: arguments that do not fit are refused before `__init__` begins.
    _handle: Any = None

    def __init__(
        self, source: str | bytes, name: str = "kernel.cu", headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._using = Turns("this NVRTC program is being used")
        self._process = os.getpid()
        self._source = source
        self._options: tuple[str, ...] = ()
        self._log = ""
        data, path = encoded(source, "source"), encoded(name, "name")
        names, texts = [], []
        for index, pair in enumerate(members(headers, "headers", "a list")):
            two = members(pair, f"headers[{index}]", words := "a pair of name and text")
            if len(two) != _PAIR:
                raise ProgramError(f"got {len(two)} members, expected {words}", field=f"headers[{index}]")
            header, text = two
            names.append(encoded(header, f"headers[{index}]"))
            texts.append(encoded(text, f"headers[{index}]"))
        made = bindings().nvrtcCreateProgram(data, path, len(names), texts, names)
        self._handle = check("nvrtcCreateProgram", made)

    def add_name_expression(self, expression: str) -> None:
        """Ask for the symbol of a name, before compiling (``nvrtcAddNameExpression``).

        Raises
        ------
        ProgramError
            If the name is not one line of text.
        DriverError
            If the program was compiled already.
        LifecycleError
            If the program was closed.
        """
        data = encoded(kernel_name(expression, "expression"), "expression")
        self._call("nvrtcAddNameExpression", data)

    def run(self, options: Iterable[str] = ()) -> CompileResult:
        """Compile, and return how it ended (``nvrtcCompileProgram``).

        Parameters
        ----------
        options
            As NVRTC documents them, one word each; they are handed on as they are.

        Raises
        ------
        ProgramError
            If the options are no list of texts, or one would not arrive whole.
        DriverError
            If something other than the source, a name or an option is at fault.
        LifecycleError
            If the program was closed.
        """
        given = members(options, "options", "a list")
        words = [encoded(option, f"options[{index}]") for index, option in enumerate(given)]
        self._options = tuple(word.decode() for word in words)
        with self._using.turn():
            (status,) = bindings().nvrtcCompileProgram(self._living(), len(words), words)
            code = int(status)
            if code and code not in _SOURCE_FAULTS:
                raise failure("nvrtcCompileProgram", code)
            self._log = self._fetch("ProgramLog").decode("utf-8", "replace").rstrip("\0")
        return CompileResult(code, result_code(NVRTC_RESULTS, code).name, self._log)

    def compile(self, options: Iterable[str] = ()) -> CompileResult:
        """Compile, and return what NVRTC printed (``nvrtcCompileProgram``).

        Parameters
        ----------
        options
            As for `run`.

        Raises
        ------
        CompileError
            If NVRTC refuses the source.
        ProgramError
            If NVRTC refuses an option.
        DriverError, LifecycleError
            As `run` does.
        """
        result = self.run(options)
        if result.succeeded:
            return result
        compiler = title()
        if result.code == _INVALID_OPTION:
            raise ProgramError(f"{compiler} refuses an option: {result.log.strip()}", field="options")
        text = self._source if isinstance(self._source, str) else ""
        raise CompileError(compiler, result.log, text, self._options, _architecture(self._options))

    def get_log(self) -> str:
        """Return what the last compilation printed (``nvrtcGetProgramLog``); empty before the first."""
        return self._log

    def get_lowered_name(self, expression: str) -> str:
        """Return the symbol of a name that was asked for (``nvrtcGetLoweredName``).

        Raises
        ------
        ProgramError
            If the source makes no symbol for it.
        DriverError
            If the name was not asked for, or nothing was compiled.
        LifecycleError
            If the program was closed.
        """
        found = self._call("nvrtcGetLoweredName", encoded(expression, "expression"))
        if found is None:
            raise ProgramError(f"no symbol was made for the name {shorten(expression)}", field="expression")
        return str(found.decode("utf-8"))

    def get_ptx(self) -> CompiledOutput:
        """Return the PTX (``nvrtcGetPTXSize``, ``nvrtcGetPTX``); raises what `get_output` raises."""
        return self.get_output("ptx")

    def get_cubin(self) -> CompiledOutput:
        """Return the cubin (``nvrtcGetCUBINSize``, ``nvrtcGetCUBIN``); raises what `get_output` raises."""
        return self.get_output("cubin")

    def get_ltoir(self) -> CompiledOutput:
        """Return the LTO-IR (``nvrtcGetLTOIRSize``, ``nvrtcGetLTOIR``); raises what `get_output` raises."""
        return self.get_output("ltoir")

    def get_optixir(self) -> CompiledOutput:
        """Return the OptiX-IR (``nvrtcGetOptiXIRSize``, ``nvrtcGetOptiXIR``); raises what `get_output` raises."""
        return self.get_output("optixir")

    def get_output(self, kind: str) -> CompiledOutput:
        """Return one output of the compilation.

        Parameters
        ----------
        kind
            The `Output.kind` of a row of `OUTPUTS`.

        Raises
        ------
        ProgramError
            If the options that the program was compiled with make no such output; the message says which do.
        DriverError
            If NVRTC refuses.
        LifecycleError
            If the program was closed.
        LookupError
            If there is no such kind.
        """
        row = output_named(kind)
        with self._using.turn():
            self._living()
            data = self._fetch(row.call)
        if len(data) <= row.empty_bytes:
            raise ProgramError(self._absent(row), field="options")
        return CompiledOutput(kind, data)

    def get_pch_status(self) -> ResultCode:
        """Return what became of the precompiled header (``nvrtcGetPCHCreateStatus``).

        Raises
        ------
        LifecycleError
            If the program was closed.
        """
        with self._using.turn():
            (status,) = bindings().nvrtcGetPCHCreateStatus(self._living())
        return result_code(NVRTC_RESULTS, int(status))

    def close(self) -> None:
        """Destroy the program (``nvrtcDestroyProgram``); again does nothing.

        Raises
        ------
        DriverError
            If NVRTC refuses.
        """
        with self._using.turn():
            handle, self._handle = self._handle, None
            if handle is not None:
                check("nvrtcDestroyProgram", bindings().nvrtcDestroyProgram(handle))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # NVRTC has locks of its own, which a thread may have held that a fork left behind.
        if self._handle is not None and self._process == os.getpid():
            self.close()

    def _call(self, name: str, *arguments: Any) -> Any:
        with self._using.turn():
            handle = self._living()
            return check(name, getattr(bindings(), name)(handle, *arguments))

    def _living(self) -> Any:
        if self._handle is None:
            raise LifecycleError("the program was closed; make another")
        return self._handle

    def _fetch(self, what: str) -> bytes:
        nvrtc = bindings()
        size = check(f"nvrtcGet{what}Size", getattr(nvrtc, f"nvrtcGet{what}Size")(self._handle))
        buffer = bytes(size)
        if size:
            # The bindings write into the bytes object: nobody else has seen it yet.
            check(f"nvrtcGet{what}", getattr(nvrtc, f"nvrtcGet{what}")(self._handle, buffer))
        return buffer

    def _absent(self, row: Output) -> str:
        """Why there is no such output, though NVRTC calls its size, 0, a success."""
        others = sorted({"-dlto", "--dlink-time-opt", "-optix-ir", "--optix-ir"} & set(self._options))
        virtual = [found[1] for found in map(_VIRTUAL.match, self._options) if found]
        if row.option:
            return f"there is no {row.kind}: compile with {row.option}, without the other's option"
        if others:
            return f"there is no {row.kind}: with {others[0]} there is only the output that it names"
        if virtual and not row.virtual:
            real = virtual[-1].replace("compute", "sm")
            return f"there is no {row.kind} of {virtual[-1]}, a virtual architecture; compile for {real}"
        return f"there is no {row.kind}: compile first, for a real architecture such as --gpu-architecture=sm_90a"


def build_id() -> str:
    """Return what tells one build of NVRTC from another, for example ``"13.0.88 CL-36424714"``.

    ``nvrtcVersion`` says too little: builds of one version differ. The text that NVRTC writes at the head
    of its PTX names the build, so an empty program is compiled, once for each file that it is loaded from. Where nobody
    has loaded it yet, what was said before holds as long as the same lies in all wheels: to find a program, nothing is
    loaded.

    Raises
    ------
    BackendUnavailableError
        If NVRTC is not there.
    DriverError
        If it cannot compile even an empty program.
    """
    places = nvrtc_in_wheels()
    if any(is_loaded(name) for name in {os.path.basename(place) for place in places}):  # noqa: PTH119 - as text
        return _loaded_build()

    def ask() -> Answer:
        build, library = _loaded_build(), _loaded_library()
        files = frozenset(filter(None, [library]))
        folders = frozenset(os.path.dirname(place) for place in places)  # noqa: PTH120 - as text
        # A wheel's comes first for cuda.pathfinder. The others the loader finds, and nobody knows what that depends on.
        return Answer(
            {"build": build}, files, folders, library in {os.path.realpath(place) for place in places}
        )

    return _remembered(f"the build of NVRTC among {places}", ask)


@functools.cache
def _loaded_build() -> str:
    """Return the build of the NVRTC that this process has loaded, or loads now."""
    bindings()
    library = _loaded_library()
    if library is None:
        return _asked_build()
    return _remembered(
        f"the build of NVRTC in {library}", lambda: Answer({"build": _asked_build()}, frozenset({library}))
    )


def _architecture(options: Iterable[str]) -> str:
    """Return the architecture that options name; the last one counts, and without one it is NVRTC's own choice."""
    named = [found[1] for found in map(_ARCHITECTURE.fullmatch, options) if found]
    return named[-1] if named else ""


def _remembered(question: str, ask: Callable[[], Answer]) -> str:
    return remembered(question, ask, noted=False)["build"]


def _asked_build() -> str:
    with Program("", "empty.cu") as program:
        result = program.run([f"--gpu-architecture=compute_{supported_archs()[0]}", "--minimal"])
        if not result.succeeded:
            raise DriverError("nvrtcCompileProgram", result.code, result.code_name, result.log)
        return build_of(program.get_ptx())


def _loaded_library() -> str | None:
    """Return the file that NVRTC was loaded from; None if that is not known, or another one is there by now."""
    try:
        text = Path("/proc/self/maps").read_text("utf-8", "surrogateescape")
        ((inode, path),) = set(_LIBRARY.findall(text))
        return path if Path(path).stat().st_ino == int(inode) else None
    except (OSError, ValueError):  # several, or one that was replaced: "(deleted)" stands behind its path
        return None


def build_of(ptx: CompiledOutput) -> str:
    """Return the build of NVRTC that the head of its PTX names; see `build_id`."""
    head = ptx.data[:_HEAD_BYTES].decode("utf-8", "replace")
    tools, build = _TOOLS.search(head), _BUILD.search(head)
    exact = tools["version"] if tools else ".".join(map(str, version()))
    return f"{exact} {build['build']}" if build else exact
