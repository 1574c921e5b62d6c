from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import torch

import operators

if TYPE_CHECKING:
    from pathlib import Path

SUMMARY = operators.Summary(4.0, 3.9, 4.1, 3.8)


@pytest.mark.parametrize(("limit", "ok"), [(None, True), (4.0, True), (3.9, False)])
def test_the_budget_is_of_the_one_row_that_has_a_limit(limit: float | None, ok: bool) -> None:
    row = operators.Row("ours, in C++", "eager", SUMMARY, limit=limit)
    assert row.ok is ok
    assert ("at most" in row.line()) is (limit is not None)


def test_what_could_not_be_measured_says_why_and_keeps_no_budget() -> None:
    row = operators.Row("triton_op", "eager", None, "ImportError: no triton")
    assert row.line().endswith("missing: ImportError: no triton")
    assert row.ok
    assert not operators.Row("ours, in C++", "eager", None, "no compiler", limit=0.0).ok


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys) -> None:
    assert operators.main([]) == 77
    assert "--cpu" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")  # of torch's own compiler
def test_on_the_cpu_it_measures_everything_but_triton(tmp_path: Path, capsys) -> None:
    report = tmp_path / "report.json"
    assert operators.main(["--cpu", "--rounds", "1", "--json", str(report)]) == 0
    rows = json.loads(report.read_text("utf-8"))["rows"]
    missing = {row["subject"] for row in rows if row["summary"] is None}
    assert missing == {"triton_op"}
    assert {row["mode"] for row in rows if row["subject"] == "ours, in C++"} == {
        "eager",
        "eager, out",
        "compiled",
    }
    assert capsys.readouterr().out.count("µs") == len(rows) - 1
    torch._dynamo.reset()
