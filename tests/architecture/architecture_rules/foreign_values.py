"""How a value may get into a message: never by its own ``repr``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from architecture_rules.source import Module

__all__ = ["foreign_values"]

_SPELLERS = frozenset({"repr", "ascii"})
_NAMES = frozenset({"__name__", "__qualname__"})


def foreign_values(module: Module) -> Iterator[str]:
    """Yield where a value is asked for its ``repr``, or its type for a name, instead of `trunnion.wording`.

    Seen are the forms ``{x!r}``, ``repr(x)`` and ``type(x).__name__``. Plain ``{x}`` and ``str(x)`` are not: most
    are of numbers and texts of our own, and of which class an ``x`` is, no text says; make stress tries those.
    """
    for node in ast.walk(module.tree):
        if _asks(node):
            yield f"{module.path}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)}"


def _asks(node: ast.AST) -> bool:
    match node:
        case ast.FormattedValue(conversion=conversion):
            return conversion != -1
        case ast.Call(func=ast.Name(id=name)):
            return name in _SPELLERS
        case ast.Attribute(value=ast.Call(func=ast.Name(id="type")), attr=name):
            return name in _NAMES
    return False
