"""The page of the benchmarks has a row for each script."""

from __future__ import annotations

import re
from pathlib import Path

from page_reading.tables import page

ROOT = Path(__file__).resolve().parents[2]


def test_every_script_has_its_row() -> None:
    rows = re.findall(r"^\| `(\w+\.py)` \| .+ \| .+ \|$", page("benchmarks"), re.MULTILINE)
    assert sorted(rows) == sorted(script.name for script in ROOT.glob("benchmarks/*.py"))
