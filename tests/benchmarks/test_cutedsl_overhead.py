"""The benchmark of the CuTeDSL compiler: what it counts, and when it fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import cutedsl_overhead

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("own", "ok"), [(0.02, True), (0.31, False)])
def test_the_budget(own: float, ok: bool) -> None:
    row = cutedsl_overhead.Row("x", 3.0, own, 0.2)
    assert row.ok is ok
    assert cutedsl_overhead.table([row]).splitlines()[2].endswith("| ok |" if ok else "| TOO SLOW |")


def test_one_program_is_measured_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(cutedsl_overhead, "PROGRAMS", ("cutedsl_vector_add",))
    monkeypatch.setattr(cutedsl_overhead, "MOST_OWN", 60.0)
    assert cutedsl_overhead.main(["--later", "1", "--json", str(tmp_path / "report.json")]) == 0
    (row,) = json.loads((tmp_path / "report.json").read_text("utf-8"))["rows"]
    assert 0 < row["later"] < row["first"]
    assert 0 < row["later_compiler"] < row["first"]
    assert "cutedsl_vector_add" in capsys.readouterr().out
