"""What the text of the repository may not say."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from architecture_rules.source import Module

# The patterns are written so that they do not match their own text.
_MACHINE_PATH = re.compile(r"(?<![\w.:-])/(?:(?:work(?:space)?|home|root|Users)/|tmp/[a-z])")
_INDEX = re.compile(
    r"(?:extra-|--)index-url|find[-]links|https?://\S*(?:/simple\b|/whl\b|pypi\.)", re.IGNORECASE
)
_UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K])\b")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_REASONED_NOQA = re.compile(r"#\s*noqa:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*\s+-\s+\S+")
_REASONED_IGNORE = re.compile(r"#\s*type:\s*ignore\[[\w, -]+\]\s+#\s+\S+")


def plugin_names_in_code(
    module: Module,
    names: Collection[str],
    imports_allowed: Collection[str] = (),
    foreign: tuple[str, ...] = (),
) -> Iterator[str]:
    """Yield identifiers and strings of a core module that contain a plugin's name.

    A docstring may speak of a plugin, as a comment may; code may not.

    Parameters
    ----------
    module
        A module of core.
    names
        The plugins' names.
    imports_allowed
        ``"<path> <package>"`` of the modules that may import a toolchain that has the name of a plugin.
    foreign
        What names begin with that a toolchain's ABI gives, and not we.
    """
    pattern = re.compile("|".join(rf"(?:^|_|\b){re.escape(name)}(?=$|_|\b)" for name in names))
    tree = module.tree
    documentation = _documentation(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.alias) and f"{module.path} {node.name.partition('.')[0]}" in imports_allowed:
            continue
        for word in _words(node):
            if foreign and word.startswith(foreign):
                continue
            spellings = (word.lower(), _CAMEL.sub("_", word).lower())
            if id(node) not in documentation and any(map(pattern.search, spellings)):
                yield f"{module.path}:{getattr(node, 'lineno', 0)}: core says {word!r}"


def machine_paths(path: str, text: str) -> Iterator[str]:
    """Yield lines with a path that exists on one machine only."""
    yield from _matches(path, text, _MACHINE_PATH, "a path of one machine")


def package_indexes(path: str, text: str) -> Iterator[str]:
    """Yield lines that choose a package index: that is the user's choice."""
    yield from _matches(path, text, _INDEX, "a package index")


def unfinished(path: str, text: str) -> Iterator[str]:
    """Yield lines that say that something is not done."""
    yield from _matches(path, text, _UNFINISHED, "a note of unfinished work")


def suppressions(module: Module) -> Iterator[str]:
    """Yield suppressed findings of ruff or mypy that name no code or no reason.

    The forms are ``# noqa: <codes> - <reason>`` and ``# type: ignore[<codes>] # <reason>``.
    """
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type != tokenize.COMMENT:
            continue
        noqa = re.search(r"#\s*noqa\b", token.string) and not _REASONED_NOQA.search(token.string)
        ignore = re.search(r"#\s*type:\s*ignore", token.string) and not _REASONED_IGNORE.search(token.string)
        if noqa or ignore:
            yield f"{module.path}:{token.start[0]}: {token.string} gives no reason"


def _matches(path: str, text: str, pattern: re.Pattern[str], what: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        found = pattern.search(line)
        if found:
            yield f"{path}:{number}: {what}: {found.group()!r}"


def _documentation(tree: ast.Module) -> set[int]:
    """Return the constants that stand alone as statements: docstrings, and strings under fields."""
    alone = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    return {id(value) for value in alone if isinstance(value, ast.Constant)}


def _words(node: ast.AST) -> Iterator[str]:
    """Yield every identifier and string that a node itself spells."""
    for field in ("id", "attr", "name", "asname", "arg", "module", "value"):
        word = getattr(node, field, None)
        if isinstance(word, bytes):
            yield word.decode("latin-1")
        elif isinstance(word, str):
            yield word
    yield from getattr(node, "names", ()) if isinstance(node, (ast.Global, ast.Nonlocal)) else ()
