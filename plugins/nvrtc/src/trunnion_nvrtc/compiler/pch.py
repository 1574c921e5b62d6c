"""Precompiled headers, for as long as this process lives.

NVRTC reads a precompiled header only in the process that made it, and does not look whether a header has changed
since, on disk or in memory: left alone, it compiles the old text and says nothing. So each state of the headers has
a folder of its own here, named by a hash of all of it.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.code import DeviceCode
    from trunnion_nvrtc.compiler.headers import ReachableHeaders

__all__ = ["pch_options"]


def pch_options(code: DeviceCode, headers: ReachableHeaders, options: Sequence[str]) -> tuple[str, ...]:
    """Return the options with which NVRTC makes or uses a precompiled header.

    Parameters
    ----------
    code
        The source, and its headers in memory.
    headers
        Every header that it could include.
    options
        Everything else that NVRTC is given.
    """
    # The seed is each source's own, and no byte of an image depends on the one that a header was compiled with.
    lasting = tuple(option for option in options if not option.startswith("--frandom-seed="))
    state = repr((code.includes, headers.files, headers.versions, headers.fresh_digests(), lasting))
    folder = _kept() / hashlib.sha256(state.encode("utf-8", "replace")).hexdigest()[:32]
    folder.mkdir(exist_ok=True)
    return ("--pch", f"--pch-dir={folder}", "--pch-messages=false", "--pch-verbose=false")


def _kept() -> Path:
    """Return the folder of this process, or a new one where somebody removed it, as cleaners of temporary files do."""
    folder = _folder(os.getpid())
    if not folder.is_dir():
        _folder.cache_clear()
        folder = _folder(os.getpid())
    return folder


@functools.cache
def _folder(process: int) -> Path:
    """Return the folder of a process; a child that was forked has its own."""
    folder = tempfile.mkdtemp(prefix="trunnion-pch-")
    atexit.register(_remove, folder, process)
    return Path(folder)


def _remove(folder: str, process: int) -> None:
    # A forked child inherits what its parent wants done at its end.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
