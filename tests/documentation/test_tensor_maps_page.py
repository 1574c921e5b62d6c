"""The manual's page of tensor maps shows the rule tables: the same rows, in the same words and order."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from trunnion.model.tensormap.rules import IM2COL_RULES, TILED_RULES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tensor-maps.md"
_ROW = re.compile(r"^\| (.*?) \| (documented|measured|ours) \| (.*?) \| (.*?) \|$", re.MULTILINE)


def section(title: str) -> str:
    return PAGE.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize(("title", "table"), [("Tiled", TILED_RULES), ("Im2col", IM2COL_RULES)])
def test_the_page_shows_every_rule(title: str, table) -> None:
    shown = _ROW.findall(section(title))
    assert shown == [
        (
            rule.text,
            rule.origin.value,
            str(rule.architectures),
            rule.h200.value + (f": {rule.reason}" if rule.reason else ""),
        )
        for rule in table
    ]


def test_the_page_counts_the_recorded_answers() -> None:
    recorded = PAGE.parents[1] / "core" / "tests" / "model" / "tensormap_answers_h200.json"
    assert f"against {len(json.loads(recorded.read_text('utf-8'))) - 1} recorded answers" in PAGE.read_text(
        "utf-8"
    )
