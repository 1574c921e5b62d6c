"""The device compiler ``nvrtc``: CUDA C++, PTX, cubins, fatbins and LTO-IR to one image. It needs no device."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.contract.compiler import DeviceCompiler, DeviceImage, ImageKernel
from trunnion.contract.spec import Target
from trunnion.errors import ProgramError, shorten
from trunnion.image.cubin import read_cubin
from trunnion.image.ptx import PtxInfo, read_ptx
from trunnion.image.target import virtual_arch
from trunnion.image.variables import image_variables
from trunnion.storage.stamps import witness
from trunnion.toolchain.device import device_arch
from trunnion_nvrtc.compiler import linker
from trunnion_nvrtc.compiler.cuda_part import CompiledPart, compile_part, part_headers
from trunnion_nvrtc.compiler.device_runtime import device_runtime_digest
from trunnion_nvrtc.compiler.headers import file_digest, tells_time
from trunnion_nvrtc.compiler.linker import LinkInput
from trunnion_nvrtc.compiler.nvrtc import supported_archs
from trunnion_nvrtc.compiler.program import build_id
from trunnion_nvrtc.compiler.request import read_request
from trunnion_nvrtc.compiler.source import encoded
from trunnion_nvrtc.compiler.targets import Architecture, check_supported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.contract.compiler import CompileRequest
    from trunnion.image.cubin import CubinInfo
    from trunnion_nvrtc.compiler.request import Job, Part

__all__ = ["NvrtcCompiler"]

# Of what NVRTC and nvJitLink ask the environment for: NV_NVVM_VERSION=nvvm70, say, makes other machine code.
_VARIABLES = ("EDG_", "LIBNVVM_", "LLVM_", "NVJITLINK", "NVRTC", "NVVM_", "NV_NVVM_")
_LTOIR_MAGIC = b"\xed\x43\x4e\x7f"
_VERSION = 4  # of what this plugin makes of a request; it changes whenever some image does


class NvrtcCompiler(DeviceCompiler):
    """The device compiler ``nvrtc``.

    Notes
    -----
    The same request and headers give the same bytes, in whatever folder the process runs. ``device-debug``
    is the exception: NVRTC writes the working directory into the debugging information.
    """

    def compile(self, request: CompileRequest) -> DeviceImage:
        """Return the image of one part, or of several that are linked.

        A real architecture gives a cubin, a virtual one PTX.

        Raises
        ------
        CompileError
            If NVRTC or nvJitLink refuses the source, or a kernel is not in it; a note says how to get a missing
            header.
        ProgramError
            If an option, a macro, a name, a language or the target is not one that they take.
        CorruptArtifactError
            If a part that is PTX or a cubin is not whole, or an image in a fatbin.
        UnsupportedFeatureError
            If there is no code.
        BackendUnavailableError
            If NVRTC, nvJitLink where parts are linked or PTX is assembled, or ``cuobjdump`` where one is a fatbin, is
            not there.
        """
        job = read_request(request)
        if job.compiles:
            check_supported(job.arch, supported_archs())
        parts = [_compiled(part, job) for part in job.parts]
        symbols = _symbols(job, parts)
        logs = [part.log for part in parts]
        data = parts[0].data
        if job.links:
            linked = linker.link(
                [
                    LinkInput(one.kind, one.data, part.file_name)
                    for part, one in zip(job.parts, parts, strict=True)
                ],
                str(job.arch),
                job.linker_options(),
                job.output,
            )
            data = linked.data
            logs.append(linked.log)
        if job.output == "ptx" and job.compiles:
            linker.check_ptx(data, job.arch.name(virtual=False))
        info = _info(job, data)
        for part in job.parts:
            if part.code.language == "ltoir":  # whose kernels are known when it is linked
                _exact_names(part, info)
        _check_arch(job, info)
        _check_renamed(symbols, info)
        return DeviceImage(
            kind=job.output,
            data=data,
            target=request.target,
            kernels=tuple(_kernel(index, *pair, info) for index, pair in enumerate(symbols)),
            variables=image_variables(info, _variables(job, parts)),
            headers_read=tuple(sorted({name for part in parts for name in part.headers})),
            log="\n".join(log for log in logs if log),
            toolchain=_toolchain(job, parts),
        )

    def environment(self, request: CompileRequest) -> dict[str, str]:
        """Return what the image depends on beyond the request and the fingerprint, without compiling.

        Parameters
        ----------
        request
            What would be compiled.

        Returns
        -------
        dict[str, str]
            The SHA-256 of each header file that could be included, by path, and a value that never comes again if not
            all are known, or a macro such as ``__TIME__`` stands anywhere; if code is linked the build of nvJitLink,
            and CUDA's device runtime; for ``device-debug`` the working directory too.

        Raises
        ------
        ProgramError, CorruptArtifactError, UnsupportedFeatureError, BackendUnavailableError
            As `compile` does, as far as it can be known now.
        """
        job = read_request(request)
        cuda = [part for part in job.parts if part.code.language == "cuda"]
        reached = [part_headers(part)[1] for part in cuda]
        files = sorted(
            {file for headers in reached for file in zip(headers.files, headers.versions, strict=True)}
        )
        found = {path: file_digest(path, version) for path, version in files}
        witness(found)
        if not all(headers.complete for headers in reached):
            # A macro names a header in a folder of too many: no key is the same twice, so no image is used again.
            found["headers that nobody can name"] = uuid.uuid4().hex
        if any(tells_time(part.code) for part in cuda):
            found["the time at which it is compiled"] = uuid.uuid4().hex
        if job.links:
            found["nvjitlink"] = linker.build_id()
            found["libcudadevrt.a"] = device_runtime_digest()
        if any("device-debug" in part.options for part in cuda):
            found["working directory"] = str(Path.cwd())
        return found

    def fingerprint(self) -> str:
        """Return the exact build of NVRTC, the version of this module, and a digest of the variables that they read."""
        read = sorted((name, os.environ[name]) for name in os.environ if name.startswith(_VARIABLES))
        said = f", environment {hashlib.sha256(repr(read).encode()).hexdigest()}" if read else ""
        return f"nvrtc {build_id()}, request form {_VERSION}{said}"

    def default_target(self) -> Target | None:
        """Return the target of device 0; None without a driver or a device."""
        arch = device_arch(0)
        return None if arch is None else Target("cuda", arch)


# Parts --------------------------------------------------------------------------------------------------------------


def _compiled(part: Part, job: Job) -> CompiledPart:
    match part.code.language:
        case "cuda":
            return compile_part(part, job)
        case "ptx":
            return _ptx_part(part, job)
        case "ltoir":
            return _ltoir_part(part)
        case _:
            return _cubin_part(part, job)


def _ptx_part(part: Part, job: Job) -> CompiledPart:
    # The driver, like C, wants to see where a text ends.
    data = encoded(part.code.source, f"{part.field}.source") + b"\0"
    info = read_ptx(data)
    if not job.arch.runs_ptx(info.target):
        raise ProgramError(
            f"got PTX for {shorten(info.target)}, which cannot be compiled for {shorten(str(job.arch))}",
            field=part.field,
        )
    return CompiledPart("ptx", data, _exact_names(part, info), "", (), variables=_exact_variables(part))


def _cubin_part(part: Part, job: Job) -> CompiledPart:
    data = bytes(part.code.source)  # type: ignore[arg-type]  # DeviceCode has seen that a cubin is bytes
    info = read_cubin(data)
    if not job.arch.runs_cubin(info.arch):
        raise ProgramError(
            f"got a cubin for {shorten(info.arch)}, which does not run on {shorten(str(job.arch))}",
            field=part.field,
        )
    return CompiledPart("cubin", data, _exact_names(part, info), "", (), variables=_exact_variables(part))


def _ltoir_part(part: Part) -> CompiledPart:
    data = bytes(part.code.source)  # type: ignore[arg-type]  # DeviceCode has seen that LTO-IR is bytes
    if not data.startswith(_LTOIR_MAGIC):
        raise ProgramError(
            f"got bytes that are no LTO-IR, which begins with {_LTOIR_MAGIC.hex(' ')}; nvcc -ltoir -dlto or NVRTC's "
            "--dlink-time-opt writes it",
            field=part.field,
        )
    names = tuple(name for _, name in part.kernels)
    return CompiledPart("ltoir", data, names, "", (), variables=_exact_variables(part))


def _exact_names(part: Part, info: CubinInfo | PtxInfo) -> tuple[str, ...]:
    """Return the symbols of kernels in finished code, which go by their exact names."""
    for place, name in part.kernels:
        if info.kernel(name) is None:
            known = ", ".join(shorten(kernel.name) for kernel in info.kernels) or "none"
            raise ProgramError(
                f"got {shorten(name)}, expected the exact name of a kernel in this {part.code.language} ({known})",
                field=f"kernels[{place}].name",
            )
    return tuple(name for _, name in part.kernels)


def _exact_variables(part: Part) -> tuple[str, ...]:
    """Return the symbols of variables in finished code, which go by their exact names."""
    return tuple(name for _, name in part.variables)


# Kernels ------------------------------------------------------------------------------------------------------------


def _symbols(job: Job, parts: Sequence[CompiledPart]) -> list[tuple[str, str]]:
    """Return the name and the symbol of each kernel, in the request's order.

    Raises
    ------
    ProgramError
        If kernels of two parts have one symbol: linked, they could not be told apart.
    """
    found: dict[int, tuple[str, str]] = {}
    owner: dict[str, str] = {}
    for part, compiled in zip(job.parts, parts, strict=True):
        for (place, name), symbol in zip(part.kernels, compiled.symbols, strict=True):
            if owner.setdefault(symbol, part.field) != part.field:
                raise ProgramError(
                    f"{shorten(name)} has the symbol {shorten(symbol)} in {owner[symbol]} and in {part.field}: linked, "
                    "they cannot be told apart; give one another name or a namespace",
                    field=f"kernels[{place}].name",
                )
            found[place] = (name, symbol)
    return [found[place] for place in sorted(found)]


def _variables(job: Job, parts: Sequence[CompiledPart]) -> list[tuple[str, str]]:
    """Return the name and the symbol of each variable, in the request's order."""
    found = {
        place: (name, symbol)
        for part, compiled in zip(job.parts, parts, strict=True)
        for (place, name), symbol in zip(part.variables, compiled.variables, strict=True)
    }
    return [found[place] for place in sorted(found)]


def _check_renamed(symbols: Sequence[tuple[str, str]], info: CubinInfo | PtxInfo) -> None:
    """Refuse a kernel of which another part has one of the same symbol, which the linker has renamed."""
    for index, (name, symbol) in enumerate(symbols):
        renamed = re.compile(re.escape(symbol) + r"\$\d+")
        if any(renamed.fullmatch(kernel.name) for kernel in info.kernels):
            raise ProgramError(
                f"{shorten(name)} is static, and another part has a kernel of the same symbol: linked, they "
                "cannot be told apart; give one another name or a namespace",
                field=f"kernels[{index}].name",
            )


def _info(job: Job, data: bytes) -> CubinInfo | PtxInfo:
    return read_ptx(data) if job.output == "ptx" else read_cubin(data)


def _check_arch(job: Job, info: CubinInfo | PtxInfo) -> None:
    """Refuse an image for another architecture than the one that was asked for."""
    if not (job.compiles or job.links):
        return  # finished code is taken as it is, and an older architecture's may run
    name = virtual_arch(info.target) if isinstance(info, PtxInfo) else info.arch
    found = Architecture.parse(name)
    if found is None or found.number != job.arch.number:
        raise ProgramError(
            f"the image is for {shorten(name)}, expected one for {shorten(str(job.arch))}", field="target"
        )


def _kernel(index: int, name: str, symbol: str, info: CubinInfo | PtxInfo) -> ImageKernel:
    """Return a kernel with the parameter table that the image has of it."""
    kernel = info.kernel(symbol)
    if kernel is None:
        raise ProgramError(
            f"{shorten(name)} is in the image and is no kernel", field=f"kernels[{index}].name"
        )
    return ImageKernel(name, symbol, kernel.parameters)


def _toolchain(job: Job, parts: Sequence[CompiledPart]) -> dict[str, str]:
    builds = [part.build for part in parts if part.build]  # one compiler, so one build
    found = {"nvrtc": builds[0]} if builds else {}
    return {**found, "nvjitlink": linker.build_id()} if job.links else found
