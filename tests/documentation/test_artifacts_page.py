"""The manual's table of faults names tests that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
_ROWS = [
    line
    for line in (ROOT / "docs" / "artifacts.md").read_text("utf-8").splitlines()
    if line.startswith("|") and "::" in line
]


def test_there_is_a_table() -> None:
    assert len(_ROWS) > 10


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row.split("|")[1].strip())
def test_each_promise_has_a_test_that_is_there(row: str) -> None:
    named = _TEST.findall(row)
    assert named
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
