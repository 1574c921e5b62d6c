"""How messages show what a user wrote: values and names bounded, the one that was probably meant, numbered lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MOST_BITS", "describe", "listed", "nearest", "numbered", "shorten"]

MOST_BITS = 256
"""Bits of an integer that is shown as it is: Python refuses to print one of thousands of digits."""

_NAME_LIMIT = 80
_MOST_LISTED = 12


def describe(value: object) -> str:
    """Return what a value is, for a message: its type, and the value itself if that is short and harmless."""
    if type(value) is int:
        bits = value.bit_length()
        return str(value) if bits <= MOST_BITS else f"an integer of {bits} bits"
    name = type(value).__name__
    return f"{name} {shorten(str(value))}" if type(value) in (bool, float, str) else name


def shorten(name: str) -> str:
    """Quote a name, any text that a user chose, for an error message; a very long one is cut in the middle."""
    if len(name) > _NAME_LIMIT:
        half = _NAME_LIMIT // 2
        return f"{ascii(name[:half])[:-1]}...{ascii(name[-half:])[1:]} ({len(name)} characters)"
    return ascii(name)


def listed(names: Iterable[str], most: int = _MOST_LISTED) -> str:
    """Return names that a user chose, quoted and in their order, for an error message; of very many the first ones."""
    every = [*names]
    hidden = len(every) - most
    shown = ", ".join(shorten(name) for name in every[:most])
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that ``name`` was probably meant to be; empty if none is near.

    White space around a name, its case, and hyphens for underscores, make no difference.

    Parameters
    ----------
    name
        What a user wrote.
    known
        What would have been allowed.
    """
    import difflib  # noqa: PLC0415 - for a message: importing trunnion must not pay for it

    spelled = {_folded(one): one for one in known}
    found = difflib.get_close_matches(_folded(name[:_NAME_LIMIT]), spelled, 1)
    return spelled[found[0]] if found else ""


def numbered(source: str, line: int, radius: int | None = None) -> str:
    """Return a text with its lines numbered from 1, one of them marked with ``>``.

    Parameters
    ----------
    source
        The text.
    line
        The line that is marked, counted from 1; 0: none.
    radius
        How many lines to show on each side of it; None for all of the text.
    """
    lines, centre = source.splitlines(), line or 1
    first = 1 if radius is None else max(1, centre - radius)
    last = len(lines) if radius is None else min(len(lines), centre + radius)
    width = len(str(last))
    return "\n".join(
        f"{'>' if number == line else ' '} {number:>{width}} | {lines[number - 1]}"
        for number in range(first, last + 1)
    )


def _folded(name: str) -> str:
    return name.strip().lower().replace("-", "_")
