"""Whether a library could be loaded: the dynamic loader resolves all of it in a process of its own, and runs nothing.

``LD_TRACE_LOADED_OBJECTS`` and its relatives let glibc's loader map a program with its libraries, relocate them, say
what it misses, and end ("ldd -r" in the manual of ldd is a script around it). Python's own program is the one: it finds
libraries as this process does.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import struct
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError, shorten
from trunnion.storage.refusals import OTHER_FOLDER, is_noexec, refusals, refuse_noexec
from trunnion.storage.scratch import memory_file

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_relocations"]

_TRACED: Final = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "yes", "LD_BIND_NOW": "yes"}
_TALKATIVE: Final = frozenset({"LD_DEBUG", "LD_DEBUG_OUTPUT", "LD_VERBOSE"})
_SECONDS: Final = 60.0
_MISSING: Final = "=> not found"
_UNDEFINED: Final = re.compile(r"undefined symbol: ([^\s,]+)\s")
_GLIBC: Final = b"/ld-linux"
_PROGRAM_HEADERS, _INTERPRETER = struct.Struct("<32xQ14xHH"), 3
_SEGMENT = struct.Struct("<II5Q")
_MOST_HEADERS = 1 << 16


def check_relocations(folder: Path, name: str, needed: str) -> None:
    """Refuse a library that cannot be loaded: a symbol or a library is missing, or its relocations are broken.

    It takes some 5 ms. Nothing is found out where the loader is not glibc's.

    Parameters
    ----------
    folder
        The folder that it lies in; it belongs to the caller.
    name
        Its plain name.
    needed
        The path of a library that is in every process that loads it.

    Raises
    ------
    CorruptArtifactError
        If the loader refuses it.
    DeviceRequirementError
        If no process can be started, or there is no way to load code from a folder that is mounted ``noexec``.
    """
    program = _program()
    if program is None:
        return
    with refusals("a process that looks at a launcher"):
        beside = folder / Path(needed).name
        if not beside.is_symlink():
            beside.symlink_to(needed)  # the variable takes no path with a space or a colon
        with _preloadable(folder, name) as (path, descriptors):
            problems = _complaints(program, folder, (f"./{beside.name}", path), descriptors)
        if problems:
            usual = set(_complaints(program, folder, (f"./{beside.name}",)))
            problems = [one for one in problems if one not in usual]
    if problems:
        raise CorruptArtifactError(name, f"cannot be loaded: {shorten('; '.join(problems))}")


@contextmanager
def _preloadable(folder: Path, name: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield a path that a library can be loaded by, as a launcher is, and what descriptors it needs.

    Raises
    ------
    DeviceRequirementError
        If there is none.
    """
    if not is_noexec(folder):
        yield f"./{name}", ()
        return
    if not hasattr(os, "memfd_create"):
        refuse_noexec(folder, OTHER_FOLDER)
    with memory_file(name, (folder / name).read_bytes()) as (descriptor, path):
        yield path, (descriptor,)


def _complaints(
    program: str, folder: Path, paths: tuple[str, ...], descriptors: tuple[int, ...] = ()
) -> list[str]:
    """Return what the loader does not like."""
    kept = {variable: value for variable, value in os.environ.items() if variable not in _TALKATIVE}
    before = kept.get("LD_PRELOAD", "")
    preloaded = " ".join(filter(None, (before, *paths)))
    try:
        done = subprocess.run(
            [program],
            cwd=folder,
            env={**kept, **_TRACED, "LD_PRELOAD": preloaded},
            stdin=subprocess.DEVNULL,
            pass_fds=descriptors,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [f"the loader did not come to an end within {_SECONDS:g} s"]
    said = done.stdout.decode("utf-8", "replace").splitlines()
    found = [line.strip() for line in said if _MISSING in line]
    warned = done.stderr.decode("utf-8", "replace").splitlines()
    found += [line.strip() for line in warned if line.strip() and not _is_here(line)]
    if done.returncode:
        found.append(f"the loader ended with status {done.returncode}")
    return list(dict.fromkeys(found))


def _is_here(line: str) -> bool:
    """Whether a line misses a symbol that this process has for all its libraries, such as a sanitizer's."""
    symbol = _UNDEFINED.match(line)
    return symbol is not None and hasattr(ctypes.CDLL(None), symbol[1])


@functools.cache
def _program() -> str | None:
    """Return the program of this process, if glibc's loader starts it: any other one would run."""
    try:
        path = Path("/proc/self/exe").readlink()
        with path.open("rb") as file:
            head = file.read(_MOST_HEADERS)
            at, size, count = _PROGRAM_HEADERS.unpack_from(head, 0)
            segments = [_SEGMENT.unpack_from(head, at + size * index) for index in range(count)]
            offset, length = next((one[2], one[5]) for one in segments if one[0] == _INTERPRETER)
            file.seek(offset)
            return str(path) if _GLIBC in file.read(length) else None
    except (OSError, struct.error, StopIteration):
        return None
