"""The device code of a file that also has functions of the host, which NVRTC refuses. Lines keep their numbers."""

from __future__ import annotations

_END = "}"
"""The line that ends a function, in files whose functions begin and end in the first column."""


def without_functions(text: str, *openings: str) -> str:
    """Return a text without some functions: each goes from the line that begins so to the next that is a brace alone.

    Raises
    ------
    ValueError
        If not exactly one line begins so, or no line ends it: the text is not the one that was described.
    """
    lines = text.split("\n")
    for opening in openings:
        starts = [number for number, line in enumerate(lines) if line.startswith(opening)]
        if len(starts) != 1:
            raise ValueError(f"{len(starts)} lines begin with {opening!r}, expected one")
        end = lines.index(_END, starts[0])
        lines[starts[0] : end + 1] = [""] * (end + 1 - starts[0])
    return "\n".join(lines)


def before(text: str, opening: str) -> str:
    """Return a text up to the one line that begins so.

    Raises
    ------
    ValueError
        If not exactly one line begins so.
    """
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith(opening)]
    if len(starts) != 1:
        raise ValueError(f"{len(starts)} lines begin with {opening!r}, expected one")
    return "\n".join(lines[: starts[0]])
