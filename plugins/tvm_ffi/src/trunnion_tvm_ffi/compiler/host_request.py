"""From a `CompileRequest` to checked parts: what the host's compiler is given for each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.errors import ProgramError, UnsupportedFeatureError, shorten
from trunnion.toolchain.macros import macro_definitions
from trunnion.toolchain.processor import LEVELS
from trunnion_tvm_ffi.compiler.host_glue import PlacedKernel, emit_glue
from trunnion_tvm_ffi.compiler.host_options import option_words, read_caller_options
from trunnion_tvm_ffi.compiler.kernel_name import kernel_expression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.contract.compiler import CompileRequest
    from trunnion.contract.spec import Target
    from trunnion.model.code import DeviceCode

__all__ = ["GLUE_FILE", "IMAGE_KIND", "LANGUAGE", "NAME", "HostPart", "read_host_request"]

NAME: Final = "tvm_ffi"
"""What errors call the compiler."""

LANGUAGE: Final = "c++"
"""What device code for the CPU is written in."""

IMAGE_KIND: Final = "host-object"
"""The kind of image that is made."""

GLUE_FILE: Final = "trunnion_glue.cc"
"""The file that is compiled: it includes the part's own text."""

_ARCHITECTURES: Final = {"x86_64": LEVELS}
"""By machine, the architectures that can be told apart when a program runs (`host_glue`)."""

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}", re.ASCII)
_USUAL_NAME, _CUDA_NAME = (
    "kernel.cc",
    "kernel.cu",
)  # the latter is what a DeviceCode is called that has no name
_RESERVED = "trunnion"
_MOST_PATH = 2048  # half of what Linux takes: the folder that it is below has a path too


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPart:
    """One part of the device code, as the compiler gets it."""

    field: str
    """What messages call it: ``"code"`` if it is the only one, else ``"code[1]"``."""

    file_name: str
    """The plain name of the file with its text."""

    text: str
    """Its text."""

    glue: str
    """What is compiled: it includes the text."""

    headers: Mapping[str, bytes]
    """The headers that it brings along, by the name that it includes them by."""

    words: tuple[str, ...]
    """Options and macros, one word each."""

    kernels: tuple[PlacedKernel, ...]
    """The kernels in it."""


def read_host_request(request: CompileRequest, machine: str) -> tuple[HostPart, ...]:
    """Return the parts of a request.

    Parameters
    ----------
    request
        The request.
    machine
        What the compiler compiles for: ``"x86_64"``.

    Raises
    ------
    ProgramError
        If a language, a name, an option, a header or the target is none that this compiler takes.
    UnsupportedFeatureError
        If there is no code, or the backend loads no object of the host.
    """
    if not request.code:
        raise UnsupportedFeatureError(NAME, ["a program without device code"], "add a DeviceCode")
    if request.accepts and IMAGE_KIND not in request.accepts:
        raise UnsupportedFeatureError(NAME, list(request.accepts), f"it makes {IMAGE_KIND}")
    architecture = _architecture(request.target, machine)
    caller = read_caller_options(request.options)
    placed = _placed(request)
    parts = []
    for index, code in enumerate(request.code):
        field = "code" if len(request.code) == 1 else f"code[{index}]"
        if code.language != LANGUAGE or not isinstance(code.source, str):
            raise ProgramError(
                f"got {shorten(code.language)}, expected {LANGUAGE}", field=f"{field}.language"
            )
        name = _file_name(code)
        kernels = tuple(kernel for part, kernel in placed if part == index)
        glue = emit_glue(name, kernels, threads=None if index else caller.threads, arch=request.target.arch)
        parts.append(
            HostPart(
                field=field,
                file_name=name,
                text=code.source,
                glue=glue,
                headers=_headers(code, name, field),
                words=(
                    *architecture,
                    *option_words(code.options, caller.words, field),
                    *(f"-D{one}" for one in macro_definitions(code, field)),
                ),
                kernels=kernels,
            )
        )
    return tuple(parts)


def _placed(request: CompileRequest) -> list[tuple[int, PlacedKernel]]:
    """Return each kernel with the part that it is in."""
    placed = []
    for index, kernel in enumerate(request.kernels):
        field = f"kernels[{index}]"
        if not 0 <= kernel.part < len(request.code):
            raise ProgramError(f"is in part {kernel.part}, of {len(request.code)}", field=field)
        placed.append((kernel.part, PlacedKernel(index, kernel_expression(kernel.name, f"{field}.name"))))
    return placed


def _architecture(target: Target, machine: str) -> tuple[str, ...]:
    """Return the option for the target's architecture."""
    if target.kind != "cpu":
        raise ProgramError(f"got {shorten(str(target))}, expected 'cpu'", field="target")
    known = _ARCHITECTURES.get(machine, ())
    if not target.arch:
        return ()
    if target.arch not in known:
        allowed = ", ".join(repr(f"cpu:{one}") for one in ("", *known)).replace("cpu:'", "cpu'")
        raise ProgramError(
            f"got {shorten(str(target))}, expected one of {allowed} on {machine}", field="target"
        )
    return (f"-march={target.arch}",)


def _file_name(code: DeviceCode) -> str:
    """Return the plain name under which messages name a part's lines."""
    name = code.name.rpartition("/")[2]
    usual = name == _CUDA_NAME or not _FILE_NAME.fullmatch(name) or name.startswith(_RESERVED)
    return _USUAL_NAME if usual else name


def _headers(code: DeviceCode, file_name: str, field: str) -> dict[str, bytes]:
    """Return the headers of a part that have names of files below its folder.

    Raises
    ------
    ProgramError
        If a name is none, is taken, or is another header's folder.
    """
    headers: dict[str, bytes] = {}
    for index, (name, text) in enumerate(code.includes):
        place = f"{field}.includes[{index}]"
        segments = name.split("/")
        plain = len(name) <= _MOST_PATH and all(_FILE_NAME.fullmatch(segment) for segment in segments)
        if not plain or segments[0].startswith(_RESERVED):
            raise ProgramError(
                f"got header {shorten(name)}, expected a relative path of at most {_MOST_PATH} letters, digits, "
                f"'_', '.', '+' and '-' that does not begin with {shorten(_RESERVED)}",
                field=place,
            )
        taken = {file_name, *headers}
        if any(one == name or one.startswith(f"{name}/") or name.startswith(f"{one}/") for one in taken):
            raise ProgramError(f"got header {shorten(name)}, where there is a file of that name", field=place)
        headers[name] = text.encode()
    return headers
