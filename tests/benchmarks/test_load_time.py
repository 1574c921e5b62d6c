from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import load_time

if TYPE_CHECKING:
    from pathlib import Path

    from trunnion.sim import Simulator


@pytest.mark.parametrize(
    ("backend", "loaded", "ok"),
    [("cutedsl", 0.006, True), ("cutedsl", 0.0061, False), ("nvrtc", 0.1, True)],
)
def test_the_budget_is_for_launchers_that_are_compiled(backend: str, loaded: float, ok: bool) -> None:
    row = load_time.Row(backend, "x", reading=0.001, taken_up=0.002, loaded=loaded)
    assert row.ok is ok
    assert ("at most 5" in row.line()) is (backend in load_time.BUDGETED)


def test_every_backend_is_measured(simulator: Simulator, tmp_path: Path, capsys) -> None:
    report = tmp_path / "report.json"
    load_time.main(["--rounds", "1", "--json", str(report)])
    facts = json.loads(report.read_text("utf-8"))
    assert {row["backend"] for row in facts["rows"]} >= {"nvrtc", "tvm_ffi", "cutedsl"}
    assert all(row["loaded"] >= row["taken_up"] > 0 for row in facts["rows"])
    assert facts["simulated"]
    assert capsys.readouterr().out.count("beyond reading") == len(facts["rows"])
