from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

import nvrtc_overhead
from trunnion_nvrtc.compiler import headers

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
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(headers, "toolkit_directories", tuple)
    problem = nvrtc_overhead.sample("cuda_fp16.h", 1)["problem"]
    assert "not on this machine" in problem
    measured = {"no headers": row()}
    monkeypatch.setattr(nvrtc_overhead, "measure", lambda kernel, *_: measured.get(kernel, problem))
    report = tmp_path / "report.json"
    assert nvrtc_overhead.main(["--json", str(report)]) == 0
    out, others = capsys.readouterr().out, len(nvrtc_overhead.KERNELS) - 1
    assert out.count("not on this machine") == others
    assert out.count("| not measured |") == others
    found = json.loads(report.read_text())
    assert [one["kernel"] for one in found["rows"]] == ["x"]
    assert len(found["not_measured"]) == others


def test_a_kernel_that_cannot_be_compiled_here_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation may have some headers and lack others."""
    source = "#include <crt/no_such_header.h>\n" + nvrtc_overhead.KERNELS["no headers"]
    monkeypatch.setitem(nvrtc_overhead.KERNELS, "incomplete", source)
    monkeypatch.setattr(headers, "toolkit_directories", lambda: ("/nowhere",))
    found = nvrtc_overhead.sample("incomplete", 1)
    assert set(found) == {"problem"}
    assert "no_such_header.h" in found["problem"]


def test_a_process_that_fails_is_shown_and_the_others_are_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = subprocess.CompletedProcess((), 1, "", "Traceback\nOSError: all is lost\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failing)
    assert nvrtc_overhead.main([]) == 1
    out = capsys.readouterr().out
    assert out.count("OSError: all is lost") == out.count("| not measured |") == len(nvrtc_overhead.KERNELS)
