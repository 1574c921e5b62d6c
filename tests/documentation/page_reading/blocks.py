"""The code of a page, as a program."""

from __future__ import annotations

import re

__all__ = ["page_source", "python_blocks"]

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks(text: str) -> list[tuple[int, str]]:
    """Return each block with the number of the line that it begins on."""
    return [(text[: found.start(1)].count("\n") + 1, found[1]) for found in _BLOCK.finditer(text)]


def page_source(name: str, text: str) -> str:
    """Return a program that runs a page's blocks in one namespace, as files of their own for tracebacks."""
    steps = [
        f"exec(compile({chr(10) * (line - 1) + code!r}, {name!r}, 'exec'), names)"
        for line, code in python_blocks(text)
    ]
    return "\n".join(["names = {'__name__': '__main__'}", *steps])
