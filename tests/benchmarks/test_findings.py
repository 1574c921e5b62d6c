from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from launching.findings import conclude, options_of

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Found:
    seconds: float

    @property
    def ok(self) -> bool:
        return self.seconds < 1


@pytest.mark.parametrize(("seconds", "status"), [((0.1, 0.2), 0), ((0.1, 1.2), 1), ((), 0)])
def test_the_status_and_the_report_say_the_same(seconds, status: int, tmp_path: Path) -> None:
    path, found = tmp_path / "report.json", [Found(each) for each in seconds]
    assert conclude(None, {"benchmark": "x"}, found) == status
    assert not path.exists()
    assert conclude(path, {"benchmark": "x"}, found, "found") == status
    report = json.loads(path.read_text("utf-8"))
    assert report["benchmark"] == "x"
    assert [(row["seconds"], row["ok"]) for row in report["found"]] == [(each, each < 1) for each in seconds]


def test_the_file_is_refused_before_anything_is_measured(tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit):
        options_of("Measures.\n\nTwice.").parse_args(["--json", str(tmp_path / "none" / "report.json")])
    assert "in a folder that is there" in capsys.readouterr().err
