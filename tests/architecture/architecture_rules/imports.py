"""Who may import whom, and when."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from architecture_rules.source import Module

HEAVY = frozenset(
    {"torch", "cuda", "tvm_ffi", "cutlass", "numpy", "cryptography", "sigstore", "jax", "jax_tvm_ffi"}
)
"""Packages that core never loads by being imported."""


class When(enum.Enum):
    """At what moment an import statement runs."""

    IMPORT = "at import"
    CALL = "inside a function"
    NEVER = "under TYPE_CHECKING"


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, or one name imported from a module."""

    target: str
    """The absolute dotted name, the imported name included: ``from a.b import c`` gives ``a.b.c``."""

    module: str
    """The module part alone: ``a.b``."""

    line: int
    """Where it stands."""

    when: When
    """When it runs."""


def imports(module: Module) -> Iterator[Import]:
    """Yield every import of a module, absolute ones and relative ones made absolute.

    A call of ``import_module`` or ``__import__`` with a literal name is an import too.
    """
    yield from _walk(module, module.tree, When.IMPORT)


def layering(
    module: Module,
    layers: Mapping[str, frozenset[str]],
    typing_only: Mapping[str, frozenset[str]],
) -> Iterator[str]:
    """Yield the imports of a core module that go against the direction of the layers.

    Parameters
    ----------
    module
        A module of ``trunnion``.
    layers
        For each part (the second word of a dotted name), the parts that it may import.
    typing_only
        The parts that it may name, besides, under ``TYPE_CHECKING``.
    """
    part = _part(module.name)
    if part not in layers:
        yield f"{module.path}: part {part!r} of core stands in no layer; give it a row"
        return
    for item in imports(module):
        other = _part(item.target)
        if item.target.partition(".")[0] != "trunnion" or other in (part, ""):
            continue
        allowed = layers[part] | (
            typing_only.get(part, frozenset()) if item.when is When.NEVER else frozenset()
        )
        if other not in allowed:
            yield f"{module.path}:{item.line}: {part} may not import {item.target} ({item.when.value})"


def heavy_imports(module: Module, at_import: Collection[str], in_calls: Collection[str]) -> Iterator[str]:
    """Yield imports of heavy packages outside the files that are named for them.

    Parameters
    ----------
    module
        A module of core.
    at_import
        ``"<path> <package>"`` of the files that may import a package when they are imported themselves.
    in_calls
        The same, of files that may import it only inside functions.
    """
    for item in imports(module):
        package = item.target.partition(".")[0]
        if package not in HEAVY or item.when is When.NEVER:
            continue
        key = f"{module.path} {package}"
        if key not in at_import and not (item.when is When.CALL and key in in_calls):
            yield f"{module.path}:{item.line}: imports {package} {item.when.value}"


def plugin_imports(module: Module, public_parts: Collection[str]) -> Iterator[str]:
    """Yield what a plugin imports of another plugin, of core's private names, or of core's inner parts."""
    own = module.name.partition(".")[0]
    for item in imports(module):
        package = item.target.partition(".")[0]
        if package.startswith("trunnion_") and package != own:
            yield f"{module.path}:{item.line}: imports another plugin, {package}"
        if package != "trunnion":
            continue
        if any(word.startswith("_") for word in item.target.split(".")):
            yield f"{module.path}:{item.line}: imports a private name, {item.target}"
        if _part(item.target) not in public_parts:
            yield f"{module.path}:{item.line}: imports {item.target}, which is not for plugins"


def toolchain_imports(module: Module, packages: Collection[str], edges: Collection[str]) -> Iterator[str]:
    """Yield a plugin's imports of its toolchain outside its edge files."""
    for item in imports(module):
        package = item.target.partition(".")[0]
        if package in packages and item.when is not When.NEVER and module.path not in edges:
            yield f"{module.path}:{item.line}: imports {package}; only {', '.join(sorted(edges))} may"


def _part(name: str) -> str:
    words = name.split(".")
    return words[1] if len(words) > 1 else ""


def _walk(module: Module, node: ast.AST, when: When) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, alias.name, child.lineno, when)
        elif isinstance(child, ast.ImportFrom):
            base = _base(module, child)
            for alias in child.names:
                yield Import(f"{base}.{alias.name}", base, child.lineno, when)
        elif isinstance(child, ast.If) and _is_type_checking(child.test):
            for statement in child.body:
                yield from _walk(module, ast.Module([statement], []), When.NEVER)
            for statement in child.orelse:
                yield from _walk(module, ast.Module([statement], []), when)
        else:
            if isinstance(child, ast.Call) and (name := _called_import(child)):
                yield Import(name, name, child.lineno, when)
            in_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            later = When.CALL if in_function and when is When.IMPORT else when
            yield from _walk(module, child, later)


def _called_import(node: ast.Call) -> str:
    """Return the name that a call imports; empty if it is another call, or the name is computed."""
    function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if function not in ("import_module", "__import__") or not node.args:
        return ""
    name = node.args[0]
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""


def _base(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.package.split(".")
    parent = package[: len(package) - node.level + 1]
    return ".".join([*parent, *([node.module] if node.module else [])])


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def circles(modules: Iterable[Module]) -> frozenset[frozenset[str]]:
    """Return the groups of modules that import one another, whenever that is: for typing or inside a function too.

    Parameters
    ----------
    modules
        All modules; what they import of others does not count.
    """
    known = {module.name: module for module in modules}
    graph = {
        name: {target for item in imports(known[name]) if (target := _of(item, known))} - {name}
        for name in known
    }
    reached = {name: _reached(graph, name) for name in graph}
    groups = {frozenset({name, *(one for one in reached[name] if name in reached[one])}) for name in graph}
    return frozenset(group for group in groups if len(group) > 1)


def _of(item: Import, known: Mapping[str, Module]) -> str:
    return next((name for name in (item.target, item.module) if name in known), "")


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found
