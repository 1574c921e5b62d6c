"""Fatbins: of the images that one holds, the one that runs on an architecture.

Behind the header their layout is not documented, and what nvcc writes is compressed, so ``cuobjdump`` takes them apart
("CUDA Binary Utilities"), in a process of its own: a damaged one ends that. nvJitLink takes fatbins too, but of one
that holds a finished cubin it makes an image without kernels (tried: 13.0).
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trunnion.errors import BackendUnavailableError, CorruptArtifactError, ProgramError, shorten
from trunnion.image.cubin import read_cubin
from trunnion.image.ptx import read_ptx
from trunnion.storage.refusals import refusals
from trunnion.storage.scratch import scratch_folder
from trunnion.toolchain.binary_utility import BinaryUtility
from trunnion_nvrtc.compiler.targets import Architecture

if TYPE_CHECKING:
    from pathlib import Path

    from trunnion.model.code import DeviceCode

__all__ = ["CUOBJDUMP", "unpacked"]

CUOBJDUMP: Final = BinaryUtility("cuobjdump")
"""The program that takes a fatbin apart."""

_MAGIC: Final = b"\x50\xed\x55\xba"
_HEADER: Final = struct.Struct("<IHHQ")
"""``fatBinaryHeader``: magic, version, bytes of this header, bytes behind it."""

_REFUSED: Final = "Invalid fatbin header"
_EXTRACTED = re.compile(r"^Extracting (?:ELF|PTX) file.*?\s\d+: ", re.MULTILINE)


def unpacked(code: DeviceCode, arch: Architecture, field: str) -> DeviceCode:
    """Return the part that a fatbin holds for an architecture, in the place of the fatbin.

    That is the cubin for just this one, else the newest that runs on it, else the newest PTX that can be compiled for
    it; for a virtual architecture PTX alone.

    Parameters
    ----------
    code
        The fatbin.
    arch
        What it is to run on.
    field
        What messages call it.

    Raises
    ------
    ProgramError
        If it is no fatbin, holds nothing for the architecture, or several images of which none is better.
    CorruptArtifactError
        If it is truncated, its header or that of an image in it is damaged, or an image is not whole.
    BackendUnavailableError
        If ``cuobjdump`` is not there, or does not read it.
    """
    data = bytes(code.source)  # type: ignore[arg-type]  # DeviceCode has seen that a fatbin is bytes
    if not data.startswith(_MAGIC):
        raise ProgramError(f"got bytes that are no fatbin, which begins with {_MAGIC.hex(' ')}", field=field)
    _check_whole(data)
    CUOBJDUMP.path()
    held: list[str] = []
    for language in ("ptx",) if arch.virtual else ("cubin", "ptx"):
        images = _extracted(data, language)
        fitting = [(name, image) for name, image in images if _runs(arch, language, name)]
        held += [f"{language} for {name}" for name, _ in images]
        if fitting:
            return _best(code, language, fitting, field)
    others = f", only {', '.join(held)}" if held else ""
    wanted = f"{'' if arch.virtual else 'no cubin that runs there and '}no PTX for {arch} or older"
    raise ProgramError(
        f"got a fatbin that holds nothing for {shorten(str(arch))}{others}: {wanted}; "
        "LTO-IR is given as code of its own, not in a fatbin",
        field=field,
    )


def _check_whole(data: bytes) -> None:
    """Refuse what its header cannot be true of; of a tool's refusal nobody could tell whose fault it is.

    Raises
    ------
    CorruptArtifactError
        If it is truncated, or its header is damaged.
    """
    least = _HEADER.size
    if len(data) < least:
        raise CorruptArtifactError("fatbin", f"it is truncated: {len(data)} bytes, of {least} or more")
    _, _, header, behind = _HEADER.unpack_from(data)
    if header < least:
        damaged = f"it says that it has {header} bytes, of {least} or more"
        raise CorruptArtifactError("fatbin", f"its header is damaged: {damaged}")
    if not behind:
        raise CorruptArtifactError("fatbin", "its header is damaged: it says that nothing is behind it")
    if len(data) < header + behind:
        raise CorruptArtifactError(
            "fatbin",
            f"it is truncated, {len(data)} bytes, or its header is damaged, which says that it has {header} bytes, "
            f"and {behind} behind it",
        )


def _extracted(data: bytes, language: str) -> list[tuple[str, bytes]]:
    """Return the architecture and the bytes of each image in one language.

    Raises
    ------
    ProgramError
        If two have one name, of which only one would be seen.
    """
    kind, suffix = ("--extract-elf", ".cubin") if language == "cubin" else ("--extract-ptx", ".ptx")
    with scratch_folder() as folder, refusals("the images of a fatbin"):
        file = folder / "code.fatbin"
        file.write_bytes(data)
        said = _asked([kind, "all", os.fspath(file)], folder)
        files = sorted(folder.glob(f"*{suffix}"))
        if len(files) < len(_EXTRACTED.findall(said)):
            raise ProgramError(
                f"got a fatbin with two {language} images of one name, which cuobjdump cannot tell apart; give the one "
                "that is meant as code of its own",
                field="code",
            )
        return [_named(path, language) for path in files]


def _asked(arguments: list[str], folder: Path) -> str:
    """Return what the tool writes.

    Raises
    ------
    CorruptArtifactError
        If it finds a header that is none: another tool would not help.
    """
    try:
        return CUOBJDUMP.ask(arguments, folder)
    except BackendUnavailableError as error:
        if _REFUSED not in error.reason:
            raise
        raise CorruptArtifactError(
            "fatbin",
            "the header of an image in it is damaged, says cuobjdump, or its length is; make it again",
        ) from error


def _named(path: Path, language: str) -> tuple[str, bytes]:
    data = path.read_bytes()
    return (read_cubin(data).arch, data) if language == "cubin" else (read_ptx(data + b"\0").target, data)


def _runs(arch: Architecture, language: str, name: str) -> bool:
    return arch.runs_cubin(name) if language == "cubin" else arch.runs_ptx(name)


def _best(code: DeviceCode, language: str, images: list[tuple[str, bytes]], field: str) -> DeviceCode:
    def rank(name: str) -> tuple[int, str]:
        found = Architecture.parse(name)
        return (0, "") if found is None else (found.number, found.variant)

    best = max(rank(name) for name, _ in images)
    (name, data), *others = [(name, data) for name, data in images if rank(name) == best]
    if others:
        raise ProgramError(
            f"got a fatbin with {len(others) + 1} {language} images for {shorten(name)}, expected one: link "
            "them first, or give each as code of its own",
            field=field,
        )
    source = data if language == "cubin" else _text(data)
    return replace(code, language=language, source=source, name=f"{code.name}.{language}")


def _text(ptx: bytes) -> str:
    try:
        return ptx.rstrip(b"\0").decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptArtifactError("PTX of a fatbin", f"is no UTF-8: {error.reason}") from error
