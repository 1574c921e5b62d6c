"""JSON over lines, as Python's own `json` writes it with an indent of 1.

With an indent that library leaves its compiled code, and takes four calls of Python for each value.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["over_lines"]

_QUOTED = json.encoder.encode_basestring_ascii
_WORDS = {None: "null", True: "true", False: "false"}


def over_lines(value: Any, *, sort_keys: bool = False, depth: int = 1) -> str:
    """Return a value as JSON text: ``json.dumps(value, indent=1, sort_keys=sort_keys, allow_nan=False)``.

    Parameters
    ----------
    value
        Dictionaries of texts, lists, tuples, texts, numbers, truth values and None.
    sort_keys
        Whether members come by name, else in their order.
    depth
        How far what is in it stands from the left.

    Raises
    ------
    ValueError
        If a number is none that JSON has.
    """
    kind = type(value)
    if kind is str:
        return _QUOTED(value)
    if kind is dict:
        members = sorted(value.items()) if sort_keys else value.items()
        parts = [
            f"{_QUOTED(name)}: {over_lines(one, sort_keys=sort_keys, depth=depth + 1)}"
            for name, one in members
        ]
        return _enclosed("{", parts, "}", depth)
    if kind is list or kind is tuple:
        return _enclosed(
            "[", [over_lines(one, sort_keys=sort_keys, depth=depth + 1) for one in value], "]", depth
        )
    if kind is int:  # by far the most of what is left
        return int.__repr__(value)
    if value is None or kind is bool:
        return _WORDS[value]
    return json.dumps(value, allow_nan=False)


def _enclosed(opening: str, parts: list[str], closing: str, depth: int) -> str:
    if not parts:
        return opening + closing
    line = "\n" + " " * depth
    return f"{opening}{line}{f',{line}'.join(parts)}{line[:-1]}{closing}"
