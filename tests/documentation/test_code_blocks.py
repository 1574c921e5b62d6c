"""Every page of the manual and every read-me file runs as it stands: pasted into a fresh Python, with no GPU.

Nothing is set up for a page: what it needs, its own blocks bring. A page that imports torch finds it imported, which
takes longer than most pages do; the first page that anybody reads finds nothing.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from page_reading.blocks import page_source, python_blocks

import trunnion

if TYPE_CHECKING:
    from forked_python.client import ForkedPython

ROOT = Path(__file__).resolve().parents[2]

FIRST = "README.md"

ELSEWHERE = {"docs/tilelang.md", "docs/jax.md"}
"""What needs TileLang, or JAX, is tested where that is: tests/tilelang, tests/other_tools."""

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for place in ("*.md", "docs/*.md", "core/*.md", "plugins/*/*.md")
    for path in ROOT.glob(place)
    if python_blocks(path.read_text("utf-8")) and path.relative_to(ROOT).as_posix() not in ELSEWHERE
)


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page: str, forked_python: ForkedPython) -> None:
    source = page_source(page, (ROOT / page).read_text("utf-8"))
    if "import torch" in source and page != FIRST:
        done = forked_python(source, warnings=("error",))
    else:
        command = [sys.executable, "-W", "error", "-c", source]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


def test_there_is_code_to_run() -> None:
    assert {FIRST, "docs/quickstart.md", "docs/simulation.md"} <= set(PAGES)


def test_a_page_that_is_wrong_is_noticed_with_its_line(forked_python: ForkedPython) -> None:
    page = "# Page\n\n```python\nx = 1\n```\n\nText.\n\n```python\nassert x == 2\n```\n"
    done = forked_python(page_source("page.md", page), warnings=("error",))
    assert done.returncode != 0
    assert 'File "page.md", line 10' in done.stderr


def _modules_with_examples() -> list[str]:
    root = Path(trunnion.__file__).parent
    found = []
    for module in pkgutil.walk_packages([str(root)], "trunnion."):
        path = root.joinpath(*module.name.split(".")[1:])
        file = path / "__init__.py" if module.ispkg else path.with_suffix(".py")
        if ">>>" in file.read_text("utf-8"):
            found.append(module.name)
    return found


@pytest.mark.parametrize("module", _modules_with_examples())
def test_the_examples_in_docstrings_are_true(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted
    assert not result.failed
