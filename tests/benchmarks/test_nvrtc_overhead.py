from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import nvrtc_overhead
from trunnion_nvrtc import headers

if TYPE_CHECKING:
    from pathlib import Path


def row(**seconds: float) -> nvrtc_overhead.Row:
    names = ("bindings", "first", "first_compiler", "later", "later_compiler", "pch_made", "pch_used")
    return nvrtc_overhead.Row("x", 3, **(dict.fromkeys(names, 0.001) | seconds))


@pytest.mark.parametrize(
    ("seconds", "ok"),
    [({}, True), ({"first": 0.031}, False), ({"later": 0.031}, False), ({"pch_made": 9.0}, True)],
)
def test_the_budget(seconds: dict[str, float], ok: bool) -> None:
    assert row(**seconds).ok is ok
    assert nvrtc_overhead.table([row(**seconds)]).splitlines()[2].endswith("| ok |" if ok else "| TOO SLOW |")


def test_the_compilers_time_is_not_ours() -> None:
    found = nvrtc_overhead.sample("no headers", 2)
    assert found["headers"] == 0
    assert 0 < found["later"] < found["later_compiler"]


def test_kernels_without_their_headers_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path
) -> None:
    monkeypatch.setattr(headers, "toolkit_directories", tuple)
    assert nvrtc_overhead.sample("cuda_fp16.h", 1) == {"headers": -1}
    measured = {"no headers": row()}
    monkeypatch.setattr(nvrtc_overhead, "measure", lambda kernel, *_: measured.get(kernel))
    report = tmp_path / "report.json"
    assert nvrtc_overhead.main(["--json", str(report)]) == 0
    assert capsys.readouterr().out.count("not on this machine") == len(nvrtc_overhead.KERNELS) - 1
    assert [one["kernel"] for one in json.loads(report.read_text())["rows"]] == ["x"]
