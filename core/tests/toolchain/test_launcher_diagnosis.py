"""What the doctor is told, on machines where this or that is missing or does not fit."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from trunnion.contract.diagnosis import Component, Diagnosis, Finding, Severity
from trunnion.toolchain import host_diagnosis, host_headers, launcher_diagnosis, torch_release
from trunnion.toolchain.driver import InstalledDriver
from trunnion.toolchain.launcher_diagnosis import diagnose_launchers
from trunnion.toolchain.search import Place


@pytest.fixture(autouse=True)
def _no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    driver(monkeypatch, None)


def driver(monkeypatch: pytest.MonkeyPatch, cuda: tuple[int, int] | None, *, simulated: bool = False) -> None:
    """Have a driver that understands this version of CUDA, or none."""
    missing = () if cuda else (Finding(Severity.INFO, "no-driver", "there is none"),)
    found = InstalledDriver(Component(name="libcuda.so.1", kind="driver"), cuda, missing, simulated)
    monkeypatch.setattr(launcher_diagnosis, "installed_driver", lambda: found)


def codes(found: Diagnosis) -> dict[str, Severity]:
    return {finding.code: finding.severity for finding in found.findings}


def component(found: Diagnosis, name: str) -> Component:
    (one,) = (one for one in found.components if one.name == name)
    return one


def test_here_everything_is_found_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    driver(monkeypatch, (13, 0))
    found = diagnose_launchers()
    assert found.findings == ()
    assert [one.name for one in found.components] == [
        "apache-tvm-ffi",
        "host compiler",
        "cuda.h",
        "torch",
        "libcuda.so.1",
    ]
    for one in found.components[:4]:
        assert Path(one.chosen).exists(), one
        assert one.version, one
    assert component(found, "apache-tvm-ffi").version == metadata.version("apache-tvm-ffi")
    assert component(found, "torch").version == metadata.version("torch")
    for name in ("host compiler", "cuda.h"):
        (taken,) = (one for one in component(found, name).candidates if one.chosen)
        assert taken.path == component(found, name).chosen
        assert all(one.reason for one in component(found, name).candidates)


def test_without_tvm_ffi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(host_headers, "FFI_DISTRIBUTION", "trunnion-nowhere")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])  # what was found is remembered for each path
    found = diagnose_launchers()
    assert codes(found) == {"tvm-ffi-missing": Severity.ERROR, "no-driver": Severity.INFO}
    assert found.findings[0].summary == "trunnion-nowhere is not installed"
    assert found.findings[0].advice == "pip install 'apache-tvm-ffi>=0.1.11'"
    assert component(found, "apache-tvm-ffi").chosen == ""


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    found = diagnose_launchers()
    assert codes(found)["host-compiler-missing"] is Severity.ERROR
    assert "g++: it is not on PATH" in found.findings[0].summary
    assert "apt-get install g++" in found.findings[0].advice
    assert component(found, "host compiler").chosen == ""
    assert not any(one.chosen for one in component(found, "host compiler").candidates)


def test_the_compiler_that_cxx_names_is_used_and_every_other_is_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = shutil.which("g++") or shutil.which("clang++")
    assert named is not None
    monkeypatch.setenv("CXX", named)
    compiler = component(diagnose_launchers(), "host compiler")
    first, *others = compiler.candidates
    assert (first.origin, first.path, first.chosen) == (f"CXX: {named}", named, True)
    assert [one.origin for one in others] == ["PATH: g++", "PATH: c++", "PATH: clang++"]
    assert not any(one.chosen for one in others)


def test_a_compiler_that_cxx_names_in_vain_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/c++")
    found = diagnose_launchers()
    assert codes(found)["host-compiler-missing"] is Severity.ERROR
    reasons = {one.origin: one.reason for one in component(found, "host compiler").candidates}
    assert reasons["CXX: /nowhere/c++"] == "it does not exist"
    assert "CXX names another one" in reasons.values()


def test_without_the_header(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    places = (Place("a test", str(tmp_path), "it holds no cuda.h"),)
    monkeypatch.setattr(host_headers, "cuda_places", lambda: iter(places))
    monkeypatch.setattr(host_diagnosis, "cuda_places", lambda: iter(places))
    found = diagnose_launchers()
    assert codes(found)["cuda-header-missing"] is Severity.ERROR
    assert "pip install nvidia-cuda-runtime" in found.findings[0].advice
    (one,) = component(found, "cuda.h").candidates
    assert (one.chosen, one.reason) == (False, "it holds no cuda.h")
    for_both = diagnose_launchers(("cuda", "cpu"))
    assert codes(for_both)["cuda-header-missing"] is Severity.WARNING
    assert for_both.healthy


@pytest.mark.parametrize(("version", "too_old"), [("2.9.1", True), ("2.10.0", False)])
def test_a_torch_that_is_too_old(monkeypatch: pytest.MonkeyPatch, version: str, too_old: bool) -> None:
    for module in (torch_release, launcher_diagnosis):
        monkeypatch.setattr(module, "installed_torch", lambda: version)
    found = diagnose_launchers()
    assert codes(found).get("torch-too-old") == (Severity.ERROR if too_old else None)
    assert found.healthy is not too_old
    assert component(found, "torch").version == version


def test_without_torch_nothing_is_said_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (torch_release, launcher_diagnosis):
        monkeypatch.setattr(module, "installed_torch", lambda: None)
    found = diagnose_launchers()
    assert codes(found) == {"no-driver": Severity.INFO}
    assert component(found, "torch").detail == "not installed"


@pytest.mark.parametrize(
    ("cuda", "simulated", "too_old"),
    [((11, 8), False, True), ((12, 0), False, False), ((11, 8), True, False)],
)
def test_the_driver_has_to_have_libraries(
    monkeypatch: pytest.MonkeyPatch, cuda: tuple[int, int], simulated: bool, too_old: bool
) -> None:
    driver(monkeypatch, cuda, simulated=simulated)
    assert codes(diagnose_launchers()) == ({"driver-too-old": Severity.ERROR} if too_old else {})


def test_it_imports_neither_torch_nor_tvm_ffi_and_loads_no_driver() -> None:
    code = (
        "import sys; from trunnion.toolchain.launcher_diagnosis import diagnose_launchers; diagnose_launchers();"
        "print(sorted({'torch', 'tvm_ffi', 'numpy', 'cuda'} & set(sys.modules)));"
        "print([name for name in ('libcuda', 'libtvm_ffi') if name in open('/proc/self/maps').read()])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"
