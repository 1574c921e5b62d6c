"""What must be documented: public functions and classes, and every field of a dataclass."""

from __future__ import annotations

import ast
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from architecture_rules.source import Module

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def docstrings(module: Module) -> Iterator[str]:
    """Yield modules, public functions, public classes and their public methods that have no docstring."""
    if ast.get_docstring(module.tree) is None:
        yield f"{module.path}: no docstring"
    yield from _docstrings(module, module.tree)


def dataclass_fields(module: Module) -> Iterator[str]:
    """Yield fields of public dataclasses that no string documents.

    A field that no caller gives (``init=False``) is derived, and documented where its meaning is defined.
    """
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        if not any(_is_dataclass(item) for item in node.decorator_list):
            continue
        for statement, following in zip_longest(node.body, node.body[1:]):
            if isinstance(statement, ast.AnnAssign) and _is_field(statement) and not _is_string(following):
                field = ast.unparse(statement.target)
                yield f"{module.path}:{statement.lineno}: {node.name}.{field} says nothing"


def _docstrings(module: Module, node: ast.Module | ast.ClassDef) -> Iterator[str]:
    for child in node.body:
        if not isinstance(child, _DEFINITIONS) or child.name.startswith("_"):
            continue
        inherited = {"override", "overload", "setter"}
        if ast.get_docstring(child) is None and not inherited & {
            _name(item) for item in child.decorator_list
        }:
            yield f"{module.path}:{child.lineno}: {child.name} has no docstring"
        if isinstance(child, ast.ClassDef):
            yield from _docstrings(module, child)


def _name(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def _is_dataclass(node: ast.expr) -> bool:
    return _name(node) == "dataclass"


def _is_field(node: ast.AnnAssign) -> bool:
    annotation = ast.unparse(node.annotation)
    derived = isinstance(node.value, ast.Call) and "init=False" in ast.unparse(node.value)
    return "ClassVar" not in annotation and annotation != "KW_ONLY" and not derived


def _is_string(node: ast.stmt | None) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
