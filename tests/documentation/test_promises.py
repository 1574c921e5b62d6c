"""The tables of what is promised, under faults and to whoever is attacked, name tests that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
_PAGES = ("docs/artifacts.md", "SECURITY.md")


def _rows(page: str) -> list[str]:
    lines = (ROOT / page).read_text("utf-8").splitlines()
    promises = [line for line in lines if line.startswith("| ") and line.count("|") > 2]
    return [line for line in promises if "::" in line]


_ROWS = [row for page in _PAGES for row in _rows(page)]


@pytest.mark.parametrize("page", _PAGES)
def test_there_is_a_table(page: str) -> None:
    assert len(_rows(page)) > 10


def test_no_promise_of_safety_is_without_a_test() -> None:
    lines = (ROOT / "SECURITY.md").read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| promise")]
    assert rows == _rows("SECURITY.md")


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row.split("|")[1].strip()[:60])
def test_each_promise_has_a_test_that_is_there(row: str) -> None:
    named = _TEST.findall(row)
    assert named
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
