"""What the doctor is told of the toolchain: what is here, and what does not fit, on machines of every kind."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from trunnion.contract.diagnosis import Component, Diagnosis, Severity
from trunnion.toolchain.driver import InstalledDriver
from trunnion.toolchain.search import Place
from trunnion_nvrtc import diagnosis, installation
from trunnion_nvrtc.diagnosis import diagnose_backend, diagnose_compiler


class Machine:
    """A machine with nothing installed; what is said of it is installed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bindings = "13.0.1"
        self.answers: dict[str, dict[str, object]] = {
            name: {"failure": f"{name} is not found"} for name in ("nvrtc", "nvJitLink", "cudart", "cccl")
        }
        self.driver: tuple[int, int] | None = None
        self.simulated = False

    def library(self, name: str, version: tuple[int, int], beside: str = "") -> None:
        path = self.root / "lib" / f"lib{name}.so.{version[0]}"
        path.parent.mkdir(exist_ok=True)
        path.touch()
        if beside:
            (path.parent / f"libnvrtc-builtins.so.{beside}").touch()
        self.answers[name] = {"path": str(path), "origin": "conda", "version": list(version)}

    def headers(self, version: int) -> None:
        (self.root / "crt").mkdir(exist_ok=True)
        (self.root / "crt" / "mma.h").touch()
        (self.root / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {version}\n")
        self.answers["cudart"] = {"path": str(self.root)}

    def distribution(self, name: str) -> object:
        if name != "cuda-bindings" or not self.bindings:
            raise metadata.PackageNotFoundError(name)
        return SimpleNamespace(version=self.bindings, locate_file=lambda path: self.root / path)

    def installed_driver(self) -> InstalledDriver:
        return InstalledDriver(Component(name="libcuda.so.1", kind="driver"), self.driver, (), self.simulated)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setattr(installation, "inquire", lambda _: machine.answers)
    monkeypatch.setattr(metadata, "distribution", machine.distribution)
    monkeypatch.setattr(diagnosis, "installed_driver", machine.installed_driver)
    return machine


def codes(found: Diagnosis) -> dict[str, Severity]:
    return {finding.code: finding.severity for finding in found.findings}


def complete(machine: Machine) -> None:
    machine.library("nvrtc", (13, 0), beside="13.0.88")
    machine.library("nvJitLink", (13, 0))
    machine.headers(13000)
    machine.driver = (13, 0)


def test_here_the_compiler_is_found_as_it_is_loaded() -> None:
    found = diagnose_compiler()
    assert found.healthy
    by_name = {component.name: component for component in found.components}
    nvrtc = by_name["nvrtc"]
    (taken,) = (one for one in nvrtc.candidates if one.chosen)
    assert taken.path == nvrtc.chosen
    assert Path(nvrtc.chosen).is_file()
    assert nvrtc.version.startswith("13.")
    assert by_name["nvrtc-builtins"].version.startswith(nvrtc.version)
    assert by_name["cuda-bindings"].version == metadata.version("cuda-bindings")


def test_the_places_are_those_that_pathfinder_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_PREFIX", "/conda")
    monkeypatch.setenv("CUDA_PATH", "/toolkit")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/loader")
    component, _ = installation.library("nvrtc", {})
    paths = [one.path for one in component.candidates]
    wanted = [
        "/nvidia/cu13/lib/libnvrtc.so.13",
        "/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "/conda/lib64/libnvrtc.so.13",
        "/loader/libnvrtc.so.13",
        "/toolkit/lib64/libnvrtc.so.13",
    ]
    places = [next(i for i, path in enumerate(paths) if path.endswith(end)) for end in wanted]
    assert places == sorted(places), "in the order of the search"
    headers, _ = installation.headers("cccl", {})
    ends = ("nvidia/cu13/include/cccl", "nvidia/cuda_cccl/include", "/toolkit/include/cccl")
    assert all(any(one.path.endswith(end) for one in headers.candidates) for end in ends)


def test_a_complete_machine_has_no_findings(machine: Machine) -> None:
    complete(machine)
    assert codes(diagnose_compiler()) == {}
    assert codes(diagnose_backend()) == {}


def test_a_bare_machine(machine: Machine) -> None:
    machine.bindings = ""
    found = diagnose_compiler()
    assert codes(found) == {
        "bindings-missing": Severity.ERROR,
        "compiler-missing": Severity.ERROR,
        "linker-missing": Severity.INFO,
        "headers-missing": Severity.WARNING,
    }
    assert "nvrtc is not found" in found.findings[1].summary
    assert all("pip install" in finding.advice for finding in found.findings)
    assert codes(diagnose_backend()) == {"bindings-missing": Severity.ERROR}


def test_bindings_of_another_major(machine: Machine) -> None:
    complete(machine)
    machine.bindings = "12.9.1"
    assert codes(diagnose_compiler()) == codes(diagnose_backend()) == {"bindings-major": Severity.ERROR}


def test_a_compiler_of_another_major_than_the_bindings(machine: Machine) -> None:
    complete(machine)
    machine.library("nvrtc", (12, 9), beside="12.9")
    assert codes(diagnose_compiler())["compiler-major"] is Severity.ERROR


@pytest.mark.parametrize(("beside", "code"), [("", "builtins-missing"), ("13.1.80", "builtins-version")])
def test_builtins_must_lie_beside_the_compiler(machine: Machine, beside: str, code: str) -> None:
    complete(machine)
    for old in (machine.root / "lib").glob("*builtins*"):
        old.unlink()
    machine.library("nvrtc", (13, 0), beside=beside)
    assert codes(diagnose_compiler()) == {code: Severity.ERROR}


@pytest.mark.parametrize(
    ("driver", "word"),
    [((12, 8), "newer driver"), ((13, 0), None), ((13, 1), None), ((12, 9), "newer driver")],
)
def test_compiler_and_driver(machine: Machine, driver: tuple[int, int], word: str | None) -> None:
    complete(machine)
    machine.driver = driver
    found = [finding for finding in diagnose_compiler().findings if finding.code.startswith("compiler")]
    assert [finding.severity for finding in found] == ([] if word is None else [Severity.WARNING])
    assert all(word in finding.summary for finding in found)


def test_a_newer_compiler_of_the_drivers_major_makes_cubins_that_run(machine: Machine) -> None:
    complete(machine)
    (machine.root / "lib" / "libnvrtc-builtins.so.13.0.88").unlink()
    machine.library("nvrtc", (13, 2), beside="13.2.1")
    machine.library("nvJitLink", (13, 2))
    (finding,) = diagnose_compiler().findings
    assert finding.code == "compiler-newer-than-driver"
    assert "cubins run, PTX does not" in finding.summary


def test_a_driver_too_old_to_launch(machine: Machine) -> None:
    machine.driver = (12, 8)
    assert codes(diagnose_backend()) == {"driver-too-old": Severity.ERROR}
    machine.simulated = True
    assert codes(diagnose_backend()) == {}, "the simulated driver says what it was told to say"


@pytest.mark.parametrize("version", [(12, 9), (14, 0)])
def test_a_linker_that_does_not_fit(machine: Machine, version: tuple[int, int]) -> None:
    complete(machine)
    machine.library("nvJitLink", version)
    assert codes(diagnose_compiler()) == {"linker-version": Severity.WARNING}


def test_headers_of_another_major(machine: Machine) -> None:
    complete(machine)
    machine.headers(12090)
    assert codes(diagnose_compiler()) == {"headers-version": Severity.WARNING}


def test_headers_without_crt(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A wheel of its own has them, which is easily forgotten."""
    complete(machine)
    (machine.root / "crt" / "mma.h").rename(tmp_path / "mma.h")
    monkeypatch.setattr(installation, "cuda_places", tuple)
    (finding,) = diagnose_compiler().findings
    assert (finding.code, finding.severity) == ("headers-crt", Severity.WARNING)
    assert finding.advice == "pip install 'nvidia-cuda-crt==13.*'"
    other = tmp_path / "toolkit"
    (other / "crt").mkdir(parents=True)
    (other / "crt" / "mma.h").touch()
    (other / "cuda_runtime_api.h").write_text("#define CUDART_VERSION 13010\n")
    monkeypatch.setattr(installation, "cuda_places", lambda: [Place("CUDA_HOME", str(other))])
    (finding,) = diagnose_compiler().findings
    assert finding.severity is Severity.INFO
    assert finding.summary.endswith(f"those in {other} stand in")


def test_a_search_that_crashes_is_told(machine: Machine) -> None:
    machine.answers = {"failure": "it ended with status -11"}
    found = diagnose_compiler()
    assert codes(found)["compiler-missing"] is Severity.ERROR
    assert "status -11" in next(one.summary for one in found.findings if one.code == "compiler-missing")


def test_nothing_is_loaded_or_imported() -> None:
    code = (
        "import sys\n"
        "from trunnion_nvrtc.diagnosis import diagnose_backend, diagnose_compiler\n"
        "diagnose_backend(), diagnose_compiler()\n"
        "assert not {'cuda', 'torch'} & set(sys.modules)\n"
        "maps = open('/proc/self/maps').read()\n"
        "assert 'libcuda' not in maps and 'libnvrtc' not in maps\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
