"""Texts of C++ launchers that were compiled before: their objects, kept for this user by all that they are made from.

Backends whose launchers are of one text share them, too: images are linked to them, or lie beside them.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import re
import shutil
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING
from unittest.mock import patch

from trunnion.codegen.cpp import build
from trunnion.errors import BackendUnavailableError
from trunnion.image.host_object import read_host_object
from trunnion.storage.user_caches import user_caches
from trunnion.toolchain.build_cache import kept_file
from trunnion.toolchain.host import find_host_toolchain
from trunnion.toolchain.host_compilation import compile_host

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trunnion.toolchain.host_compilation import HostCompilation
    from trunnion.toolchain.host_compiler import HostCompiler

__all__ = ["kept_launchers", "launcher_folder", "object_key", "object_wanted", "trim"]

_MOST_BYTES = 128 << 20
_MOST_FOLDERS = 8
_OBJECT = "launcher.o"
_LINKS = re.compile(r"-shared$|-nodefaultlibs$|-l|-Wl,|/.*\.so$")
"""The arguments that are the linker's."""
_WHERE = ("-I", "-ffile-prefix-map=")
"""What arguments begin with that say where headers are, and that this is not written down."""
_ENTRIES = "??/" + "?" * 62  # what is being built has another name


def launcher_folder() -> Path | None:
    """Return where launchers are kept by default; None if this user has no home."""
    try:
        return user_caches() / "conformance"
    except OSError:
        return None


@contextlib.contextmanager
def kept_launchers(folder: Path | None) -> Iterator[None]:
    """Compile no launcher's text in the block whose object lies in the folder, and keep there those that are compiled.

    Each is still linked with its image. Equal text and toolchain give equal bytes, which is a law of its own: whoever
    checks it, or how a build fails, builds outside of such a block.

    Parameters
    ----------
    folder
        Where they are kept: for this user alone, by any number of processes. None: each launcher is compiled.
    """
    if folder is None:
        yield
        return
    with patch.object(build, "compile_host", functools.partial(_built, folder)):
        yield


def object_wanted(wanted: HostCompilation) -> HostCompilation:
    """Return the part of a launcher's build that compiles its text, without the image and the linking."""
    compiling = (option for option in wanted.options if not (option in wanted.inputs or _LINKS.match(option)))
    return replace(wanted, output=_OBJECT, options=(*compiling, "-c"), inputs={})


def object_key(compiler: HostCompiler, wanted: HostCompilation, toolchain: str) -> str:
    """Return what identifies a compiled object, wherever it is compiled and the toolchain is installed.

    Parameters
    ----------
    compiler
        The compiler.
    wanted
        What it is asked for: `object_wanted`.
    toolchain
        What identifies the headers.
    """
    options = (option for option in wanted.options if not option.startswith(_WHERE))
    said = (toolchain, compiler.fingerprint, *compiler.command, wanted.source, wanted.text, *options)
    digest = hashlib.sha256()
    for part in (text.encode("utf-8", "surrogatepass") for text in said):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _built(cache: Path, compiler: HostCompiler, wanted: HostCompilation, folder: Path, plugin: str) -> bytes:
    """Return what `compile_host` returns: of a launcher, linked with a kept object."""
    if "-c" in wanted.options:  # what all launchers share, which is kept already
        return compile_host(compiler, wanted, folder, plugin)
    options = tuple(_OBJECT if option == wanted.source else option for option in wanted.options)
    inputs = {**wanted.inputs, _OBJECT: _object(cache, compiler, object_wanted(wanted), folder, plugin)}
    made = compile_host(compiler, replace(wanted, options=options, inputs=inputs), folder, plugin)
    for listed in (folder / name for flag, name in pairwise(options) if flag == "-MF"):
        if not listed.exists():  # of an object that was there nothing was read
            listed.write_text("")
    return made


def _object(cache: Path, compiler: HostCompiler, wanted: HostCompilation, folder: Path, plugin: str) -> bytes:
    """Return an object, from the cache if it is there."""

    def current_key() -> str:
        return object_key(
            compiler, wanted, build.launcher_fingerprint(plugin, cuda=_has_cuda(wanted, plugin))
        )

    def make(kept: Path) -> None:
        made = compile_host(compiler, wanted, folder, plugin)
        if current_key() != key:  # a header changed meanwhile: nobody can tell which one was compiled
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        (kept / _OBJECT).write_bytes(made)

    key = current_key()
    try:
        _trim_once(cache)
        # In several folders, so that none holds thousands.
        path = kept_file(cache / key[:2], key[2:], _OBJECT, make, check=_check)
        os.utime(path.parent)
        return path.read_bytes()
    except OSError:  # a cache that cannot be used, or from which another process just took the object
        return compile_host(compiler, wanted, folder, plugin)


def _has_cuda(wanted: HostCompilation, plugin: str) -> bool:
    """Whether a launcher includes CUDA's headers: one for the CPU has no folder of theirs, and needs none."""
    try:
        found = find_host_toolchain(plugin).cuda
    except BackendUnavailableError:
        return False
    return found is not None and f"-I{found.folder}" in wanted.options


def _check(data: bytes) -> None:
    """Refuse what is no whole object: a compiler may report success and have written half of it."""
    read_host_object(data)


@functools.lru_cache(_MOST_FOLDERS)
def _trim_once(cache: Path) -> None:
    trim(cache, _MOST_BYTES)


def trim(folder: Path, most: int) -> None:
    """Take out the objects that were used least recently if there are too many, until half of what may be is left.

    Parameters
    ----------
    folder
        Where they are kept.
    most
        How many bytes they may have.
    """
    found = []
    for entry in folder.glob(_ENTRIES):
        with contextlib.suppress(OSError):  # another process takes it out
            found.append(
                (entry.stat().st_mtime_ns, sum(file.stat().st_size for file in entry.iterdir()), entry)
            )
    kept = sum(nbytes for _, nbytes, _ in found)
    goal = most // 2 if kept > most else kept
    for _, nbytes, entry in sorted(found):
        if kept <= goal:
            break
        shutil.rmtree(entry, ignore_errors=True)
        kept -= nbytes
