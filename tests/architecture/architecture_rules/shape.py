"""How large things are, what they are called, and the constructs that are not used."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from architecture_rules.source import Module

FUNCTION_LINES = 40
SHAPELESS = frozenset({"util", "utils", "helper", "helpers", "common", "misc"})

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_CONTAINERS = frozenset(
    {"list", "dict", "set", "defaultdict", "deque", "OrderedDict", "Counter", "bytearray"}
)
_CHANGES = frozenset(
    {
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "popitem",
        "clear",
        "add",
        "discard",
        "update",
        "setdefault",
    }
)


def function_sizes(module: Module) -> Iterator[str]:
    """Yield functions whose body has more than `FUNCTION_LINES` lines.

    The body is counted from its first statement after the docstring to its last line, with blank lines and
    comments in between; the signature and the docstring are not counted.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, _FUNCTIONS):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            if lines > FUNCTION_LINES:
                yield f"{module.path}:{node.lineno}: {node.name} has {lines} lines, at most {FUNCTION_LINES}"


def module_name(module: Module) -> Iterator[str]:
    """Yield a module whose name says nothing."""
    stem = PurePosixPath(module.path).stem
    if stem.removeprefix("_") in SHAPELESS:
        yield f"{module.path}: name it after what it holds"


def broad_handlers(module: Module, allowed: Collection[str]) -> Iterator[str]:
    """Yield handlers that catch everything and do not raise it again, outside the places that are named.

    Parameters
    ----------
    module
        Any module.
    allowed
        ``"<path> <exception>"``, where the exception is ``Exception``, ``BaseException`` or ``everything`` (a
        bare ``except:``).
    """
    for node in ast.walk(module.tree):
        caught: list[ast.expr | None] = []
        if isinstance(node, ast.ExceptHandler) and not _raises_again(node):
            caught = list(node.type.elts) if isinstance(node.type, ast.Tuple) else [node.type]
        elif isinstance(node, ast.Call) and _last_name(node.func) == "suppress":
            caught = list(node.args)
        for item in caught:
            name = "everything" if item is None else _last_name(item)
            broad = name in ("everything", "Exception", "BaseException")
            if broad and f"{module.path} {name}" not in allowed:
                yield f"{module.path}:{node.lineno}: catches {name}"


def mutable_globals(module: Module) -> Iterator[str]:
    """Yield module-level containers that change: global state.

    A container under a name in capitals is a table, as long as nothing in its module changes it.
    """
    containers = {name: node for node in module.tree.body for name in _container_names(node)}
    for name, node in containers.items():
        if name != name.upper() and name != "__all__":
            yield f"{module.path}:{node.lineno}: {name} is global and can change"
    for node in ast.walk(module.tree):
        changed = _changed_name(node)
        if changed in containers:
            yield f"{module.path}:{getattr(node, 'lineno', 0)}: {changed} is global and is changed"


def _container_names(node: ast.stmt) -> list[str]:
    """Return the names that a statement binds to a new container."""
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    value = getattr(node, "value", None)
    mutable = isinstance(value, _DISPLAYS) or (
        isinstance(value, ast.Call) and _last_name(value.func) in _CONTAINERS
    )
    return [_last_name(target) for target in targets] if mutable else []


def _changed_name(node: ast.AST) -> str:
    """Return the name of the container that an expression changes; empty if it changes none."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return _last_name(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
        return _last_name(node.func.value)
    return ""


def stray_packages(paths: Collection[str]) -> Iterator[str]:
    """Yield ``__init__.py`` files where a folder must not be a package.

    In ``plugins`` or the root one would make ``import tvm_ffi``, or ``import core``, find a folder; beside
    tests one would give two test modules one name.
    """
    for path in paths:
        parent = PurePosixPath(path).parent.as_posix()
        roots = parent in (".", "core", "plugins", "core/src") or (
            parent.startswith("plugins/") and parent.count("/") == 1
        )
        folders = PurePosixPath(parent).parts
        beside_tests = (
            "tests" in folders and "src" not in folders
        )  # below src: a distribution that a test installs
        if path.endswith("__init__.py") and (roots or beside_tests):
            yield f"{path}: makes a package of a folder that must not be one"


def _raises_again(node: ast.ExceptHandler) -> bool:
    """Whether a handler ends in a bare ``raise``."""
    last = node.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
