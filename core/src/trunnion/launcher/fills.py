"""How a repeated element becomes writes of 1, 2 or 4 bytes, which is all that the driver can repeat."""

from __future__ import annotations

from trunnion.launcher.facade import FillStep

__all__ = ["fill_steps"]

_WORD = 4


def fill_steps(pattern: bytes) -> tuple[tuple[FillStep, ...], int]:
    """Return the writes that repeat an element, and how many numbers each of them writes for one element.

    An element whose words are equal is one dense write; otherwise each word is a column of its own.

    Parameters
    ----------
    pattern
        One element's bytes: 1, 2, 4, 8 or 16.
    """
    width = min(len(pattern), _WORD)
    words = [pattern[start : start + width] for start in range(0, len(pattern), width)]
    values = [int.from_bytes(word, "little") for word in words]
    if len(set(values)) == 1:
        return (FillStep(values[0], width, 0, width),), len(words)
    columns = (FillStep(value, width, index * width, len(pattern)) for index, value in enumerate(values))
    return tuple(columns), 1
