"""The pages' tables that say what became of another library's names."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

__all__ = ["named", "page", "places"]

_DOCS = Path(__file__).resolve().parents[3] / "docs"
_ROW = re.compile(r"^\| `(\w+)` \| `(trunnion\w*\.[\w.]+)` \| .+ \|$", re.MULTILINE)


def page(name: str) -> str:
    """Return the text of a page."""
    return (_DOCS / f"{name}.md").read_text("utf-8")


def places(text: str) -> list[tuple[str, str]]:
    """Return the rows of a page that say where a name of theirs is here: their name, and the dotted path of ours."""
    return _ROW.findall(text)


def named(path: str) -> object:
    """Return what a dotted path names: a module, or something in one.

    Raises
    ------
    AssertionError
        If there is no such module.
    AttributeError
        If there is no such thing in it.
    """
    words = path.split(".")
    for end in range(len(words), 0, -1):
        try:
            found = import_module(".".join(words[:end]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, words[end:], found)
    raise AssertionError(path)
