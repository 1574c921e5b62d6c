"""Load launchers into this process, through TVM-FFI: the one file of core that imports it."""

from __future__ import annotations

import functools
import hashlib
import os
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trunnion.callers import warn
from trunnion.errors import BackendUnavailableError, CorruptArtifactError, DeviceRequirementError
from trunnion.messages import shorten
from trunnion.storage.refusals import OTHER_FOLDER, is_noexec, refusals, refuse_noexec
from trunnion.storage.scratch import memory_file, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LEAST_RUNTIME", "Exports", "Libraries", "load_library", "load_runtime", "process_libraries"]

LEAST_RUNTIME = "0.1.11"
"""The oldest apache-tvm-ffi that launchers can be loaded with."""

_LAUNCHER = "launcher.so"
_CLOSE_SOME = "close programs that are not called any more, or raise vm.max_map_count"
_LOOKS_EVERY = 64
"""After so many libraries it is asked how many mappings the process has: the answer takes a millisecond."""


class Exports:
    """The functions of one program of a loaded library, by name.

    Parameters
    ----------
    find
        The library's function that gives them.
    """

    def __init__(self, find: Any) -> None:
        self._find = find

    def __call__(self, name: str) -> Any:
        """Return a function.

        Raises
        ------
        CorruptArtifactError
            If the library has none of that name.
        """
        found = self._find(name.encode())
        if found is None:
            raise CorruptArtifactError(_LAUNCHER, f"exports no function {shorten(name)}")
        # Whatever the user's default is: `close` waits for launches of threads that want Python's lock back.
        found.release_gil = True
        return found


class _Library:
    """A library in this process. Its code stays while one of its programs has a function, or is not closed.

    Functions of programs hold no reference to it: TVM-FFI keeps it, also while Python comes to its end, when whatever
    is left goes in any order.
    """

    def __init__(self, module: Any, let_go: Callable[[Any], None]) -> None:
        self._module, self._let_go = module, let_go
        try:
            self._open, self._retire = (module.get_function(name) for name in ("open", "retire"))
        except AttributeError as error:
            raise CorruptArtifactError(_LAUNCHER, f"is no launcher of this version: {error}") from error
        self._open.release_gil = self._retire.release_gil = False  # each takes less than Python's lock

    def open(self) -> Exports | None:
        """Return a new program of it; None: it is about to be unloaded."""
        find = self._open()
        return None if find is None else Exports(find)

    def retire(self) -> bool:
        """Return whether no program of it is left; it makes none from then on, and goes with this object."""
        retired = bool(self._retire())
        if retired:
            self._let_go(self._module)
        return retired


class Libraries:
    """The launchers' libraries in this process: one for equal bytes, unloaded when nothing can run its code any more.

    There is no lock here, so a thread, a signal's handler or a forked child never waits for another: each step leaves a
    state from which any other may go on. Whether a library goes, it decides itself, in one step (`_Library.retire`).
    """

    def __init__(self) -> None:
        self._known: dict[bytes, _Library] = {}
        self._kept: set[_Library] = set()

    def open(self, data: bytes, plugin: str) -> Exports:
        """Return a new program of a library, loaded if it is not; errors are those of `load_library`."""
        digest = hashlib.sha256(data).digest()
        while True:
            library = self._known.get(digest)
            program = None if library is None else library.open()
            if program is not None:
                return program
            library = _load(data, plugin, len(self._kept))
            self._kept.add(library)
            self._known[digest] = library  # where another thread did this too, there are two of them

    def unload(self) -> None:
        """Unload each library that no program is left of."""
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            return  # what frees a program's last function may not have returned from the library yet
        for digest, library in tuple(self._known.items()):
            if library.retire():
                self._known.pop(digest, None)
        for library in tuple(self._kept):
            if library.retire():
                self._kept.discard(library)

    def __len__(self) -> int:
        """How many are loaded."""
        return len(self._kept)


@functools.cache
def process_libraries() -> Libraries:
    """Return the libraries of this process."""
    return Libraries()


process_libraries()  # made here, while the import's lock is held: two threads that ask at once get the same


def load_library(library: bytes, plugin: str) -> Exports:
    """Load a shared library; return the functions of a new program of it. It is native code: the caller trusts it.

    It is loaded from a file of its own, deleted at once: what runs is what was verified. Where ``TMPDIR`` is mounted
    ``noexec``, that file is one in memory. Equal bytes are loaded once,
    and two programs never share what they hold. It leaves the process when all of its programs are closed, and their
    functions and bound launches gone (`Libraries.unload`).

    Parameters
    ----------
    library
        The bytes of the library.
    plugin
        Who asks; named in errors.

    Raises
    ------
    BackendUnavailableError
        If TVM-FFI is not installed.
    CorruptArtifactError
        If the bytes are no library that can be loaded here.
    DeviceRequirementError
        If there is no folder that it could be loaded from, or this process has as many mappings of memory as it may.
    """
    return process_libraries().open(library, plugin)


def load_runtime(plugin: str) -> Any:
    """Load TVM-FFI's own library, which each launcher asks for; return its Python module.

    Raises
    ------
    BackendUnavailableError
        If it is not installed.
    """
    try:
        import tvm_ffi as ffi  # noqa: PLC0415 - only whoever loads a launcher needs it
    except ImportError as error:
        advice = f"apache-tvm-ffi is not installed; pip install 'apache-tvm-ffi>={LEAST_RUNTIME}'"
        raise BackendUnavailableError(plugin, plugin, advice, str(error)) from error
    return ffi


def _load(library: bytes, plugin: str, before: int) -> _Library:
    ffi = load_runtime(plugin)
    if before % _LOOKS_EVERY == _LOOKS_EVERY - 1:
        _warn_of_mappings()
    with scratch_folder() as folder:
        file = folder / _LAUNCHER
        with refusals("a folder to load a launcher from", OTHER_FOLDER):
            file.write_bytes(library)
        try:
            return _Library(
                _module(ffi.load_module, file, library), ffi.get_global_func("ffi.ModuleGlobalsRemove")
            )
        except UnicodeEncodeError as error:  # of TVM-FFI's own
            requirement = "a folder to load a launcher from whose name is UTF-8"
            raise DeviceRequirementError(requirement, shorten(str(folder)), OTHER_FOLDER) from error
        except (RuntimeError, OSError) as error:
            if not hasattr(os, "memfd_create"):
                refuse_noexec(folder, OTHER_FOLDER)
            count, most = _mappings()
            if most - count < _OF_A_LIBRARY:
                got = f"{count} of {most} mappings in use (vm.max_map_count)"
                raise DeviceRequirementError(
                    "memory that a launcher is mapped to", got, _CLOSE_SOME
                ) from error
            raise CorruptArtifactError(_LAUNCHER, f"cannot be loaded: {error}") from error


def _module(load_module: Callable[[Path], Any], file: Path, library: bytes) -> Any:
    """Load a library from its file; where no code can be loaded from that, from a copy in memory.

    Parameters
    ----------
    load_module
        TVM-FFI's.
    file
        Where the library lies.
    library
        Its bytes.

    Raises
    ------
    RuntimeError, OSError
        If it cannot be loaded.
    """
    try:
        return load_module(file)
    except (RuntimeError, OSError):
        if not is_noexec(file.parent) or not hasattr(os, "memfd_create"):
            raise
    with memory_file(_LAUNCHER, library) as (_, path):
        file.unlink()
        file.symlink_to(path)  # by the name that TVM-FFI knows a library by
        return load_module(file)


_OF_A_LIBRARY = 16  # more mappings than one takes


def _mappings() -> tuple[int, int]:
    """Return how many mappings of memory this process has, and may have."""
    try:
        with Path("/proc/self/maps").open("rb") as maps:
            count = sum(chunk.count(b"\n") for chunk in iter(functools.partial(maps.read, 1 << 16), b""))
        return count, int(Path("/proc/sys/vm/max_map_count").read_text("ascii"))
    except (OSError, ValueError):  # a system that does not say has its own ways
        return 0, 1 << 62


def _warn_of_mappings() -> None:
    count, most = _mappings()
    if count >= most * 9 // 10:
        text = f"{count} of {most} mappings of memory are in use (vm.max_map_count), and a launcher takes five or six"
        warn(f"{text}: {_CLOSE_SOME}", RuntimeWarning)
