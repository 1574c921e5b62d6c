"""Levels of processors: which instructions each adds, and which of them this machine's processor lacks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

__all__ = ["LEVELS", "lacking_features", "level_features"]

_FEATURES: Final = {
    "x86-64-v2": ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "fma"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}
"""What each level adds, as ``__builtin_cpu_supports`` names it (x86-64 psABI, "Micro-Architecture Levels")."""

LEVELS: Final = ("x86-64", *_FEATURES)
"""Architectures of the CPU that can be told apart when a program runs, the least first."""

_KERNEL_NAMES: Final = {"sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2", "bmi": "bmi1"}
_LISTED: Final = Path("/proc/cpuinfo")  # it lists those alone that the system lets programs use


def level_features(arch: str) -> tuple[str, ...]:
    """Return all that code for an architecture may use beyond what every processor has.

    Parameters
    ----------
    arch
        One of `LEVELS`; nothing is known of another one.
    """
    known = LEVELS[: LEVELS.index(arch) + 1] if arch in LEVELS else ()
    return tuple(feature for level in known for feature in _FEATURES.get(level, ()))


def lacking_features(arch: str) -> tuple[str, ...]:
    """Return what of `level_features` this machine lacks; all of it where the system does not list what it has.

    Parameters
    ----------
    arch
        One of `LEVELS`.
    """
    try:
        found = re.search(r"^flags\s*:(.*)$", _LISTED.read_text("utf-8", "replace"), re.MULTILINE)
    except OSError:
        found = None
    here = set(found[1].split()) if found else set()
    return tuple(one for one in level_features(arch) if _KERNEL_NAMES.get(one, one) not in here)
