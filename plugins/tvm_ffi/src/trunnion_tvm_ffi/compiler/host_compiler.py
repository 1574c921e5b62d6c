"""The device compiler ``tvm_ffi``: C++ to an object of the host, for the CPU target. It needs a C++ compiler."""

from __future__ import annotations

import hashlib
import uuid
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.codegen.cpp.build import runtime_folder
from trunnion.codegen.cpp.host import host_kernel_symbol
from trunnion.contract.compiler import DeviceCompiler, DeviceImage, ImageKernel, ImageParameter
from trunnion.contract.spec import Target
from trunnion.errors import CompileError, CorruptArtifactError, ProgramError, shorten
from trunnion.image import HostObject, read_host_object
from trunnion.storage.scratch import scratch_folder
from trunnion.toolchain.host_compilation import HostCompilation, HostOutput, run_host
from trunnion.toolchain.host_compiler import host_compiler
from trunnion.toolchain.host_reading import read_host, witness_reading
from trunnion_tvm_ffi.compiler.host_glue import GLUE_VERSION, address_symbol, parameters_symbol
from trunnion_tvm_ffi.compiler.host_request import GLUE_FILE, IMAGE_KIND, NAME, read_host_request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trunnion.contract.compiler import CompileRequest
    from trunnion.toolchain.host_compiler import HostCompiler
    from trunnion_tvm_ffi.compiler.host_request import HostPart

__all__ = ["CpuCompiler"]

_COMPILING: Final = (
    "-c",
    "-fPIC",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-frandom-seed=trunnion",
    "-Werror=date-time",  # equal requests make equal bytes
)
_FAMILY: Final = {"g++": ("-fno-gnu-unique",), "clang++": ()}
# Names that are refused to headers, so that none is in the way of what compiler and assembler write.
_OBJECT, _DEPENDENCIES = "trunnion_image.o", "trunnion_image.d"
# GCC's assembler tells what it reads by itself (.incbin), which no preprocessor knows; Clang's own has no such list.
_ASSEMBLER_LISTS: Final = {"g++": ("trunnion_assembled.d",), "clang++": ()}
_WORD = 8  # bytes of one number of a parameter table


class CpuCompiler(DeviceCompiler):
    """The device compiler of the CPU target.

    Each part is compiled by itself, with text behind it that unpacks the arguments of its kernels; several parts are
    linked to one relocatable object. The image's symbols are those of that text, so that a launcher needs neither
    C++'s names nor the kernels' declarations.
    """

    def compile(self, request: CompileRequest) -> DeviceImage:
        """Return the image of one part or of several.

        Raises
        ------
        CompileError
            If the compiler refuses the source, or a kernel is not in it or takes what a kernel cannot take; lines are
            those of the program's own text.
        ProgramError
            If an option, a macro, a header, a name, a language or the target is not one that it takes, or two parts
            have kernels that could not be told apart.
        UnsupportedFeatureError
            If there is no code, or the backend does not load what is made.
        BackendUnavailableError
            If there is no C++ compiler; the message says what to install.
        """
        compiler = host_compiler(NAME)
        parts = read_host_request(request, compiler.machine)
        with scratch_folder() as folder:
            made: list[HostOutput] = []
            headers: dict[str, None] = {}
            for index, part in enumerate(parts):
                output, read = _compiled(compiler, part, folder, index)
                made.append(output)
                headers |= dict.fromkeys(read)
            objects = [one.data for one in made]
            _check_parts(request, parts, objects)
            data = objects[0] if len(objects) == 1 else _linked(compiler, objects, folder)
        found = read_host_object(data, [parameters_symbol(index) for index in range(len(request.kernels))])
        kernels = tuple(
            ImageKernel(kernel.name, host_kernel_symbol(index), _parameters(found, index))
            for index, kernel in enumerate(request.kernels)
        )
        return DeviceImage(
            kind=IMAGE_KIND,
            data=data,
            target=request.target,
            kernels=kernels,
            headers_read=tuple(headers),
            log="\n".join(one.log.rstrip() for one in made if one.log.strip()),
            toolchain={compiler.family: compiler.version},
        )

    def environment(self, request: CompileRequest) -> Mapping[str, str]:
        """Return the headers that the parts read on this machine, with their names and contents, as one digest.

        The compiler's preprocessor is asked for them, if that is not known from the last time. It is a value that never
        comes again where the assembler may read files, or the preprocessor does not find all; then `compile` says so.
        """
        compiler = host_compiler(NAME)
        digest = hashlib.sha256()
        for part in read_host_request(request, compiler.machine):
            try:
                reading = read_host(compiler, _wanted(part, _words(compiler), ""), NAME)
            except CompileError:
                return {"headers that nobody can name": uuid.uuid4().hex}
            digest.update(f"{reading.text}{reading.headers}".encode())
        return {"headers": digest.hexdigest()}

    def fingerprint(self) -> str:
        """Return what identifies the compiler, and the text that is added to kernels."""
        digest = hashlib.sha256(b"".join(_own_headers().values())).hexdigest()
        return f"{host_compiler(NAME).fingerprint}; glue {GLUE_VERSION}, {digest}"

    def default_target(self) -> Target:
        """Return the CPU, which every machine has."""
        return Target("cpu")


def _own_headers() -> dict[str, bytes]:
    """Return what kernels and their glue include; nothing else of the launchers' headers is in reach of kernels."""
    glue = resources.files("trunnion_tvm_ffi").joinpath("include", "trunnion_glue.hpp")
    block = Path(runtime_folder(), "trunnion", "block.h")
    return {"trunnion_glue.hpp": glue.read_bytes(), "trunnion/block.h": block.read_bytes()}


# Compiling and linking ----------------------------------------------------------------------------------------------


def _compiled(compiler: HostCompiler, part: HostPart, root: Path, index: int) -> tuple[HostOutput, list[str]]:
    """Run the compiler in a part's own folder, where all files that are known lie: messages name them as they are.

    Returns
    -------
    tuple[HostOutput, list[str]]
        What it made, and which files it read besides.
    """
    folder, assembled = _folder(root, index), _ASSEMBLER_LISTS[compiler.family]
    lists = (f"-Wa,--MD,{name}" for name in assembled)
    words = (*_words(compiler), "-MD", "-MF", _DEPENDENCIES, *lists, f"-ffile-prefix-map={folder}=.")
    wanted = _wanted(part, words, _OBJECT)
    output = run_host(compiler, wanted, folder, NAME)
    listed = [f"{folder.name}/{name}" for name in (_DEPENDENCIES, *assembled)]
    return output, witness_reading(compiler, wanted, root, listed)


def _words(compiler: HostCompiler) -> tuple[str, ...]:
    return (*_COMPILING, *_FAMILY[compiler.family])


def _folder(root: Path, index: int) -> Path:
    """Make the folder of a part: as deep for the list of its headers as for its compilation, whatever ``../`` names."""
    folder = root / str(index)
    folder.mkdir()
    return folder


def _wanted(part: HostPart, words: tuple[str, ...], output: str) -> HostCompilation:
    """Return what the compiler is asked for: it finds all files that are known in its folder."""
    return HostCompilation(
        source=part.file_name,
        text=part.text,
        output=output,
        options=(*words, "-I.", *part.words, GLUE_FILE),
        inputs={**_own_headers(), **part.headers, GLUE_FILE: part.glue.encode()},
    )


def _linked(compiler: HostCompiler, objects: Sequence[bytes], folder: Path) -> bytes:
    """Return several objects as one, which can still be linked."""
    inputs = {f"part{index}.o": data for index, data in enumerate(objects)}
    wanted = HostCompilation(
        source="parts",
        text="\n".join(inputs) + "\n",
        output=_OBJECT,
        options=("-r", "-nostdlib", *inputs),
        inputs=inputs,
    )
    return run_host(compiler, wanted, folder, NAME).data


def _check_parts(request: CompileRequest, parts: Sequence[HostPart], objects: Sequence[bytes]) -> None:
    """Refuse a kernel that another part defines too: the linker would take either of two templates.

    Raises
    ------
    ProgramError
        If there is one.
    """
    if len(parts) == 1:
        return
    pointers = [[address_symbol(kernel.index) for kernel in part.kernels] for part in parts]
    found = [read_host_object(data, (), names) for data, names in zip(objects, pointers, strict=True)]
    for part, own in zip(parts, found, strict=True):
        for other, theirs in zip(parts, found, strict=True):
            shared = [
                kernel.index
                for kernel in part.kernels
                if own.pointers[address_symbol(kernel.index)] in theirs.definitions
            ]
            if other is not part and shared:
                index = shared[0]
                raise ProgramError(
                    f"{shorten(request.kernels[index].name)} is defined in {part.field} and in {other.field}: linked, "
                    "they cannot be told apart; give one another name or a namespace",
                    field=f"kernels[{index}].name",
                )


# What was made ------------------------------------------------------------------------------------------------------


def _parameters(found: HostObject, index: int) -> tuple[ImageParameter, ...]:
    """Return the parameter table that the compiler wrote into the image."""
    data = found.constants[parameters_symbol(index)]
    numbers = [int.from_bytes(data[at : at + _WORD], "little") for at in range(0, len(data), _WORD)]
    if not numbers or len(data) != _WORD * (1 + 2 * numbers[0]):
        raise CorruptArtifactError(
            "host object", f"the parameter table of kernel {index} has {len(data)} bytes"
        )
    pairs = zip(numbers[1::2], numbers[2::2], strict=True)
    return tuple(ImageParameter(ordinal, offset, size) for ordinal, (offset, size) in enumerate(pairs))
