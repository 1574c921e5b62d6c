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
_EQUALITY = (ast.In, ast.NotIn, ast.Eq, ast.NotEq)


def foreign_values(module: Module) -> Iterator[str]:
    """Yield where a value is asked for its ``repr``, or its type for a name or for equality.

    `trunnion.messages` and `trunnion.plain` do it without any code of the value's. Seen are the forms ``{x!r}``,
    ``repr(x)``, ``type(x).__name__`` and ``type(x) in (a, b)``, which asks a metaclass. Plain ``{x}`` and
    ``str(x)`` are not: most are of numbers and texts of our own, and of which class an ``x`` is, no text says; make
    stress tries those.
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
        case ast.Compare(left=ast.Call(func=ast.Name(id="type")), ops=[compared]):
            return isinstance(compared, _EQUALITY)
        case ast.Attribute(value=ast.Call(func=ast.Name(id="type")), attr=name):
            return name in _NAMES
    return False
