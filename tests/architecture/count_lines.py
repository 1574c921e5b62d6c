"""Count logical lines by folder, of the tree or of a revision: ``python tests/architecture/count_lines.py [REV …]``.

A logical line of Python is a statement that is no docstring and no import. One of C or C++ is a line with something on
it beside brackets, comments and ``#include``: clang-format breaks all revisions alike. What launchers are made of, what
they run on and what loads them is told apart from the rest; tests are not counted.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = {
    "printers and launchers' runtime in Python": (
        r"core/src/trunnion/codegen/(?!cpp/)",
        r"core/src/trunnion/launcher/",
        r"core/src/trunnion/codegen/cpp/\w+\.py",
    ),
    "launchers' runtime in C++": (r"core/src/trunnion/codegen/cpp/include/",),
    "the plan": (r"core/src/trunnion/model/(plan|planning|slots|steps|lowering|requirements)\w*(/|\.py)",),
    "calls": (
        r"core/src/trunnion/(arguments|turns|call_helper|compiled|built_program)\.py",
        r"core/src/trunnion/contract/convention\.py",
        r"plugins/fastcall/src/",
    ),
    "host adapters": (
        r"plugins/nvrtc/src/trunnion_nvrtc/(backend/)?(adapter|dialect|driver|status|structures|wrapper)\.py",
        r"plugins/tvm_ffi/src/trunnion_tvm_ffi/((backend|foreign)/)?(adapter|arrays|calls|functions|interface|module|preparation|wrapper)\w*\.py",
        r"plugins/cutedsl/src/trunnion_cutedsl/(backend/)?(adapter|wrapper)\.py",
    ),
}
"""What issue 8 counts; a file belongs to the first part that one of its patterns matches."""

_NOTHING = re.compile(r"[\s{}();]*(//.*)?$|\s*#\s*include\b")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def python_lines(text: str) -> int:
    """Return the statements of a Python text."""
    count = 0
    for node in ast.walk(ast.parse(text)):
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        count += (
            isinstance(node, ast.stmt)
            and not docstring
            and not isinstance(node, (ast.Import, ast.ImportFrom))
        )
    return count


def cpp_lines(text: str) -> int:
    """Return the lines of a C or C++ text that say something."""
    return sum(not _NOTHING.match(line) for line in _COMMENT.sub("", text).splitlines())


def texts(revision: str | None) -> dict[str, str]:
    """Return every source file of the tree, or of a revision, by its path."""
    listing = ["git", "ls-files"] if revision is None else ["git", "ls-tree", "-r", "--name-only", revision]
    found = {}
    for path in _git(*listing[1:]).splitlines():
        if re.match(r"(core|plugins/\w+)/src/.*\.(py|hpp|cc|h|c)$", path):
            if revision is not None:
                found[path] = _git("show", f"{revision}:{path}")
            elif (ROOT / path).exists():
                found[path] = (ROOT / path).read_text("utf-8")
    return found


def counted(sources: dict[str, str]) -> Counter[tuple[str, str]]:
    """Return logical lines by part and folder."""
    found: Counter[tuple[str, str]] = Counter()
    for path, text in sources.items():
        part = next(
            (name for name, patterns in PARTS.items() if any(re.match(p, path) for p in patterns)), "the rest"
        )
        lines = python_lines(text) if path.endswith(".py") else cpp_lines(text)
        found[part, path.rpartition("/")[0]] += lines
    return found


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(revisions: list[str]) -> int:
    columns = [counted(texts(revision)) for revision in (*revisions, None)]
    names = [*revisions, "the tree"]
    print(f"{'':76}{''.join(f'{name:>12.12}' for name in names)}")  # noqa: T201 - what the command is for
    for part in (*PARTS, "the rest"):
        rows = sorted({folder for column in columns for name, folder in column if name == part})
        sums = [sum(count for (name, _), count in column.items() if name == part) for column in columns]
        print(f"{part:76}{''.join(f'{count:12}' for count in sums)}")  # noqa: T201 - the same
        for folder in rows:
            cells = "".join(f"{column[part, folder]:12}" for column in columns)
            print(f"  {folder:74}{cells}")  # noqa: T201 - the same
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
