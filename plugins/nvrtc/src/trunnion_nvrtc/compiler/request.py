"""From a `CompileRequest` to a checked job: which parts there are, and how they become one image."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, UnsupportedFeatureError, shorten
from trunnion.image.cubin import read_cubin
from trunnion_nvrtc.compiler.fatbin import unpacked
from trunnion_nvrtc.compiler.nvrtc import NAME
from trunnion_nvrtc.compiler.options import (
    assembler_options,
    early_options,
    linker_options,
    merge_options,
)
from trunnion_nvrtc.compiler.source import kernel_name
from trunnion_nvrtc.compiler.targets import Architecture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trunnion.contract.compiler import CompileRequest
    from trunnion.model.code import DeviceCode

__all__ = ["LANGUAGES", "Job", "Mode", "Part", "read_request"]

LANGUAGES = ("cuda", "ptx", "cubin", "fatbin", "ltoir")
"""What device code may be written in: CUDA C++, PTX, a finished cubin, a fatbin that holds one of these, or LTO-IR."""

_OPTIMISED_LATE = frozenset({"cuda", "ltoir"})


class Mode(enum.Enum):
    """How parts become an image."""

    WHOLE = "one part, compiled as a whole"
    RELOCATABLE = "each part to machine code, then linked"
    LTO = "each part to LTO-IR, then optimised together"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the device code."""

    index: int
    """Its place in the request."""

    code: DeviceCode
    """What was written; of a fatbin, what it holds for the architecture."""

    field: str
    """What messages call it: ``"code"`` if it is the only one, else ``"code[1]"``."""

    file_name: str
    """What messages call its file; no other part has this name."""

    options: Mapping[str, tuple[str, ...]]
    """Its options with the caller's, as `merge_options` returns them."""

    kernels: tuple[tuple[int, str], ...]
    """The place in the request and the name of each kernel that is in this part."""

    variables: tuple[tuple[int, str], ...] = ()
    """The place in the request and the name of each variable that the program names of this part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be made."""

    arch: Architecture
    """The architecture."""

    output: str
    """``"cubin"`` or ``"ptx"``."""

    mode: Mode
    """How the parts become an image."""

    parts: tuple[Part, ...]
    """The parts, in the request's order."""

    @property
    def links(self) -> bool:
        """Whether nvJitLink has work to do."""
        only = self.parts[0].code.language
        assembles = only == "ptx" and self.output == "cubin"
        return self.mode is not Mode.WHOLE or assembles

    @property
    def compiles(self) -> bool:
        """Whether NVRTC has work to do."""
        return any(part.code.language == "cuda" for part in self.parts)

    def linker_options(self) -> tuple[str, ...]:
        """Return nvJitLink's options: those of the parts that it compiles, which must agree.

        Raises
        ------
        ProgramError
            If they do not.
        """
        late = [part for part in self.parts if part.code.language == "ptx" or self.mode is Mode.LTO]
        found = [(part, linker_options(part.options)) for part in late]
        for part, options in found[1:]:
            first, said = found[0]
            if options != said:
                raise ProgramError(
                    f"got {' '.join(options) or 'none'}, where {first.field} has {' '.join(said) or 'none'}: parts "
                    "that are compiled when they are linked have the same options (in nvJitLink's words): give all of "
                    f"them the same{self.apart(late)}",
                    field=f"{part.field}.options",
                )
        return found[0][1] if found else ()

    def apart(self, late: Sequence[Part]) -> str:
        """Return how parts that are compiled late would be compiled before; empty if they cannot be."""
        if any(part.code.language != "cuda" for part in late):
            return ""
        stays = any("dlink-time-opt" in part.options for part in late)
        instead = " in place of --dlink-time-opt" if stays else ""
        said = f", or say --relocatable-device-code=true{instead}, which compiles each on its own"
        if self.output != "ptx":
            return said
        real = shorten(self.arch.name(virtual=False))
        return f"{said}, for {real}: of parts PTX is made by --dlink-time-opt alone"


def read_request(request: CompileRequest) -> Job:
    """Return the job of a request.

    Raises
    ------
    ProgramError
        If an option, a name, a language or the target is not one that this compiler takes, or they contradict
        each other.
    CorruptArtifactError
        If a cubin is not whole.
    UnsupportedFeatureError
        If there is no code, or no kind of image that the backend loads can be made.
    BackendUnavailableError
        If a part is a fatbin, and ``cuobjdump`` is not there or does not read it.
    """
    if not request.code:
        raise UnsupportedFeatureError(NAME, ["a program without device code"], "add a DeviceCode")
    arch = Architecture.of(request.target)
    output = _output(request, arch)
    parts = _parts(request, arch)
    mode = _mode(parts)
    job = Job(arch=arch, output=output, mode=mode, parts=parts)
    _check_mode(job)
    return job


def _output(request: CompileRequest, arch: Architecture) -> str:
    accepts = request.accepts or ("cubin", "ptx")
    if "ptx" in accepts and (arch.virtual or "cubin" not in accepts):
        return "ptx"
    if "cubin" not in accepts:
        raise UnsupportedFeatureError(NAME, list(accepts), "it makes cubin and ptx")
    if arch.virtual:
        raise ProgramError(
            f"got {shorten(str(arch))}, a virtual architecture, of which there is no cubin; "
            f"use {shorten(arch.name(virtual=False))}",
            field="target",
        )
    return "cubin"


# Parts --------------------------------------------------------------------------------------------------------------


def _parts(request: CompileRequest, arch: Architecture) -> tuple[Part, ...]:
    alone = len(request.code) == 1
    fields = ["code" if alone else f"code[{index}]" for index in range(len(request.code))]
    codes = [
        unpacked(code, arch, field) if code.language == "fatbin" else code
        for code, field in zip(request.code, fields, strict=True)
    ]
    _check_named(request.options, {code.language for code in codes})
    names = [code.name.rpartition("/")[2] or "kernel.cu" for code in codes]
    twice = Counter(names)
    parts = []
    for index, (code, field) in enumerate(zip(codes, fields, strict=True)):
        parts.append(
            Part(
                index=index,
                code=code,
                field=field,
                file_name=names[index] if twice[names[index]] == 1 else f"{index}/{names[index]}",
                options=_options(code, field, request.options),
                kernels=_kernels(request, index),
                variables=_variables(request, index),
            )
        )
    known = sum(len(part.kernels) for part in parts)
    if known != len(request.kernels):
        raise ProgramError(f"a kernel is in none of the {len(parts)} parts", field="kernels")
    if sum(len(part.variables) for part in parts) != len(request.variables):
        raise ProgramError(f"a variable is in none of the {len(parts)} parts", field="variables")
    return tuple(parts)


def _kernels(request: CompileRequest, part: int) -> tuple[tuple[int, str], ...]:
    return tuple(
        (place, kernel_name(kernel.name, f"kernels[{place}].name"))
        for place, kernel in enumerate(request.kernels)
        if kernel.part == part
    )


def _variables(request: CompileRequest, part: int) -> tuple[tuple[int, str], ...]:
    return tuple(
        (place, kernel_name(variable.name, f"variables[{place}].name"))
        for place, variable in enumerate(request.variables)
        if variable.part == part
    )


def _concerns(language: str, name: str) -> bool:
    """Whether an option means something for code in a language."""
    if language == "cuda":
        return True
    return language in ("ptx", "ltoir") and bool(linker_options({name: ("0",)}))


def _check_named(named: Mapping[str, Any], languages: set[str]) -> None:
    """Refuse the caller's options that would be dropped."""
    for name in merge_options((), named):
        if not any(_concerns(language, name) for language in languages):
            spoken = " and ".join(sorted(languages))
            raise ProgramError(f"means nothing for device code in {spoken}", field=f"options.{name}")


def _options(code: DeviceCode, field: str, named: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """Return a part's options with those of the caller that concern it."""
    language = code.language
    if language == "cuda":
        return merge_options(code.options, named, field)
    if language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise ProgramError(f"got {shorten(language)}, expected one of {known}", field=f"{field}.language")
    for what, given in (("includes", code.includes), ("defines", code.defines)):
        if given:
            raise ProgramError(f"{language} has no preprocessor", field=f"{field}.{what}")
    for name in merge_options(code.options, {}, field):
        if not _concerns(language, name):
            raise ProgramError(f"--{name} means nothing for {language}", field=f"{field}.options")
    own = {name: value for name, value in named.items() if _concerns_given(language, name, value)}
    return merge_options(code.options, own, field)


def _concerns_given(language: str, name: str, value: Any) -> bool:
    # False takes an option away: it concerns what the option itself concerns.
    return any(_concerns(language, one) for one in merge_options((), {name: value is False or value}))


# Mode ---------------------------------------------------------------------------------------------------------------


def _mode(parts: tuple[Part, ...]) -> Mode:
    """Return how the parts become an image: what an option says, else what makes the best code."""
    lto = [part for part in parts if "dlink-time-opt" in part.options]
    relocatable = [part for part in parts if _says_relocatable(part) is True]
    whole = [part for part in parts if _says_relocatable(part) is False]
    late = [part for part in parts if part.code.language == "ltoir"]
    every_late = all(part.code.language in _OPTIMISED_LATE for part in parts)
    if (lto or late) and not every_late:
        raise ProgramError(
            "link-time optimisation drops what only PTX or a cubin calls: every part must be CUDA C++ or LTO-IR"
            f"{'; leave out --dlink-time-opt' if lto else ''}",
            field=f"{lto[0].field}.options" if lto else late[0].field,
        )
    if late and relocatable:
        raise ProgramError(
            f"LTO-IR ({late[0].field}) is optimised when it is linked, and what is linked with it is too; leave out "
            "relocatable-device-code and device-c",
            field=f"{relocatable[0].field}.options",
        )
    if whole and (lto or relocatable or len(parts) > 1):
        raise ProgramError(
            "parts that are linked, or optimised when they are, must be relocatable; leave out "
            "--relocatable-device-code=false and --device-w",
            field=f"{whole[0].field}.options",
        )
    if lto or late:
        return Mode.LTO
    if relocatable:
        return Mode.RELOCATABLE
    if len(parts) == 1:
        source = parts[0].code.source
        unlinked = isinstance(source, bytes) and read_cubin(source).relocatable
        return Mode.RELOCATABLE if unlinked else Mode.WHOLE
    # Optimising at link time loses what a debugger wants.
    debugged = any("device-debug" in part.options for part in parts)
    return Mode.LTO if every_late and not debugged else Mode.RELOCATABLE


def _says_relocatable(part: Part) -> bool | None:
    """Return what the options of a part say; None: nothing."""
    said = {value == "true" for value in part.options.get("relocatable-device-code", ())}
    said |= {True for _ in part.options.get("device-c", ())} | {
        False for _ in part.options.get("device-w", ())
    }
    if len(said) > 1:
        raise ProgramError("relocatable and not relocatable at once", field=f"{part.field}.options")
    return said.pop() if said else None


def _check_mode(job: Job) -> None:
    for part in job.parts:
        if "gen-opt-lto" in part.options and job.mode is not Mode.LTO:
            raise ProgramError("--gen-opt-lto needs --dlink-time-opt", field=f"{part.field}.options")
        if job.mode is Mode.LTO and (early := early_options(part.options)):
            raise ProgramError(
                f"got --{early[0]}, of which nothing comes where parts are optimised when they are linked: leave it "
                f"out{job.apart(job.parts)}",
                field=f"{part.field}.options",
            )
    if job.output != "ptx":
        return
    first = job.parts[0]
    if job.mode is Mode.RELOCATABLE:
        raise ProgramError(
            f"got {shorten(str(job.arch))}: linked parts become PTX only by --dlink-time-opt, all of them CUDA C++ or "
            f"LTO-IR; use {shorten(job.arch.name(virtual=False))}",
            field="target",
        )
    if first.code.language == "cubin":
        raise ProgramError(
            f"got {shorten(str(job.arch))}, a virtual architecture, and a cubin; "
            f"use {shorten(job.arch.name(virtual=False))}",
            field="target",
        )
    if first.code.language == "ptx" and first.options:
        given = ", ".join(first.options)
        raise ProgramError(
            f"got {given}: PTX for {shorten(str(job.arch))} is taken as it is", field=f"{first.field}.options"
        )
    for part in job.parts:
        if lost := assembler_options(part.options):
            raise ProgramError(
                f"got --{lost[0]}, which the assembler reads, for {shorten(str(job.arch))}, whose PTX the driver "
                f"assembles: leave it out, or use {shorten(job.arch.name(virtual=False))}",
                field=f"{part.field}.options",
            )
