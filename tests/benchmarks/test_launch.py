"""The whole benchmark, on the simulated driver: every way in of every backend delivers what is passed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import launch
from trunnion.call_helper import installed_choice

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
NO_GPU = 77


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_simulated_every_way_in_delivers(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = run("launch.py", "--simulate", "--rounds", "1", "--launches", "1", "--json", str(report))
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads(report.read_text("utf-8"))
    assert facts["machine"]["simulated"]
    assert facts["budgets"] == []
    measured = [
        (cell["subject"], case["tensors"], case["maps"])
        for case in facts["cases"]
        for cell in case["cells"]
        if cell["call"]
    ]
    cases = [(0, 0), (1, 0), (3, 0), (9, 0), (19, 0), (3, 1), (3, 3)]
    for way in ("entry", "__call__", "bind"):
        assert {(f"nvrtc {way}", *case) for case in cases} <= set(measured)
        assert {(f"nvrtc {way}, allocating", *case) for case in cases[2:]} <= set(measured)
        helper = installed_choice()
        helped = {(f"nvrtc + {helper.name} {way}", *case) for case in cases} & set(measured)
        assert len(helped) == (0 if helper.helper is None else len(cases))


def test_memory_is_read_twice_for_every_way_in(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = run("memory.py", "--simulate", "--launches", "120", "130", "--json", str(report))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(report.read_text("utf-8"))["found"]
    assert {row["subject"].split(",")[0] for row in found} >= {"nvrtc entry", "nvrtc __call__"}
    assert all(row["launches"] == [120, 130] for row in found)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("script", ["launch.py", "memory.py"])
def test_without_a_gpu_it_says_so(script: str) -> None:
    done = run(script)
    assert done.returncode == NO_GPU
    assert done.stderr.startswith("no GPU that torch can use")
    assert not done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_the_pieces_that_need_no_gpu_are_timed_without_one() -> None:
    done = run("launch.py", "--pieces", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert "t.data_ptr()" in done.stdout
    assert "cuLaunchKernelEx" not in done.stdout
    assert "not here" not in done.stdout


@pytest.mark.parametrize("arguments", [["--rounds", "x"], ["--nonsense"]])
def test_wrong_options_are_refused(arguments: list[str]) -> None:
    assert run("launch.py", *arguments).returncode == 2


def test_a_picture_without_the_library_for_it_is_refused_before_anything_is_measured(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install matplotlib"):
        launch.main(["--plot", "x.svg"])
