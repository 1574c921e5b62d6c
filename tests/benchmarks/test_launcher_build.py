from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import launcher_build

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("median", "ok"), [(0.2, True), (0.201, False)])
def test_the_budget(median: float, ok: bool) -> None:
    row = launcher_build.Row("x", median=median, least=0.1, empty=0.05)
    assert row.ok is ok
    assert row.line().endswith("ok" if ok else "TOO SLOW")


def test_the_large_program_is_as_large_as_it_says() -> None:
    program = launcher_build.large_program(32)
    assert len(program.signature.params) == 64
    assert [len(launch.args) for launch in program.launches] == [64] * 32


def test_every_program_is_measured(tmp_path: Path, capsys) -> None:
    report = tmp_path / "report.json"
    launcher_build.main(["--rounds", "1", "--json", str(report)])
    facts = json.loads(report.read_text("utf-8"))
    assert [row["program"] for row in facts["rows"]] == list(launcher_build.subjects())
    assert all(row["median"] > row["empty"] > 0 for row in facts["rows"])
    assert capsys.readouterr().out.count("an empty library") == len(facts["rows"])
