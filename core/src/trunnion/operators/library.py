"""Operators in C++: a small library beside a launcher, which torch loads, and which calls it without Python."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect, file_path
from trunnion.artifacts.publish import publish
from trunnion.codegen.cpp.build import LAUNCHER
from trunnion.codegen.cpp.image import encoded_name
from trunnion.codegen.cpp.loader import load_runtime
from trunnion.compiled import CompiledProgram
from trunnion.errors import ArtifactError, CorruptArtifactError, UnsupportedFeatureError, shorten
from trunnion.operators.library_text import LOAD, LauncherFiles, emit_operator
from trunnion.operators.schema import OperatorName, OperatorSchema
from trunnion.storage.refusals import advice, said
from trunnion.storage.scratch import scratch_folder, temporary_beside
from trunnion.toolchain.host import find_host_toolchain
from trunnion.toolchain.host_compilation import HostCompilation, compile_host
from trunnion.toolchain.torch_files import find_torch_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

__all__ = ["OPERATOR", "export_torch_op", "load_operator", "operator_files"]

OPERATOR: Final = "operator.so"
"""The file name of an operator's library."""

_SOURCE: Final = "operator.cc"
_OPTIONS: Final = (
    "-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-frandom-seed=trunnion",
    "-shared", "-Wl,--as-needed", "-Wl,-z,defs", "-Wl,-z,relro,-z,now", "-Wl,--build-id=none",
)  # fmt: skip


def export_torch_op(
    program: CompiledProgram,
    name: str,
    folder: str | PathLike[str],
    *,
    defaults: Mapping[str, Any] | None = None,
) -> Path:
    """Write a folder that makes a program an operator of torch, in C++: to load it takes neither trunnion nor Python.

    It holds ``operator.so``, which `torch.ops.load_library` or a program in C++ loads, and the launcher, which that
    loads from the same folder. The library runs with torch 2.11 and later, and asks for ``libtorch_cpu.so`` and
    ``libtvm_ffi.so``, by these names. What torch compiled ahead of time (AOTInductor) finds the operator once it is
    loaded.

    Parameters
    ----------
    program
        The program, by a backend whose launchers are C++.
    name
        What the operator is called, such as ``"mine::scale"``.
    folder
        What to write; nothing may be there, or an empty folder.
    defaults
        As `trunnion.torch_op` takes them.

    Returns
    -------
    pathlib.Path
        The library.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is none of these.
    UnsupportedFeatureError
        If the launcher is Python, or a parameter is a complex number.
    BackendUnavailableError
        If torch, or the toolchain for C++, is missing or too old.
    ArtifactError
        If something is there already, or the folder cannot be written.
    """
    expect(program, CompiledProgram, "program", "a CompiledProgram, as trunnion.compile returns it")
    named = OperatorName.of(name)
    schema = OperatorSchema.of(program.program.signature, defaults)
    final = file_path(folder).absolute()
    files = operator_files(program, named, schema, program.kind.upper())
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(final) as staging:
            _write(staging / "operator", files)
            if final.is_dir() and not any(final.iterdir()):
                final.rmdir()
            if not publish(staging / "operator", final):
                taken = f"something is at {shorten(str(final))} already; name another folder, or remove it"
                raise ArtifactError(taken)
    except OSError as error:
        raise ArtifactError(f"cannot write {shorten(str(final))}: {said(error)}; {advice(error)}") from error
    return final / OPERATOR


def operator_files(
    program: CompiledProgram, name: OperatorName, schema: OperatorSchema, key: str
) -> dict[str, bytes]:
    """Return the files of an operator in C++, by name; parameters and errors are those of `export_torch_op`.

    Parameters
    ----------
    program
        The program.
    name
        What the operator is called.
    schema
        Its schema.
    key
        torch's dispatch key, such as ``"CUDA"``.
    """
    artifact = program.artifact
    launcher = artifact.files.get(LAUNCHER)
    if launcher is None:
        hint = "compile it with a backend whose launchers are C++, or leave cpp=True out"
        raise UnsupportedFeatureError(
            f"a launcher of {program.backend}", ["an operator in C++: it is Python"], hint
        )
    files, beside = {LAUNCHER: launcher}, LauncherFiles(LAUNCHER)
    for kind, image in artifact.images.items():
        if program.kind == "cuda" and image not in launcher:
            symbols = b"".join(map(encoded_name, artifact.manifest.symbols))
            beside = LauncherFiles(LAUNCHER, f"image.{kind}", symbols)
            files[beside.image] = image
    files[OPERATOR] = _built(emit_operator(name, schema, key, beside), program.backend)
    return files


def load_operator(files: Mapping[str, bytes], name: OperatorName, plugin: str) -> None:
    """Load an operator's library into this process, and its launcher; it stays.

    Parameters
    ----------
    files
        What `operator_files` returned.
    name
        What the operator is called, for errors.
    plugin
        The backend that built the launcher.

    Raises
    ------
    CorruptArtifactError
        If they cannot be loaded.
    BackendUnavailableError
        If TVM-FFI is missing.
    """
    import torch  # noqa: PLC0415 - importing trunnion must not import torch

    load_runtime(plugin)
    with scratch_folder() as folder:
        library = _write(folder / "operator", files)
        try:
            torch.ops.load_library(library)  # type: ignore[no-untyped-call]  # torch does not annotate it
            load = ctypes.CDLL(str(library))[LOAD]
        except OSError as error:
            raise CorruptArtifactError(OPERATOR, f"cannot be loaded: {error}") from error
        load.restype = ctypes.c_char_p
        problem = load()
    if problem is not None:
        raise CorruptArtifactError(str(name), problem.decode(errors="replace"))


def _write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write the files into a new folder; return where the library lies."""
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder / OPERATOR


def _built(text: str, plugin: str) -> bytes:
    """Return the shared library of an operator's text."""
    toolchain, torch = find_host_toolchain(plugin, cuda=False), find_torch_files()
    own = str(Path(__file__).with_name("include"))
    with scratch_folder() as staging:
        folders = [own, torch.folder, *toolchain.include_folders]
        wanted = HostCompilation(
            source=_SOURCE,
            text=text,
            output=OPERATOR,
            options=(
                *_OPTIONS,
                *(f"-I{folder}" for folder in folders),
                *(f"-ffile-prefix-map={folder}=." for folder in (str(staging), *folders)),
                _SOURCE,
                torch.library,
                toolchain.ffi.library,
            ),
        )
        return compile_host(toolchain.compiler, wanted, staging, plugin)
