"""The C++ standard library of this process: which versions of symbols it has."""

from __future__ import annotations

import ctypes
import functools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError
from trunnion.image.shared_object import defined_versions
from trunnion.version_numbers import version_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["installed_libstdcxx", "newest_libstdcxx"]

_LIBRARY: Final = "libstdc++.so.6"
_INSIDE: Final = "__gxx_personality_v0"  # a function of each
_VERSION: Final = re.compile(r"GLIBCXX_([0-9]{1,6}(?:\.[0-9]{1,6}){0,3})")


class _Found(ctypes.Structure):
    """What `dladdr` tells (``Dl_info``)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def newest_libstdcxx(versions: Iterable[str]) -> str:
    """Return the newest of libstdc++'s versions among those of symbols, such as ``"3.4.30"``; empty: there is none."""
    found = [one[1] for one in map(_VERSION.fullmatch, versions) if one]
    return max(found, key=version_numbers, default="")


@functools.cache
def installed_libstdcxx() -> str:
    """Return the newest version of symbols in the libstdc++ of this process, which is loaded; empty: there is none.

    It is what a library gets that asks for it here: environments bring their own ones, older or newer than the
    system's.
    """
    try:
        inside = ctypes.cast(ctypes.CDLL(_LIBRARY)[_INSIDE], ctypes.c_void_p)
        found = _Found()
        if not ctypes.CDLL(None).dladdr(inside, ctypes.byref(found)) or not found.file:
            return ""
        return newest_libstdcxx(defined_versions(_LIBRARY, Path(os.fsdecode(found.file)).read_bytes()))
    except (OSError, AttributeError, CorruptArtifactError):
        return ""
