from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import cache

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("fresh", "among", "ok"), [(0.006, 1.2, True), (0.0061, 1.0, False), (0.001, 1.21, False)]
)
def test_both_budgets_count(fresh: float, among: float, ok: bool) -> None:
    row = cache.Row(
        "x", 1.0, 0.005, 0.1, fresh=fresh, confirming=0.003, reading=0.001, remote=0.01, among=among
    )
    assert row.ok is ok
    assert row.line().endswith("ok" if ok else "TOO SLOW")


def test_everything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "OTHERS", {"Nobody": ("no_such_distribution", "", "")})
    report = tmp_path / "report.json"
    cache.main(["--rounds", "1", "--entries", "3", "--json", str(report)])
    facts = json.loads(report.read_text("utf-8"))
    assert {row["backend"] for row in facts["rows"]} >= {"nvrtc", "tvm_ffi", "cutedsl"}
    assert all(row["cold"] > row["warm"] > row["reading"] > 0 < row["fresh"] for row in facts["rows"])
    assert "Nobody not installed" in capsys.readouterr().out


def test_a_process_that_fails_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "OTHERS", {"Json": ("json", "caching.none", "CACHE")})
    assert "cannot be measured here: caching.none ended with 1" in cache.others(1)["Json"]


def test_a_crowded_store_has_what_it_says(tmp_path: Path) -> None:
    alone = cache.ArtifactStore(tmp_path / "alone")
    _, artifact = cache.compiled("nvrtc", alone)
    many = cache.crowded(tmp_path / "many", artifact, 5)
    assert len(many.entries()) == 5
    assert {many.problem(entry.key) for entry in many.entries()} == {""}
