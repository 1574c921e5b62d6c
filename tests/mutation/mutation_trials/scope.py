"""What is mutated, by which backend's laws a mutant is tried, and what is left out: rules, and no taste."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias, TypeGuard

    _Node: TypeAlias = ast.expr | ast.stmt | ast.keyword | ast.excepthandler

ROOT: Final = Path(__file__).resolve().parents[3]
"""The repository."""

_MODEL = "core/src/trunnion/model"
_NVRTC = "plugins/nvrtc/src/trunnion_nvrtc/backend"
_RUNTIME = "core/src/trunnion/codegen/cpp/include/trunnion"

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "planning": (
        f"{_MODEL}/plan/*.py",
        *(f"{_MODEL}/{name}.py" for name in ("interval", "scalars")),
        f"{_MODEL}/tensormap/*rule*.py",
    ),
    "emitter": ("core/src/trunnion/codegen/*.py", "core/src/trunnion/codegen/python/*.py"),
    "runtime": (
        "core/src/trunnion/launcher/*.py",
        "core/src/trunnion/arguments.py",
        "core/src/trunnion/turns.py",
    ),
    "adapters": (
        *(f"core/src/trunnion/contract/{name}.py" for name in ("adapter", "source")),
        *(
            f"{_NVRTC}/{name}.py"
            for name in ("adapter", "dialect", "driver", "status", "structures", "wrapper")
        ),
    ),
    "loading": (
        *(f"core/src/trunnion/{name}.py" for name in ("compiled", "built_program")),
        *(f"core/src/trunnion/artifacts/{name}.py" for name in ("artifact", "manifest")),
        *(f"core/src/trunnion/image/{name}.py" for name in ("layout", "lookup", "match")),
    ),
    "cpp": (f"{_RUNTIME}/*.hpp", f"{_RUNTIME}/*.cc"),
}
"""Which files are mutated: patterns below the repository. Of the runtimes over a tensor library none, because laws on
the simulated driver use the simulator's own."""

MESSAGES_ONLY: Final = re.compile(r".*/(?:text|errors|decimal)\.(?:hpp|cc)")
"""Files of the C++ runtime that make nothing but the texts of errors."""

CHECKS_ONLY: Final = re.compile(r".*/(?:driver_)?layouts\.cc")
"""Files of the C++ runtime in which nothing runs: they end a compilation where a structure is laid out otherwise."""

CPU_ONLY: Final = re.compile(r".*/host_\w+\.(?:hpp|cc)")
"""Files of the C++ runtime that no launcher for CUDA devices has."""

ASKED_BY_AUTHORS: Final = re.compile(r".*/image/lookup\.py")
"""Files that are asked when a program is written: which kernel of an image made elsewhere is meant. No backend is there
yet."""

INTERPRETED: Final = "interpreted"
"""The backend that interprets plans, of `tests/differential/twins`: what it runs, a generated launcher asks only what
is wrong with a call that it refuses."""

BACKENDS: Final[Mapping[str, tuple[str, ...]]] = {"python": ("nvrtc", INTERPRETED), "cpp": ("tvm_ffi",)}
"""By the laws of which backends mutants of a language are tried."""

STARTS_PROCESSES: Final[Mapping[str, frozenset[str]]] = {INTERPRETED: frozenset({"B4", "S2", "Z4"})}
"""The laws that a backend is not held to, because they start processes which do not know it."""

_OF_INTERPRETER: Final = re.compile(r".*/launcher/(?:interpreter|walk)\.py")


def backend_of(path: str) -> str:
    """Return the backend by whose laws a file's mutants are tried."""
    if not path.endswith(".py"):
        return "tvm_ffi"
    return INTERPRETED if _OF_INTERPRETER.fullmatch(path) else "nvrtc"


def group_of(path: str) -> str:
    """Return the group that a file belongs to.

    Raises
    ------
    ValueError
        If it belongs to none.
    """
    for group, patterns in GROUPS.items():
        if any(Path(path).match(pattern) for pattern in patterns):
            return group
    raise ValueError(f"{path} is not mutated")


def mutated_files(language: str, root: Path = ROOT) -> Iterator[str]:
    """Yield the files of a language that are mutated, in a stable order."""
    wanted = {
        path.relative_to(root).as_posix()
        for group, patterns in GROUPS.items()
        if (group == "cpp") == (language == "cpp")
        for pattern in patterns
        for path in root.glob(pattern)
    }
    rules = MESSAGES_ONLY, CHECKS_ONLY, CPU_ONLY, ASKED_BY_AUTHORS
    yield from sorted(path for path in wanted if not any(rule.fullmatch(path) for rule in rules))


# What is left out of a Python file -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a file of which no mutant is drawn."""

    start: tuple[int, int]
    """Line from 1, column from 0."""

    end: tuple[int, int]
    """Behind its last character."""

    reason: str
    """Why: ``"message"``, ``"cache"``, ``"annotation"``, ``"declaration"``, ``"trust"``, ``"document"`` or
    ``"simulated"``."""

    def __contains__(self, position: tuple[int, int]) -> bool:
        return self.start <= position < self.end


_CACHES = frozenset({"cache", "lru_cache", "cached_property", "kept_property"})
_CACHE_SIZES = re.compile(r"_MOST_(?:KEPT|READ|REMEMBERED|KNOWN)|_KEPT")
_SHOWN = re.compile(r"_(?:MAX|MOST)_SHOWN")
_YIELDS_MESSAGES = re.compile(r".*/tensormap/\w*rules?\.py")
_MAKES_MESSAGES = re.compile(r"\w*(?:Error|Warning)|add_note|warn|shorten|describe")


_TRUST = re.compile(r".*/artifacts/artifact\.py#check_digest|.*/arguments\.py#(?:file_path|_encodable)")
_READING = re.compile(r".*/artifacts/(?:artifact|manifest)\.py#(?:open|from_json|read_\w+|_read_\w+)")
_SIMULATED = re.compile(r".*/model/scalars\.py#(?:decode|scalar_value)")
"""Functions, each behind the path of its file."""


def left_out(path: str, text: str) -> tuple[Region, ...]:
    """Return the parts of a Python file of which no mutant is drawn.

    - ``message``: the text of an error or a warning, that is an f-string in a ``raise``, or in a call of something
      whose name ends in Error or Warning, of ``add_note``, ``warn``, ``shorten`` or ``describe``; in the rules of
      tensor maps what is yielded; and how much of a value is shown.
    - ``cache``: a decorator that keeps results, and how many are kept.
    - ``annotation``: what is for type checkers alone.
    - ``declaration``: ``@dataclass(…)``, ``@abstractmethod``, ``__slots__``, and ``strict=`` of ``zip``.
    - ``trust``: where files may lie, and whose they must be.
    - ``document``: what takes up a saved artifact, where it refuses what is none. What it does with a good one stays.
    - ``simulated``: what only bodies read that stand for kernels on the simulated driver; laws read bytes.

    Parameters
    ----------
    path
        The file's, relative to the repository.
    text
        Its text.
    """
    lines = text.splitlines()
    found = []
    yields = _YIELDS_MESSAGES.fullmatch(path) is not None
    tree = ast.parse(text)
    for node, reason in (*_regions(tree, yields=yields), *_of_functions(path, tree)):
        column = _column(lines, node.lineno, node.col_offset)
        start = node.lineno, column - (lines[node.lineno - 1][column - 1 : column] == "@")
        last = node.end_lineno or node.lineno
        found.append(Region(start, (last, _column(lines, last, node.end_col_offset or 0)), reason))
    return tuple(found)


def _column(lines: list[str], line: int, offset: int) -> int:
    """Return a column in characters; Python counts bytes of UTF-8."""
    return len(lines[line - 1].encode()[:offset].decode("utf-8", "ignore"))


def _regions(tree: ast.AST, *, yields: bool) -> Iterator[tuple[_Node, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) or (yields and isinstance(node, ast.Yield)):
            yield from _texts(node)
        elif isinstance(node, ast.Call):
            yield from _of_call(node)
        elif isinstance(node, ast.Assign):
            yield from _of_assignment(node)
        elif isinstance(node, ast.If) and _last_name(node.test) == "TYPE_CHECKING":
            yield node, "annotation"
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from _of_decorators(node)
        annotation = getattr(node, "returns", None) or getattr(node, "annotation", None)
        if isinstance(annotation, ast.expr):
            yield annotation, "annotation"


def _of_functions(path: str, tree: ast.AST) -> Iterator[tuple[_Node, str]]:
    """Yield what no backend takes part in: whole functions, and of those that read what they refuse."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        place = f"{path}#{node.name}"
        if _TRUST.fullmatch(place) or _SIMULATED.fullmatch(place):
            yield node, "trust" if _TRUST.fullmatch(place) else "simulated"
        elif _READING.fullmatch(place):
            yield from ((part, "document") for part in ast.walk(node) if _refuses(part))
            yield from ((default, "trust") for default in node.args.kw_defaults if default is not None)
            yield from (
                (part, "trust")
                for part in ast.walk(node)
                if isinstance(part, ast.IfExp) and _last_name(part.test) == "trusted"
            )


def _refuses(node: ast.AST) -> TypeGuard[_Node]:
    """Whether a statement only refuses: a condition or a handler that raises, a loop over a document's types."""
    if isinstance(node, ast.For):
        return all(isinstance(part, (ast.For, ast.Expr)) for part in node.body)
    raises = isinstance(node, (ast.If, ast.ExceptHandler)) and isinstance(node.body[-1], ast.Raise)
    return raises and not getattr(node, "orelse", None)


def _texts(node: ast.AST) -> Iterator[tuple[_Node, str]]:
    yield from ((text, "message") for text in ast.walk(node) if isinstance(text, ast.JoinedStr))


def _of_assignment(node: ast.Assign) -> Iterator[tuple[_Node, str]]:
    name = _last_name(node.targets[0])
    if name == "__slots__":
        yield node, "declaration"
    elif _SHOWN.fullmatch(name):
        yield node, "message"
    elif _CACHE_SIZES.fullmatch(name):
        yield node, "cache"


def _of_call(node: ast.Call) -> Iterator[tuple[_Node, str]]:
    name = _last_name(node.func)
    if _MAKES_MESSAGES.fullmatch(name):
        yield from _texts(node)
    if name == "shorten":
        yield from ((argument, "message") for argument in node.args[1:])
    if name == "zip":
        yield from ((keyword, "declaration") for keyword in node.keywords)


def _of_decorators(node: ast.FunctionDef | ast.ClassDef) -> Iterator[tuple[_Node, str]]:
    for decorator in node.decorator_list:
        name = _last_name(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if name in _CACHES:
            yield decorator, "cache"
        elif name in {"dataclass", "abstractmethod"}:
            yield decorator, "declaration"


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
