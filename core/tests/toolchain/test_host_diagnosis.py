"""What the doctor is told of the toolchain, where it is whole and where it is not."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

import pytest

from trunnion.contract.diagnosis import Component, Diagnosis, Severity
from trunnion.toolchain import host_headers
from trunnion.toolchain.host_diagnosis import diagnose_host


def component(found: Diagnosis, name: str) -> Component:
    (one,) = (one for one in found.components if one.name == name)
    return one


def test_a_whole_toolchain_is_healthy(real, monkeypatch) -> None:
    monkeypatch.setenv("CXX", real)
    found = diagnose_host()
    assert found.findings == ()
    assert [one.name for one in found.components] == ["apache-tvm-ffi", "host compiler", "cuda.h"]
    for one in found.components:
        assert one.version
        assert Path(one.chosen).exists()
    for name in ("host compiler", "cuda.h"):
        (taken,) = (one for one in component(found, name).candidates if one.chosen)
        assert taken.path == component(found, name).chosen
        assert taken.reason == "this one is used"
        assert all(one.reason for one in component(found, name).candidates)


def test_without_cuda_its_headers_do_not_count(real, monkeypatch) -> None:
    monkeypatch.setenv("CXX", real)
    monkeypatch.setattr(host_headers, "_USUAL", ())
    assert [one.name for one in diagnose_host(None).components] == ["apache-tvm-ffi", "host compiler"]


def says(version: str) -> str:
    return f"echo 'Target: {platform.machine()}-linux-gnu' >&2; echo '{version}' >&2"


def test_every_name_is_listed_with_what_became_of_it(script, only_path) -> None:
    script("bin/g++", "exit 1")
    script("bin/c++", says("gcc version 12.2.0"))
    script("bin/clang++", says("clang version 17.0.6"))
    compiler = component(diagnose_host(), "host compiler")
    assert [(one.origin, one.chosen, one.reason) for one in compiler.candidates] == [
        ("CXX", False, "it is not set"),
        ("PATH: g++", False, "it does not say that it is GCC or Clang"),
        ("PATH: c++", True, "this one is used"),
        ("PATH: clang++", False, "another one comes first"),
    ]
    assert compiler.chosen == str(only_path / "c++")
    assert compiler.version == "g++ 12.2.0"
    assert compiler.detail == f"gcc version 12.2.0; for {platform.machine()}-linux-gnu"


def test_a_cxx_that_cannot_be_used_is_not_replaced(script, only_path, monkeypatch) -> None:
    script("bin/g++", says("gcc version 12.2.0"))
    monkeypatch.setenv("CXX", "/nonexistent/g++ -O2")
    found = diagnose_host()
    (finding,) = (one for one in found.findings if one.code == "host-compiler-missing")
    assert finding.severity is Severity.ERROR
    assert "CXX='/nonexistent/g++ -O2': it does not exist" in finding.summary
    assert "it is not on PATH" not in finding.summary, "only what was named counts"
    assert "apt-get install g++" in finding.advice
    compiler = component(found, "host compiler")
    assert (compiler.chosen, compiler.version) == ("", "")
    assert [one.reason for one in compiler.candidates[:2]] == ["it does not exist", "CXX names another one"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('test "$1" = -v || { echo "as: not found" >&2; exit 1; }', "as: not found"),
        ('test "$1" = -v || exit 1', "it fails and prints nothing"),
        ("true", "it reported success, and made nothing"),
        (
            'test "$1" = -v || { echo "g++: fatal error: cannot execute \'cc1plus\'" >&2; exit 1; }',
            "compile C++",
        ),
    ],
)
def test_one_that_says_its_version_and_builds_nothing_is_found_out(script, only_path, body, problem) -> None:
    script("bin/g++", f"{body}\n" + says("gcc version 12.2.0"))
    found = diagnose_host(None)
    (finding,) = found.findings
    assert (finding.severity, finding.code) == (Severity.ERROR, "host-compiler-broken")
    assert problem in finding.summary
    assert component(found, "host compiler").chosen == str(only_path / "g++")


def test_a_machine_with_nothing(only_path, monkeypatch, tmp_path) -> None:
    for name in ("CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(host_headers, "_USUAL", (str(tmp_path / "none"),))
    monkeypatch.setattr(host_headers, "wheel_places", lambda _: iter(()))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = diagnose_host()
    assert {one.code: one.severity for one in found.findings} == {
        "tvm-ffi-missing": Severity.ERROR,
        "host-compiler-missing": Severity.ERROR,
        "cuda-header-missing": Severity.ERROR,
    }
    assert all(one.advice for one in found.findings)
    assert all(one.chosen == "" for one in found.components)


def test_old_headers_are_listed_with_their_version(only_path, monkeypatch, tmp_path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/cuda.h").write_text("#define CUDA_VERSION 11080\n")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    reasons = {one.origin: one.reason for one in component(diagnose_host(), "cuda.h").candidates}
    assert reasons["CUDA_HOME"] == "it is of CUDA 11.8; 12.8 or newer is needed"


def test_a_real_compiler_leaves_nothing_behind(real, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("CXX", shutil.which(real) or real)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert diagnose_host(None).healthy
    assert list(tmp_path.iterdir()) == []
