"""What a command is pointed at: a program, an artifact, a device image, or an example. Finding out runs none of it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.manifest import MAX_FILE_BYTES
from trunnion.artifacts.program_file import program_of
from trunnion.cli.exhibits import is_known, known_examples, load_example
from trunnion.errors import ProgramError, shorten
from trunnion.messages import suggestion
from trunnion.model.limits import MOST_TEXT_BYTES
from trunnion.model.program import KernelProgram

if TYPE_CHECKING:
    from trunnion.examples import Example

__all__ = ["Subject", "find_subject"]

_IMAGE_KINDS = {".cubin": "cubin", ".ptx": "ptx", ".fatbin": "cubin"}
_SOURCES = frozenset({".cu", ".cuh", ".cc", ".cpp", ".cxx"})
_ELF = b"\x7fELF"
_FATBIN = b"\x50\xed\x55\xba"
_MACHINE, _CUDA = slice(18, 20), 190  # e_machine, and EM_CUDA
_TAKEN = "a program as JSON (KernelProgram.to_json writes it), a cubin or PTX file, an artifact's folder or an example"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was found; exactly one of image, artifact and program is what it is about."""

    kind: str
    """``"program"``, ``"artifact"``, ``"image"`` or ``"example"``."""

    name: str
    """What was typed."""

    program: KernelProgram | None = None
    """The program; None for an image."""

    artifact: Artifact | None = None
    """The artifact, every byte verified."""

    image: bytes | None = None
    """The bytes of a device image."""

    image_kind: str = ""
    """What the image is said to be: ``"cubin"`` or ``"ptx"``."""

    example: Example | None = None
    """The example."""


def find_subject(text: str) -> Subject:
    """Find out what ``text`` names: what exists as a file or a folder comes before an example of that name.

    Parameters
    ----------
    text
        A path, or the name of an example.

    Raises
    ------
    ProgramError
        If it names nothing, or a file that is no program and no image.
    CorruptArtifactError
        If it is a folder and no whole artifact.
    """
    if not text or "\0" in text:  # an empty text would be the folder that the command runs in
        raise _nothing(text)
    path = Path(text)
    if os.path.isdir(text):  # noqa: PTH112 - False for a name that is too long, where Path.is_dir raises
        artifact = Artifact.open(path)
        return Subject(kind="artifact", name=text, artifact=artifact, program=program_of(artifact))
    if os.path.lexists(path):
        return _file(path, text)
    if is_known(text):
        example = load_example(text)
        return Subject(kind="example", name=text, example=example, program=example.program)
    raise _nothing(text)


def _nothing(text: str) -> ProgramError:
    known = ", ".join(known_examples())
    meant = suggestion(text, known_examples())
    return ProgramError(
        f"got {shorten(text)}, expected a file, an artifact's folder or an example ({known}){meant}"
    )


def _file(path: Path, name: str) -> Subject:
    data = _read(path)
    machine = int.from_bytes(data[_MACHINE], "little") if data.startswith(_ELF) else _CUDA
    if data.startswith(_FATBIN):
        raise ProgramError(
            f"{shorten(name)} is a fatbin, of several images; expected {_TAKEN}; take one out of it, with cuobjdump "
            "--extract-elf all, or make it a part of a program: DeviceCode.from_file"
        )
    if path.suffix in _IMAGE_KINDS or (data.startswith(_ELF) and machine == _CUDA):
        kind = _IMAGE_KINDS.get(path.suffix, "cubin")
        return Subject(kind="image", name=name, image=data, image_kind=kind)
    if len(data) > MOST_TEXT_BYTES:
        raise ProgramError(f"{shorten(name)} has {len(data)} bytes, a program has at most {MOST_TEXT_BYTES}")
    if machine != _CUDA:
        raise _no_program(path, f"an ELF file for machine {machine}, where CUDA is {_CUDA}")
    return Subject(kind="program", name=name, program=_program(data, path))


def _program(data: bytes, path: Path) -> KernelProgram:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _no_program(path, "neither text nor a device image") from error
    if not text.lstrip().startswith("{"):
        raise _no_program(path, "text, and no JSON object" if text.strip() else "empty")
    try:
        return KernelProgram.from_json(text)
    except ProgramError as error:
        error.add_note(f"{shorten(str(path))} was read as a program, which KernelProgram.to_json writes")
        raise


def _no_program(path: Path, what: str) -> ProgramError:
    advice = (
        "; of device code DeviceCode.from_file makes a part of a program" if path.suffix in _SOURCES else ""
    )
    return ProgramError(f"{shorten(str(path))} is no program: it is {what}; expected {_TAKEN}{advice}")


def _read(path: Path) -> bytes:
    """Return the bytes of a plain file of bearable size.

    Raises
    ------
    ProgramError
        If it is something else, or cannot be read.
    """
    try:
        # O_NONBLOCK: a pipe must not hang the reader. It means nothing for plain files.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - of a descriptor
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ProgramError(f"{shorten(str(path))} is not a plain file")
            limit = MAX_FILE_BYTES if path.suffix in _IMAGE_KINDS else MOST_TEXT_BYTES
            if status.st_size > limit:
                raise ProgramError(
                    f"{shorten(str(path))} has {status.st_size} bytes, expected at most {limit}"
                )
            return file.read(limit + 1)
    except OSError as error:
        raise ProgramError(f"cannot read {shorten(str(path))}: {error.strerror}") from error
