"""The numbers of a version, which compare as versions do."""

from __future__ import annotations

import re

__all__ = ["version_numbers"]

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with: of ``"2.10.0+cpu"`` 2, 10 and 0."""
    found = _NUMBERS.match(version)
    return tuple(map(int, found[0].split("."))) if found else ()
