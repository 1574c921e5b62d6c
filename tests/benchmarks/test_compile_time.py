from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import compile_time
from trunnion import examples

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("own", "found", "ok"), [(0.030, 0.015, True), (0.031, 0.015, False), (0.030, 0.016, False)]
)
def test_the_budgets(own: float, found: float, ok: bool) -> None:
    row = compile_time.Row("x", compiler=1.0, own=own, found=found, reading=0.010)
    assert row.ok is ok
    assert row.line().endswith("ok" if ok else "TOO SLOW")


def test_the_compilers_time_is_not_ours() -> None:
    program = examples.load("hopper_gemm").program
    compile_time.compile_once(program)  # the first imports the compiler
    within, around = compile_time.compile_once(program)
    assert within > 0.01  # templates and inline assembly: NVRTC takes far longer than that
    assert 0 < around < within


def test_every_example_is_measured(tmp_path: Path, capsys) -> None:
    report = tmp_path / "report.json"
    compile_time.main(["--rounds", "1", "--json", str(report)])
    facts = json.loads(report.read_text("utf-8"))
    assert [row["program"] for row in facts["rows"]] == list(examples.EXAMPLES)
    assert all(row["compiler"] > 0 and row["found"] > row["reading"] > 0 for row in facts["rows"])
    assert capsys.readouterr().out.count("NVRTC") == len(examples.EXAMPLES)
