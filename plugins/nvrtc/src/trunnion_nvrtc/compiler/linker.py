"""nvJitLink itself: the only module that touches ``cuda.bindings.nvjitlink``.

It links cubins, PTX and LTO-IR to one image, with no device and no driver. It trusts what it is given (a truncated
cubin, or one symbol defined by two parts, can end the process), so `link` checks every input first. And what it says
cannot always be trusted (once it has seen PTX that is newer than itself, it calls a link with names that nobody defines
a success, for as long as the process lives), so `link` checks the result.
"""

from __future__ import annotations

import functools
import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trunnion.errors import (
    BackendUnavailableError,
    CompileError,
    CorruptArtifactError,
    DriverError,
    LifecycleError,
    ProgramError,
    shorten,
)
from trunnion.image.cubin import read_cubin
from trunnion.image.ptx import read_ptx
from trunnion_nvrtc.compiler.device_runtime import (
    DEVICE_RUNTIME_HINT,
    device_runtime,
    wants_device_runtime,
)
from trunnion_nvrtc.compiler.first_use import FirstUse
from trunnion_nvrtc.compiler.nvrtc import DISTRIBUTION, NAME, import_bindings
from trunnion_nvrtc.compiler.results import NVJITLINK_RESULTS, result_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

__all__ = ["LinkInput", "LinkResult", "build_id", "check_ptx", "link", "version"]

_INPUT_TYPES = {"cubin": "CUBIN", "ptx": "PTX", "ltoir": "LTOIR", "library": "LIBRARY"}
_CALLS_NOBODY = b"""
.version 8.0
.target sm_75
.address_size 64
.extern .func trunnion_defined_nowhere;
.visible .entry probe() { call trunnion_defined_nowhere; ret; }
\0"""
_EXTERN = re.compile(
    rb"^[ \t]*\.extern\s+\.(?:func|global|const)\b(?:[^;{(]*?\([^)]*\)\s*|[^;{(]*?)([\w$]+)\s*[;(\[{]",
    re.MULTILINE,
)
_NEWER_PTX = re.compile(r"Unsupported \.version ([0-9.]+); current version is '([0-9.]+)'")
_DRIVERS_OWN = frozenset({b"vprintf", b"malloc", b"free", b"__assertfail"})
_FIELD_OF = {1: "code.options", 11: "code.options", 16: "target", 17: "target"}
"""Which field is at fault, by the status of ``nvJitLinkCreate``."""
_FIRST_USE = FirstUse("nvJitLink")


@dataclass(frozen=True, slots=True)
class LinkInput:
    """One part of a link."""

    kind: str
    """``"cubin"``, ``"ptx"`` or ``"ltoir"``."""

    data: bytes
    """Its bytes."""

    name: str
    """What messages call it."""


@dataclass(frozen=True, slots=True)
class LinkResult:
    """What a link made."""

    data: bytes
    """The cubin, or the PTX if that was asked for."""

    log: str
    """What nvJitLink printed."""


@functools.cache
def bindings() -> Any:
    """Return ``cuda.bindings.nvjitlink`` once it is known to work.

    Raises
    ------
    BackendUnavailableError
        If the bindings are not installed, find no library, or belong to another major version of CUDA.
    LifecycleError
        If the thread is in the middle of this, or its process was forked when some thread was.
    """
    nvjitlink, bindings_version = import_bindings("nvjitlink")
    ours = bindings_version.partition(".")[0]
    install = f"run: pip install 'nvidia-nvjitlink=={ours}.*'"
    try:
        major, minor = _FIRST_USE.run(nvjitlink.version)
    except LifecycleError:  # a RuntimeError too, but no library is missing
        raise
    except (RuntimeError, nvjitlink.nvJitLinkError) as error:
        reason = f"libnvJitLink.so.{ours}, which links parts and assembles PTX, is not found; {install}"
        raise BackendUnavailableError(NAME, DISTRIBUTION, reason, str(error)) from error
    if str(major) != ours:
        reason = (
            f"cuda-bindings {bindings_version} found nvJitLink {major}.{minor}, expected {ours}.x; {install}"
        )
        raise BackendUnavailableError(NAME, DISTRIBUTION, reason)
    return nvjitlink


def version() -> tuple[int, int]:
    """Return nvJitLink's version as major and minor number (``nvJitLinkVersion``).

    Raises
    ------
    BackendUnavailableError
        If nvJitLink is not there.
    """
    major, minor = bindings().version()
    return int(major), int(minor)


@functools.cache
def build_id() -> str:
    """Return what tells one build of nvJitLink from another: its version, and the bytes that its library has.

    Raises
    ------
    BackendUnavailableError
        If nvJitLink is not there.
    """
    major, minor = version()
    pathfinder: Any = importlib.import_module("cuda.pathfinder")
    path = pathfinder.load_nvidia_dynamic_lib("nvJitLink").abs_path
    size = Path(path).stat().st_size if path else 0
    return f"{major}.{minor} ({size} bytes)"


def link(
    inputs: Sequence[LinkInput], arch: str, options: Iterable[str] = (), output: str = "cubin"
) -> LinkResult:
    """Link parts to one image (``nvJitLinkCreate``, ``nvJitLinkAddData``, ``nvJitLinkComplete``).

    CUDA's device runtime is linked too, where kernels launch kernels.

    Parameters
    ----------
    inputs
        The parts.
    arch
        The architecture: a real one for a cubin, a virtual one for PTX.
    options
        As nvJitLink documents them, one word each, beside the architecture, ``-lto`` and ``-ptx``.
    output
        ``"cubin"``, or ``"ptx"`` if every part is LTO-IR.

    Raises
    ------
    CompileError
        If the parts do not fit together, or one of them cannot be compiled; with the log.
    ProgramError
        If two parts define one symbol, or an option or the architecture is not one that nvJitLink takes.
    CorruptArtifactError
        If a cubin or a PTX is not whole.
    BackendUnavailableError
        If nvJitLink is not there.
    DriverError
        If nvJitLink refuses for any other reason.
    """
    _check_inputs(inputs)
    words = [f"-arch={arch}", *options]
    if any(part.kind == "ltoir" for part in inputs):
        words.append("-lto")
    if output == "ptx":
        words.append("-ptx")
    try:
        return _whole(inputs, words, arch, output)
    except CompileError as error:
        if output != "cubin" or not wants_device_runtime(error.log):
            raise
        library = device_runtime()
        if library is None:
            error.add_note(f"hint: {DEVICE_RUNTIME_HINT}")
            raise
    return _whole([*inputs, LinkInput("library", library, "libcudadevrt.a")], words, arch, output)


def check_ptx(data: bytes, arch: str) -> None:
    """Refuse PTX that uses what nobody defines; it is assembled only if it names anything of the kind.

    Parameters
    ----------
    data
        PTX that NVRTC or nvJitLink has made.
    arch
        A real architecture that it can be assembled for.

    Raises
    ------
    CompileError, ProgramError, BackendUnavailableError
        As `link` does.
    """
    left = {found[1] for found in _EXTERN.finditer(data)} - _DRIVERS_OWN
    if left:
        words = [f"-arch={arch}"]
        _check_resolved(
            _linked([LinkInput("ptx", data, "the linked PTX")], words, arch, "cubin"), words, arch
        )


def _whole(inputs: Sequence[LinkInput], words: list[str], arch: str, output: str) -> LinkResult:
    """Return what a link made, in which nothing is left that nobody defines."""
    result = _linked(inputs, words, arch, output)
    if output == "cubin":
        _check_resolved(result, words, arch)
    return result


def _linked(inputs: Sequence[LinkInput], words: list[str], arch: str, output: str) -> LinkResult:
    with _Link(words, arch) as job:
        for part in inputs:
            job.add(part)
        return job.complete(output)


def _check_resolved(result: LinkResult, words: list[str], arch: str) -> None:
    """Refuse a cubin that calls what nobody defines.

    The driver has functions of its own, which nvJitLink knows and nobody lists. So if a name is left, it is asked
    about one that there is not: if it finds nothing wrong with that, it finds nothing wrong with anything.

    Raises
    ------
    CompileError, ProgramError
        If nvJitLink should have refused.
    """
    try:
        left = read_cubin(result.data).references
    except CorruptArtifactError as error:
        # nvJitLink keeps static kernels of one symbol side by side.
        problem = f"the linked parts make no cubin ({error.problem}); static kernels need different names"
        raise ProgramError(problem, field="code") from error
    if not left:
        return
    try:
        _linked([LinkInput("ptx", _CALLS_NOBODY, "probe")], [f"-arch={arch}"], arch, "cubin")
    except CompileError:
        return
    names = ", ".join(map(shorten, left))
    log = f"{result.log}\nno part defines {names} (nvJitLink has stopped to say so in this process)".strip()
    raise CompileError(_title(), log, "", words, arch)


@functools.cache
def _title() -> str:
    """Return name and version of the linker, for messages."""
    return "nvJitLink {}.{}".format(*version())


class _Link:
    """One ``nvJitLinkHandle``, which is destroyed at the end."""

    def __init__(self, words: list[str], arch: str) -> None:
        self._lib = bindings()
        self._words, self._arch = words, arch
        try:
            self._handle = self._lib.create(len(words), words)
        except self._lib.nvJitLinkError as error:
            row = result_code(NVJITLINK_RESULTS, int(error.status))
            field = _FIELD_OF.get(row.code)
            if field is None:
                raise DriverError("nvJitLinkCreate", row.code, row.name, row.meaning) from error
            raise ProgramError(
                f"{row.meaning}: {shorten(' '.join(words))} ({row.name})", field=field
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lib.destroy(self._handle)

    def add(self, part: LinkInput) -> None:
        kind = getattr(self._lib.InputType, _INPUT_TYPES[part.kind])
        # The name goes into messages alone, so it may lose what a C text cannot hold.
        name = part.name.encode("utf-8", "replace").decode().replace("\0", "?")
        try:
            self._lib.add_data(self._handle, kind, part.data, len(part.data), name)
        except self._lib.nvJitLinkError as error:
            raise self._refusal("nvJitLinkAddData", error) from error

    def complete(self, output: str) -> LinkResult:
        try:
            self._lib.complete(self._handle)
            data = self._text(f"linked_{output}")
        except self._lib.nvJitLinkError as error:
            raise self._refusal("nvJitLinkComplete", error) from error
        return LinkResult(data, self._log("info"))

    def _refusal(self, call: str, error: Any) -> CompileError:
        row = result_code(NVJITLINK_RESULTS, int(error.status))
        log = self._log("error").strip()
        text = f"{log}\n{call}: {row.meaning} ({row.name})".lstrip()
        newer = _NEWER_PTX.search(log)
        if newer:
            text += (
                f"\nthe PTX is of version {newer[1]}, this nvJitLink reads up to {newer[2]}: install one that is as "
                "new as what wrote the PTX, have the PTX written in an older version, or give a cubin"
            )
        return CompileError(_title(), text, "", self._words, self._arch)

    def _log(self, which: str) -> str:
        return self._text(f"{which}_log").decode("utf-8", "replace").rstrip("\0 \n")

    def _text(self, what: str) -> bytes:
        size = getattr(self._lib, f"get_{what}_size")(self._handle)
        buffer = bytearray(size)
        if size:
            getattr(self._lib, f"get_{what}")(self._handle, buffer)
        return bytes(buffer)


def _check_inputs(inputs: Sequence[LinkInput]) -> None:
    """Refuse what nvJitLink would drop in silence, or would not survive."""
    owner: dict[str, str] = {}
    for part in inputs:
        if part.kind == "ltoir":
            continue  # nvJitLink itself answers for these
        if part.kind == "cubin":
            info = read_cubin(part.data)
            if not info.relocatable:
                raise ProgramError(
                    f"{shorten(part.name)} is a finished cubin, which cannot be linked with others; compile it with "
                    "--relocatable-device-code=true",
                    field="code",
                )
            defined = info.definitions
        else:
            defined = read_ptx(part.data).definitions
        for name in defined:
            if name in owner:
                raise ProgramError(
                    f"both {shorten(owner[name])} and {shorten(part.name)} define {shorten(name)}; only one part may",
                    field="code",
                )
            owner[name] = part.name
