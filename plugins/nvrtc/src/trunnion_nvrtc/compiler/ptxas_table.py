"""The options of ptxas that may be handed on to it: a closed table.

Left out on purpose: what names another architecture or another output than the program's, what reads or writes
files, what prints and makes nothing, what tools patch into kernels, and what NVRTC has an option of its own for.
"""

from __future__ import annotations

import re

__all__ = ["PTXAS_OPTIONS", "allowed_for_ptxas"]

_BOOLEAN = "true|false"
_CACHE = "[a-z]{2,8}"
_COUNT = r"\d{1,9}"

PTXAS_OPTIONS: tuple[tuple[str, str, str], ...] = (
    ("opt-level", "O", "[0-4]"),
    ("allow-expensive-optimizations", "", _BOOLEAN),
    ("fmad", "", _BOOLEAN),
    ("optimize-float-atomics", "opt-fp-atomics", ""),
    ("disable-optimizer-constants", "disable-optimizer-consts", ""),
    ("dont-merge-basicblocks", "no-bb-merge", ""),
    ("return-at-end", "ret-end", ""),
    ("register-usage-level", "regUsageLevel", "[0-9]|10"),
    ("maxrregcount", "", f"{_COUNT}|archmax|archmin"),
    ("device-function-maxrregcount", "func-maxrregcount", f"{_COUNT}|archmax|archmin"),
    ("maxntid", "", _COUNT),
    ("minnctapersm", "", _COUNT),
    ("override-directive-values", "", ""),
    ("def-load-cache", "dlcm", _CACHE),
    ("def-store-cache", "dscm", _CACHE),
    ("force-load-cache", "flcm", _CACHE),
    ("force-store-cache", "fscm", _CACHE),
    ("legacy-bar-warp-wide-behavior", "", ""),
    ("split-compile", "", r"\d{1,4}"),
    ("verbose", "v", ""),
    ("disable-warnings", "w", ""),
    ("warning-as-error", "Werror", ""),
    ("warn-on-double-precision-use", "warn-double-usage", ""),
    ("warn-on-local-memory-usage", "warn-lmem-usage", ""),
    ("warn-on-spills", "warn-spills", ""),
    ("suppress-async-bulk-multicast-advisory-warning", "", ""),
    ("suppress-double-demote-warning", "", ""),
    ("suppress-sparse-mma-advisory-info", "", ""),
    ("suppress-stack-size-warning", "", ""),
    ("suppress-debug-info", "", ""),
)
"""Name, short name, and what a value must look like, as a regular expression; empty: there is none."""

_WORDS = (
    re.compile("-O[0-4]"),
    *(
        re.compile(rf"--?(?:{name})(?:=(?:{value}))" if value else rf"--?(?:{name})")
        for long, short, value in PTXAS_OPTIONS
        for name in (long, short)
        if name
    ),
)


def allowed_for_ptxas(word: str) -> bool:
    """Whether a word is an option of the table, with a value of its form."""
    return any(pattern.fullmatch(word) for pattern in _WORDS)
