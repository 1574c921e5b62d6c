"""What the rules read: the repository's files, and modules with their names and syntax trees."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
"""The repository."""

_PLACES = ("core", "plugins", "tests", "docs", "benchmarks", ".ci")
_GENERATED = {"__pycache__", "_build", "build", "dist"}


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file."""

    path: str
    """Relative to the repository, with forward slashes."""

    name: str
    """The dotted name that it is imported by; empty for a file that is run, such as a test."""

    text: str
    """Its source."""

    @property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text)

    @property
    def package(self) -> str:
        """The package that a relative import starts from."""
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]


def snippet(text: str, name: str = "trunnion.sample", path: str = "") -> Module:
    """Return a module that exists only in a test."""
    return Module(path or f"core/src/{name.replace('.', '/')}.py", name, text)


def files(root: Path = ROOT) -> Iterator[Path]:
    """Yield every file that the repository owns, in a stable order."""
    yield from sorted(path for path in root.iterdir() if path.is_file() and path.name != ".git")
    for place in _PLACES:
        for path in sorted((root / place).rglob("*")):
            parts = path.relative_to(root).parts
            generated = any(
                part in _GENERATED or part.startswith(".") or part.endswith((".egg-info", ".so"))
                for part in parts[1:]
            )
            if path.is_file() and not generated:
                yield path


def python_files() -> Iterator[Module]:
    """Yield every Python file, tests included."""
    for path in files():
        if path.suffix == ".py":
            yield Module(path.relative_to(ROOT).as_posix(), _dotted(path), path.read_text("utf-8"))


def core_modules() -> tuple[Module, ...]:
    """Return the modules of the core distribution."""
    return tuple(module for module in python_files() if module.path.startswith("core/src/"))


def plugin_modules() -> tuple[Module, ...]:
    """Return the modules of every plugin."""
    return tuple(module for module in python_files() if module.path.startswith("plugins/") and module.name)


def plugin_names() -> tuple[str, ...]:
    """Return the plugins' names: their folders."""
    return tuple(sorted(path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")))


def pyprojects() -> tuple[Path, ...]:
    """Return the manifest of every distribution."""
    return (ROOT / "core/pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml")))


def _dotted(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if "src" not in parts:
        return ""
    parts = parts[parts.index("src") + 1 :]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
