from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path

import pytest
import torch

import real_sources
from launching.trial import PythonCall
from real_hosts.bench import Bench
from real_hosts.building import Built, NoCompilerError, libraries
from real_hosts.projects import PROJECTS


def done(problem: str = "") -> Future[Built]:
    future: Future[Built] = Future()
    future.set_result(Built(Path("x.so"), 2.0, problem))
    return future


def test_without_a_gpu_it_says_so(monkeypatch, capsys) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert real_sources.main([]) == 77
    assert "--compile-only" in capsys.readouterr().err


def test_without_copies_it_says_how_to_get_them(monkeypatch, capsys) -> None:
    monkeypatch.delenv("TRUNNION_SOURCES", raising=False)
    monkeypatch.setattr("real_hosts.building.find_nvcc", lambda: Path("nvcc"))
    assert real_sources.main(["--compile-only"]) == real_sources.UNABLE == 77
    assert "TRUNNION_SOURCES names no folder of copies; get it: git init" in capsys.readouterr().err


def test_without_nvcc_it_says_so(monkeypatch, capsys) -> None:
    def find() -> Path:
        raise NoCompilerError("no nvcc")

    monkeypatch.setattr("real_hosts.building.find_nvcc", find)
    assert real_sources.main(["--compile-only"]) == real_sources.UNABLE == 77
    assert capsys.readouterr().err == "no nvcc\n"


@pytest.mark.parametrize("problem", ["", "no header"])
def test_compiling_alone_says_what_became_of_each(problem: str, monkeypatch, capsys) -> None:
    first, *rest = libraries(PROJECTS)
    built = {first: done(problem), **{one: done() for one in rest}}
    monkeypatch.setattr(real_sources, "start", lambda *_: built)
    assert real_sources.main(["--compile-only"]) == bool(problem)
    said = capsys.readouterr()
    assert said.out.count(": 2 s") == len(built) == 6
    assert (said.out.count("FAILED"), said.err) == ((1, "no header\n") if problem else (0, ""))


@pytest.mark.parametrize("arguments", [["--only", "nonsense"], ["--jobs", "0"]])
def test_wrong_options_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        real_sources.main(arguments)


def test_all_ways_are_measured_in_one_run(monkeypatch, tmp_path: Path, capsys) -> None:
    def add(bench: Bench, backend: str) -> None:
        bench.add(f"{backend} __call__", "checks", lambda: PythonCall("1", {}))

    def add_theirs(bench: Bench, _: object) -> None:
        bench.trials[bench.first] = PythonCall("1", {})

    def add_one(bench: Bench, name: str, does: str, make) -> None:
        bench.does[name] = does
        bench.trials[name] = make()

    for name, does in {"add_ours": add, "add_theirs": add_theirs, "add": add_one}.items():
        monkeypatch.setattr(Bench, name, does)
    monkeypatch.setattr(real_sources, "Bench", lambda project: Bench(project, "cpu"))
    monkeypatch.setattr(real_sources, "start", lambda *_: {})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a GPU")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    files = [tmp_path / name for name in ("a.json", "a.md")]
    words = ["--rounds", "2", "--json", str(files[0]), "--markdown", str(files[1])]
    assert (
        real_sources.main([*words, "--only", "kittens_gemm", "cutlass_gemm"]) == 1
    )  # two rows were not measured
    sections = json.loads(files[0].read_text("utf-8"))["sections"]
    assert [section["program"] for section in sections] == ["kittens_gemm", "cutlass_gemm"]
    assert [row["call"] is None for row in sections[0]["rows"]] == [False] * 4
    assert [row["call"] is None for row in sections[1]["rows"]] == [False, True, True, False, False, False]
    assert files[1].read_text("utf-8") + "\n" == capsys.readouterr().out
    assert real_sources.main(["--rounds", "1", "--only", "kittens_gemm"]) == 0
