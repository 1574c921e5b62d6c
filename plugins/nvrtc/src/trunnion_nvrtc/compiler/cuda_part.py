"""One part of the device code in CUDA C++: one call of NVRTC."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import CompileError, ProgramError, shorten
from trunnion.toolchain.macros import macro_definitions
from trunnion_nvrtc.compiler.headers import (
    ReachableHeaders,
    find_header,
    host_headers,
    needs_toolkit,
    reachable_headers,
    toolkit_directories,
)
from trunnion_nvrtc.compiler.missing_header import cuda_hints, missing_header_hint
from trunnion_nvrtc.compiler.missing_kernel import MissingKernelError, kernel_names, missing_kernels
from trunnion_nvrtc.compiler.missing_name import name_hints
from trunnion_nvrtc.compiler.missing_variable import MissingVariableError, variable_names
from trunnion_nvrtc.compiler.nvrtc import title
from trunnion_nvrtc.compiler.options import render_options
from trunnion_nvrtc.compiler.other_part import other_part_hints, part_texts
from trunnion_nvrtc.compiler.pch import pch_options
from trunnion_nvrtc.compiler.program import Program, build_id, build_of
from trunnion_nvrtc.compiler.request import Mode
from trunnion_nvrtc.compiler.source import encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trunnion_nvrtc.compiler.request import Job, Part

__all__ = ["CompiledPart", "compile_part", "part_headers"]

# NVRTC looks for "x.h" beside the source file. An absolute path that does not exist keeps it out of the
# working directory, and keeps the working directory out of line tables.
_FOLDER = "/trunnion/"

_KIND = {Mode.RELOCATABLE: "cubin", Mode.LTO: "ltoir"}
_MODE_OPTIONS = {
    Mode.WHOLE: (),
    Mode.RELOCATABLE: ("--relocatable-device-code=true",),
    Mode.LTO: ("--dlink-time-opt",),
}


@dataclass(frozen=True, slots=True)
class CompiledPart:
    """What NVRTC made of one part."""

    kind: str
    """``"cubin"``, ``"ptx"`` or ``"ltoir"``."""

    data: bytes
    """Its bytes."""

    symbols: tuple[str, ...]
    """The symbol of each kernel that was asked for in this part."""

    log: str
    """What NVRTC printed."""

    headers: tuple[str, ...]
    """Every header that could be included."""

    build: str = ""
    """The build of NVRTC."""

    variables: tuple[str, ...] = ()
    """The symbol of each variable that was asked for in this part."""


def compile_part(part: Part, job: Job) -> CompiledPart:
    """Compile one part.

    Parameters
    ----------
    part
        A part in CUDA C++.
    job
        What it is compiled for.

    Raises
    ------
    CompileError
        If NVRTC refuses the source.
    ProgramError
        If NVRTC refuses an option, or a text would not arrive whole.
    BackendUnavailableError
        If NVRTC is not there.
    """
    return _Compilation(part, job).run()


def part_headers(part: Part) -> tuple[tuple[str, ...], ReachableHeaders]:
    """Return where a part's headers are looked for, and every header that it could include.

    Ours and CUDA's own directories come last, and only if a header is not in memory.

    Raises
    ------
    ProgramError
        If what is included first (``--pre-include``) is in none of them.
    """
    first = part.options.get("pre-include", ())
    given = part.options.get("include-path", ())
    toolkit = (host_headers(), *toolkit_directories()) if needs_toolkit(part.code, first) else ()
    _first_headers(part, (*given, *toolkit))
    return (*given, *toolkit), reachable_headers(part.code, given, first, toolkit)


def _first_headers(part: Part, directories: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is included first, as NVRTC finds it wherever it is asked: it looks in the working directory."""
    held = {name for name, _ in part.code.includes}
    found = []
    for name in part.options.get("pre-include", ()):
        path = name if name in held or name.startswith("/") else find_header(name, directories)
        if path is None:
            raise ProgramError(
                f"got --pre-include={shorten(name)}, expected an absolute path, a header in memory, or one in an "
                "include path",
                field=f"{part.field}.options",
            )
        found.append(path)
    return tuple(found)


def _without_folder(log: str) -> str:
    """Return a log without the folder that the program's own texts have for NVRTC, where a path begins with it."""
    return re.sub(rf"(?<![^\s\"'(<]){re.escape(_FOLDER)}", "", log)


def _missing_header(log: str) -> str:
    """Return the header that a log says cannot be opened; empty if it says nothing of that."""
    found = re.search(r'(?:could not|cannot) open source file "([^"\n]+)"', log)
    return found[1] if found else ""


class _Compilation:
    def __init__(self, part: Part, job: Job) -> None:
        self.part, self.job, self.code = part, job, part.code
        self.kind = _KIND.get(job.mode, job.output)
        self.arch = job.arch.name(virtual=self.kind == "ptx")
        self.names = tuple(name for _, name in part.kernels)
        # A variable is asked for by its address (NVRTC's manual, "Accessing Lowered Names").
        self.variables = tuple(f"&{name}" for _, name in part.variables)

    def run(self) -> CompiledPart:
        directories, headers = part_headers(self.part)
        options = self._options(directories, headers)
        source, includes = self._texts()
        with Program(source, _FOLDER + self.part.file_name, includes) as program:
            for name in (*self.names, *self.variables):
                program.add_name_expression(name)
            result = program.run(options)
            log = _without_folder(result.log)
            if result.code_name == "NVRTC_ERROR_INVALID_OPTION":
                field = f"{self.part.field}.options"
                raise ProgramError(f"{title()} refuses an option: {log.strip()}", field=field)
            if not result.succeeded:
                raise self._refusal(log, options)
            data = program.get_output(self.kind).data
            symbols, variables = (
                tuple(self._symbol(program, name, log, options) for name in names)
                for names in (self.names, self.variables)
            )
            # The PTX that comes with a cubin names the build; asking for it alone takes another compilation.
            build = build_id() if self.kind == "ltoir" else build_of(program.get_ptx())
        return CompiledPart(self.kind, data, symbols, log, headers.names, build, variables)

    def _options(self, directories: tuple[str, ...], headers: ReachableHeaders) -> tuple[str, ...]:
        elsewhere = {"include-path", "pch", "pre-include"}
        chosen = {name: values for name, values in self.part.options.items() if name not in elsewhere}
        options = (
            f"--gpu-architecture={self.arch}",
            f"--frandom-seed={self._seed()}",
            *_MODE_OPTIONS[self.job.mode],
            *render_options(chosen),
            *(f"--pre-include={name}" for name in _first_headers(self.part, directories)),
            *(f"--define-macro={one}" for one in macro_definitions(self.code, self.part.field)),
            *(f"--include-path={directory}" for directory in directories),
        )
        held = bool(self.code.includes)
        if held and not headers.on_disk and "no-source-include" not in self.part.options:
            # NVRTC looks for what a header in memory includes in the working directory.
            options += ("--no-source-include",)
        for option in options:
            encoded(option, self.part.field)
        if "pch" in self.part.options and headers.complete:
            options += pch_options(self.code, headers, options)
        return options

    def _texts(self) -> tuple[bytes, list[tuple[str, str]]]:
        field = self.part.field
        names: set[str] = set()
        for index, (name, text) in enumerate(self.code.includes):
            if name in names:
                raise ProgramError(
                    f"got the header {shorten(name)} again; give it once", field=f"{field}.includes[{index}]"
                )
            names.add(name)
            encoded(name, f"{field}.includes[{index}]")
            encoded(text, f"{field}.includes[{index}]")
        for place, name in self.part.kernels:
            encoded(name, f"kernels[{place}].name")
        for place, name in self.part.variables:
            encoded(name, f"variables[{place}].name")
        encoded(self.part.file_name, f"{field}.name")
        return encoded(self.code.source, f"{field}.source"), list(self.code.includes)

    def _seed(self) -> str:
        """Return what unnamed namespaces are named by; left alone, NVRTC takes its process and the time."""
        source = encoded(self.code.source, f"{self.part.field}.source")
        # Equal sources in two parts must not share names.
        return f"0x{zlib.crc32(source, self.part.index):08x}"

    def _symbol(self, program: Program, name: str, log: str, options: tuple[str, ...]) -> str:
        try:
            return program.get_lowered_name(name)
        except ProgramError as error:
            raise self._refusal(f"{log}\n{error.message}", options) from error

    def _refusal(self, log: str, options: tuple[str, ...]) -> CompileError:
        text = self.code.source if isinstance(self.code.source, str) else ""
        error = CompileError(title(), log, text, options, str(self.job.arch), self._line(log))
        lost = missing_kernels(log, self.names)
        if lost:
            known = [name for one in part_texts(self.part) for name in kernel_names(one)]
            error = self._hinted(MissingKernelError(error, lost, known), lost, "launch", kernel_names)
        elif addresses := missing_kernels(log, self.variables):
            lost = [(name.removeprefix("&"), why) for name, why in addresses]
            error = self._hinted(MissingVariableError(error, lost), lost, "variable", variable_names)
        elif "__nv_name_map" in log:
            names = ", ".join(shorten(name) for name in self.names)
            error.add_note(
                f"hint: the program launches {names}; lines of __nv_name_map look these names up in the source, "
                "and there one is missing, ambiguous or no kernel"
            )
        for name in self._missing_headers(log, options):
            error.add_note(missing_header_hint(name, toolkit_directories()))
        for note in (*cuda_hints(log, self.part.options.get("include-path", ())), *name_hints(log)):
            error.add_note(note)
        return error

    def _hinted(
        self,
        error: CompileError,
        lost: list[tuple[str, str]],
        kind: str,
        seen: Callable[[str], Iterable[str]],
    ) -> CompileError:
        """Return an error with a note of each name that may lie in another part."""
        for note in other_part_hints(
            (name for name, _ in lost), self.part, self.job.parts, kind=kind, seen=seen
        ):
            error.add_note(note)
        return error

    def _missing_headers(self, log: str, options: tuple[str, ...]) -> list[str]:
        """Return each header that cannot be opened.

        NVRTC stops at the first, so it is asked again, with empty texts for those that are known to be missing.
        """
        found: list[str] = []
        missing = _missing_header(log)
        source, includes = self._texts()
        # What is precompiled with empty texts must not be taken for the headers.
        asked = [option for option in options if not option.startswith("--pch")]
        while missing and missing not in found:
            found.append(missing)
            held = [*includes, *((name, "") for name in found)]
            with Program(source, _FOLDER + self.part.file_name, held) as program:
                missing = _missing_header(program.run(asked).log)
        return found

    def _line(self, log: str) -> int:
        """Return the line that the first error names; 0 if that is in another file."""
        found = re.search(r"^(.*)\((\d+)\): (?:catastrophic )?error", log, re.MULTILINE)
        return int(found[2]) if found and found[1] == self.part.file_name else 0
