"""How the projects' host code is compiled: the command, where nvcc is looked for, and what becomes of a failure."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from real_hosts import building
from real_hosts.building import Library, MissingCopyError, NoCompilerError, find_nvcc, libraries, start
from real_hosts.project import Project, Way
from real_hosts.projects import PROJECTS

if TYPE_CHECKING:
    from pathlib import Path

WAYS = (Way("a", "does"), Way("b", "does", ("X",)), Way("c", "does"))


def project(root: Path) -> Project:
    copy = SimpleNamespace(name="some-1.0", folder=lambda: root)
    subject = SimpleNamespace(__name__="real_programs.some", COPY=copy)
    made = Project(subject, None, ("include",), WAYS, tuple, tuple, ("-std=c++20",), {"text.h": "int x;"})
    assert (made.name, made.copied, made.source.name) == ("some", "some-1.0", "some.cu")
    return made


def nvcc(folder: Path, script: str) -> Path:
    """Write a compiler that is a script; $out is the file it is to write."""
    path = folder / "nvcc"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f'#!/bin/sh\nfor one in "$@"; do case $one in --output-file=*) out=${{one#*=}};; esac; done\n{script}\n'
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return path


def test_ways_of_the_same_macros_share_a_library(tmp_path: Path) -> None:
    one, other = libraries((project(tmp_path),))
    assert (one.name, other.name) == ("some", "some.X")
    command = other.command(tmp_path / "nvcc", tmp_path / "out")
    assert command[0] == str(tmp_path / "nvcc")
    assert {"-gencode=arch=compute_90a,code=sm_90a", "-std=c++20", "-DX"} < set(command)
    assert f"-I{tmp_path / 'include'}" in command
    assert command[-1] == f"--output-file={tmp_path / 'out' / 'some.X'}.so"
    assert "-DX" not in one.command(tmp_path / "nvcc", tmp_path / "out")


@pytest.mark.parametrize("one", PROJECTS, ids=lambda one: one.name)
def test_every_project_has_a_file_that_exports_its_ways(one: Project) -> None:
    text = one.source.read_text("utf-8")
    for way in one.ways:
        assert f"EXPORT double {way.function}(" in text
    assert text.count("EXPORT double ") == len({way.function for way in one.ways})
    assert one.shape in one.subject.SHAPES


def test_a_copy_that_is_missing_is_an_error_that_says_how_to_get_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TRUNNION_SOURCES", str(tmp_path))
    monkeypatch.setenv("PATH", str(nvcc(tmp_path / "bin", "exit 0").parent))
    with pytest.raises(MissingCopyError, match=r"get it: git init \S+ && .* https://github\.com/"):
        start(libraries(PROJECTS), tmp_path, 1)


def test_nvcc_is_that_of_the_path_or_of_cuda_home(tmp_path: Path, monkeypatch) -> None:
    on_path, at_home = (nvcc(tmp_path / name / "bin", "exit 0") for name in ("path", "home"))
    monkeypatch.setenv("PATH", str(on_path.parent))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert find_nvcc() == on_path
    monkeypatch.setenv("PATH", "")
    assert find_nvcc() == at_home


def test_no_nvcc_is_an_error_that_says_where_it_was_looked_for(monkeypatch) -> None:
    monkeypatch.setattr(building.shutil, "which", lambda *_, **__: None)
    with pytest.raises(NoCompilerError, match="no nvcc in the PATH, CUDA_HOME/bin"):
        find_nvcc()


def test_a_library_that_does_not_compile_has_what_nvcc_said_and_ends_no_other(tmp_path, monkeypatch) -> None:
    script = (
        'case $out in *X.so) echo "no such header" >&2; exit 2;; esac; cat "$(dirname $out)/text.h" >$out'
    )
    path = nvcc(tmp_path / "bin", script)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    one, other = libraries((project(tmp_path),))
    built = {library: future.result() for library, future in start((one, other), tmp_path, 2).items()}
    assert built[one].problem == ""
    assert built[one].path.read_text("utf-8") == "int x;"
    assert built[one].seconds > 0
    assert built[other].problem == "no such header\n"
    assert Library(one.project) in built
