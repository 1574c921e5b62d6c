"""From a launcher's text and its image to one shared library."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trunnion.codegen.cpp.image import emit_image
from trunnion.codegen.cpp.library import check_library, check_object
from trunnion.codegen.cpp.relocations import check_relocations
from trunnion.codegen.cpp.runtime_parts import forget_header, renewed_object, runtime_header, runtime_object
from trunnion.errors import CompileError, CorruptArtifactError
from trunnion.storage.remembered import Grounds, remembered
from trunnion.toolchain.host import find_host_toolchain, toolchain_question
from trunnion.toolchain.host_compilation import HostCompilation, compile_host
from trunnion.toolchain.host_reading import read_host, witness_reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.contract.compiler import DeviceImage
    from trunnion.storage.remembered import Answer
    from trunnion.toolchain.host import HostToolchain
    from trunnion.toolchain.host_compiler import HostCompiler

__all__ = ["LAUNCHER", "build_launcher", "launcher_fingerprint", "launcher_options", "runtime_folder"]

LAUNCHER = "launcher.so"
"""The file name of a built launcher."""

HOST_OBJECT = "host-object"
"""The kind of image that is linked, not embedded."""

_SOURCE, _ASSEMBLY, _EMBEDDED, _OBJECT = "launcher.cc", "image.s", "image.bin", "image.o"
_EXPORTS, _DEPENDENCIES = "exports.map", "launcher.d"
# Compilers forget to hide some names (GCC those of variable templates), and a user's object has names of its own: what
# is not exported on purpose is nobody's, so that two launchers cannot share it whatever way they are loaded.
_SHOWN = "__tvm_ffi_"
_VERSION_SCRIPT = f"{{ global: {_SHOWN}*; local: *; }};\n".encode()
_WHAT = "what a launcher is built with"
_RUNTIME, _RUNTIME_SOURCE = "runtime.o", "runtime.cc"
_COMPILING = (
    "-std=c++17",
    # A launcher is checks and stores, which -O2 makes 5 ns of 38 faster and takes almost twice as long to compile.
    "-O1",
    # Floating-point expressions mean each operation by itself: no multiplication is fused with an addition, and a
    # square root is one instruction, which no errno is told of.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fPIC",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-fno-plt",
    "-frandom-seed=trunnion",
)
_FAMILY = {
    # A unique symbol is shared by every library that has it: two launchers would share the state of the headers.
    "g++": ("-fno-gnu-unique",),
    # Its assembler maps no path: told that it runs in ".", it has none to write.
    "clang++": ("-fdebug-compilation-dir", "."),
}
_PRECOMPILES = frozenset({"g++"})  # clang takes such headers by options of their own
_LINKING = (
    "-shared",
    "-Wl,--as-needed",
    "-Wl,-z,defs",
    "-Wl,-Bsymbolic",  # a launcher's own exports, also where another one's can be seen by everybody
    "-Wl,-z,relro,-z,now",
    "-Wl,--build-id=none",
    f"-Wl,--version-script={_EXPORTS}",
)
# Without the standard libraries of C++, so that a use of them is an error here, and not a dependency there.
_WITHOUT_CPP = ("-nodefaultlibs", "-lc", "-lm", "-ldl", "-lpthread", "-lgcc")


def build_launcher(
    text: str,
    image: DeviceImage | None,
    symbols: Sequence[str],
    staging: Path,
    *,
    plugin: str,
    options: Sequence[str] = (),
) -> bytes:
    """Return the shared library of a launcher, in one run of the compiler.

    What all launchers share is compiled before that, once for each toolchain, and kept for this user.

    Equal text, image, symbols and toolchain give equal bytes, wherever they are built. The library asks for
    ``libtvm_ffi.so`` by that name and brings no path to it: whoever loads a launcher has loaded that before.

    Parameters
    ----------
    text
        The launcher's C++.
    image
        The device image. One of kind ``"host-object"`` is linked; any other is embedded as it is. None: whoever loads
        the launcher hands one over (``load``), a cubin or PTX.
    symbols
        The exact names of the kernels, in the plan's order; none without an image.
    staging
        An existing folder that belongs to this build alone.
    plugin
        Who builds; named in errors.
    options
        More arguments for the compiler, behind all others: for developers, such as sanitizers.

    Raises
    ------
    CompileError
        If the compiler refuses the text.
    BackendUnavailableError
        If a part of the toolchain is missing.
    DeviceRequirementError
        If the folder cannot be written to, or its disk is full.
    ProgramError
        If a kernel's name cannot be embedded.
    """
    linked = image is not None and image.kind == HOST_OBJECT
    toolchain = find_host_toolchain(plugin, cuda=not linked)
    shared = _Shared(toolchain, plugin, tuple(options), linked)
    second = _OBJECT if linked else _ASSEMBLY
    wanted = HostCompilation(
        source=_SOURCE,
        text=text,
        output=LAUNCHER,
        options=(
            *_options(toolchain, (_SOURCE, second, _RUNTIME), linked=linked),
            *_mapped(staging, *_include_folders(toolchain)),
            *options,
        ),
        inputs={_EXPORTS: _VERSION_SCRIPT, **_image_files(image, symbols)},
    )
    runtime = shared.object(staging)
    try:
        return _linked(wanted, runtime, shared, staging)
    except CompileError:
        again = shared.object_again(runtime, staging)
        if again == runtime:
            raise
        return _linked(wanted, again, shared, staging)


def _linked(wanted: HostCompilation, runtime: bytes, shared: _Shared, staging: Path) -> bytes:
    """Return a launcher that is linked with what all share, after a look at it: nothing of it is run."""
    library = _compile(replace(wanted, inputs={**wanted.inputs, _RUNTIME: runtime}), shared, staging)

    def check(made: bytes) -> None:
        check_library(made)
        check_relocations(staging, LAUNCHER, shared.toolchain.ffi.library)

    _check(shared.toolchain.compiler, wanted, check, library)
    return library


def _check(
    compiler: HostCompiler, wanted: HostCompilation, check: Callable[[bytes], None], made: bytes
) -> None:
    """Refuse what a compiler made of which nothing can be made.

    Raises
    ------
    CompileError
        If it is of no use.
    """
    try:
        check(made)
    except CorruptArtifactError as error:
        log = f"it reported success, and what it made is of no use: {error}"
        raise CompileError(compiler.name, log, wanted.text, wanted.options, compiler.machine) from error


def _image_files(image: DeviceImage | None, symbols: Sequence[str]) -> dict[str, bytes]:
    """Return the files that bring an image into a launcher: an object, or assembler text and what it includes."""
    if image is None:
        return {_ASSEMBLY: emit_image((), None).encode()}
    if image.kind == HOST_OBJECT:
        return {_OBJECT: image.data}
    return {_ASSEMBLY: emit_image(symbols, _EMBEDDED).encode(), _EMBEDDED: image.data}


def _compile(wanted: HostCompilation, shared: _Shared, staging: Path) -> bytes:
    """Compile with the precompiled header if there is one; where that fails, as without it."""
    compiler, plugin = shared.toolchain.compiler, shared.plugin
    # GCC maps such a header to one certain address, and ends where something else lies there.
    folder = None
    with contextlib.suppress(CompileError):
        folder = shared.header()
        if folder is not None:
            faster = replace(wanted, options=(f"-I{folder}", *wanted.options))
            return _read_and_compiled(compiler, faster, staging, plugin)
    made = _read_and_compiled(compiler, wanted, staging, plugin)
    if folder is not None:  # so it was the header's fault
        forget_header(folder, shared.header_name)
    return made


def _read_and_compiled(compiler: HostCompiler, wanted: HostCompilation, folder: Path, plugin: str) -> bytes:
    """Compile, and note what the compiler says that it read."""
    listing = replace(wanted, options=(*wanted.options, "-MD", "-MF", _DEPENDENCIES))
    made = compile_host(compiler, listing, folder, plugin)
    witness_reading(compiler, listing, folder, (_DEPENDENCIES,))
    return made


def _mapped(*folders: str | Path) -> tuple[str, ...]:
    """Return the options that keep the paths of a build out of what is built."""
    return tuple(f"-ffile-prefix-map={os.fspath(folder)}=." for folder in folders)


class _Shared(NamedTuple):
    """What all launchers of a kind share; see ``include/trunnion/launch_runtime.hpp``."""

    toolchain: HostToolchain
    plugin: str
    options: tuple[str, ...]
    linked: bool

    def object(self, staging: Path) -> bytes:
        """Return the object file of what calls do not come through."""
        return runtime_object(self._identity, self._compiled_object, staging)

    def object_again(self, doubtful: bytes, staging: Path) -> bytes:
        """Return that file, compiled now, because nothing could be linked with the one that was there."""
        return renewed_object(doubtful, self._identity, self._compiled_object, staging)

    def header(self) -> Path | None:
        """Return the folder that holds the precompiled header; None where there is none."""
        if self.toolchain.compiler.family not in _PRECOMPILES:
            return None
        wanted = _runtime(self.toolchain, self.header_name, self.options, ("-c", "-x", "c++-header"))
        return runtime_header(
            self.header_name, self._identity, lambda folder, name: self._compiled(folder, wanted, name)
        )

    @property
    def header_name(self) -> str:
        """The header that is precompiled."""
        return f"{self._kind}_runtime.hpp"

    @property
    def _kind(self) -> str:
        return "host" if self.linked else "launch"

    def _identity(self) -> str:
        return f"{self._kind} {launcher_fingerprint(self.plugin, cuda=not self.linked)} {self.options}"

    def _compiled_object(self, folder: Path) -> bytes:
        wanted = _runtime(self.toolchain, f"{self._kind}_runtime.cc", self.options, ("-c",))
        made = self._compiled(folder, wanted, _RUNTIME)
        _check(self.toolchain.compiler, wanted, check_object, made)
        return made

    def _compiled(self, folder: Path, wanted: HostCompilation, output: str) -> bytes:
        named = replace(wanted, output=output, options=(*_mapped(folder), *wanted.options))
        return _read_and_compiled(self.toolchain.compiler, named, folder, self.plugin)


def _runtime(
    toolchain: HostToolchain, header: str, options: tuple[str, ...] = (), what: tuple[str, ...] = ()
) -> HostCompilation:
    """Return what makes something of a header that launchers share, wherever it is made."""
    folders = _include_folders(toolchain)
    return HostCompilation(
        source=_RUNTIME_SOURCE,
        text=f"#include <trunnion/{header}>\n",
        output=_RUNTIME,
        options=(
            *launcher_options(toolchain.compiler.family),
            *(f"-I{folder}" for folder in folders),
            *_mapped(*folders),
            *options,
            *what,
            _RUNTIME_SOURCE,
        ),
    )


def launcher_options(family: str) -> tuple[str, ...]:
    """Return the options that every launcher is compiled with.

    Parameters
    ----------
    family
        The compiler's: ``"g++"`` or ``"clang++"``.
    """
    return (*_COMPILING, *_FAMILY[family])


def launcher_fingerprint(plugin: str, *, cuda: bool = True) -> str:
    """Return what identifies all that a launcher is built with besides its text and image: part of an artifact's key.

    The headers are those that the compiler reads here, the system's too, as its preprocessor leaves them.

    Parameters
    ----------
    plugin
        Who builds; named in errors.
    cuda
        Whether launchers call the CUDA driver.

    Raises
    ------
    BackendUnavailableError
        If a part of the toolchain is missing.
    CompileError
        If the compiler cannot read the headers.
    """
    own = (_WHAT, cuda, os.fspath(runtime_folder()), _COMPILING, _FAMILY, _LINKING)
    question = repr((*own, *toolchain_question()))
    return remembered(question, lambda: _ask_fingerprint(plugin, cuda=cuda))["fingerprint"]


def _ask_fingerprint(plugin: str, *, cuda: bool) -> Answer:
    """Return what `launcher_fingerprint` does, with all that it depends on: one look at that tells that it holds."""
    toolchain = find_host_toolchain(plugin, cuda=cuda)
    options = " ".join((*launcher_options(toolchain.compiler.family), *_LINKING))
    wanted = _runtime(toolchain, f"{'launch' if cuda else 'host'}_runtime.cc")
    found = toolchain.grounds | Grounds(folders=frozenset({__file__}))
    reading = read_host(toolchain.compiler, wanted, plugin, kept=not found.lasting)
    said = f"{toolchain.fingerprint()}; options: {options}; headers: {reading.text}"
    return (found | reading.grounds).answer({"fingerprint": said})


def runtime_folder() -> Path:
    """Return the folder that the headers of launchers are included from."""
    return Path(__file__).with_name("include")


def _include_folders(toolchain: HostToolchain) -> tuple[str, ...]:
    return (os.fspath(runtime_folder()), *toolchain.include_folders)


def _options(toolchain: HostToolchain, inputs: tuple[str, ...], *, linked: bool) -> tuple[str, ...]:
    """Return the arguments that a build has whatever its text: options, files and libraries, in the linker's order."""
    include = tuple(f"-I{folder}" for folder in _include_folders(toolchain))
    # A linked object is the user's own C++ and may need its libraries; the grid loop starts threads.
    libraries = (toolchain.ffi.library, *(("-lpthread",) if linked else _WITHOUT_CPP))
    return (*launcher_options(toolchain.compiler.family), *_LINKING, *include, *inputs, *libraries)
