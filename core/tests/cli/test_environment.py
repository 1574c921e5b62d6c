"""What is around the plugins, on machines of every kind."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import platformdirs
import pytest

from trunnion.artifacts.location import VARIABLE
from trunnion.call_helper import Choice
from trunnion.cli import environment as module
from trunnion.cli.environment import (
    caches,
    call_helper,
    environment,
    environment_findings,
    missing_parts,
    simulator,
    tensor_library,
    versions,
)
from trunnion.contract.diagnosis import Component, Severity
from trunnion.signing.keys import PASSWORD
from trunnion.toolchain.driver import InstalledDriver

if TYPE_CHECKING:
    from collections.abc import Callable


def _driver(cuda: tuple[int, int] | None, *, simulated: bool = False) -> InstalledDriver:
    return InstalledDriver(Component(name="libcuda.so.1", kind="driver"), cuda, (), simulated)


def test_versions_are_those_that_are_installed() -> None:
    found = versions()
    assert found["trunnion"] == metadata.version("trunnion")
    assert found["torch"] == metadata.version("torch")
    assert found["python"].count(".") == 2
    assert {"pluggy", "cuda-bindings", "apache-tvm-ffi"} <= set(found)


def test_versions_tell_of_every_distribution_of_ours_and_of_what_it_drives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An importer has no entry point, and what it drives may come with an extra, or be missing."""
    monkeypatch.syspath_prepend(str(tmp_path))
    wanted = ("trunnion==0.1", "Driven.Thing>=2; extra == 'driven'", "absent-thing")
    needs = "".join(f"\nRequires-Dist: {one}" for one in wanted)
    for name, version, more in (("trunnion_zeta", "0.7", needs), ("driven-thing", "2.5", "")):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}{more}\n")
    found = versions()
    told = {name: found[name] for name in ("trunnion-zeta", "driven-thing", "absent-thing")}
    assert told == {"trunnion-zeta": "0.7", "driven-thing": "2.5", "absent-thing": ""}
    first, *others = found
    assert (first, others) == ("python", sorted(others))


def test_of_two_versions_the_one_is_told_that_python_imports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "pluggy-99.0.dist-info").mkdir()
    (tmp_path / "pluggy-99.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: pluggy\nVersion: 99.0\n"
    )
    assert versions()["pluggy"] == "99.0"


def test_of_a_distribution_with_damaged_metadata_the_version_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "trunnion_zeta-0.7.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_bytes(b"Name: trunnion-zeta\nVersion: 0.7\nAuthor: Ren\xe9\n")
    (folder / "entry_points.txt").write_bytes(b"[trunnion]\nno line\nzeta = \xff\n")
    assert versions()["trunnion-zeta"] == "0.7"


def test_a_missing_runtime_is_told() -> None:
    assert [one.code for one in missing_parts({"apache-tvm-ffi": ""})] == ["cpp-runtime-missing"]
    assert list(missing_parts({"apache-tvm-ffi": "0.1"})) == []


def test_the_environment_is_told_with_all_that_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNNION_TEST", "1")
    monkeypatch.delenv(PASSWORD, raising=False)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    found = environment()
    assert found["TRUNNION_TEST"] == "1"
    assert found["CUDA_HOME"] is None
    assert PASSWORD not in found


def test_a_password_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "a secret")
    assert environment()[PASSWORD] == "set"


@pytest.mark.parametrize(
    ("variables", "codes"),
    [
        ({}, []),
        ({"CUDA_PATH": "/a", "CUDA_HOME": "/b"}, ["cuda-roots-differ"]),
        ({"CUDA_PATH": "/a", "CUDA_HOME": "/a/"}, []),
        ({"CUDA_PATH": "/a"}, []),
        ({"CUDA_VISIBLE_DEVICES": ""}, ["devices-hidden"]),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, ["devices-hidden"]),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, []),
    ],
)
def test_what_is_likely_not_meant(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], codes: list[str]
) -> None:
    for name in ("CUDA_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert [finding.code for finding in environment_findings()] == codes


@pytest.fixture
def torch_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file in which an installed torch says what it was built for."""
    (tmp_path / "torch").mkdir()
    found = SimpleNamespace(version="2.11.0", locate_file=lambda path: tmp_path / path)
    monkeypatch.setattr(metadata, "distribution", lambda _: found)
    return tmp_path / "torch" / "version.py"


@pytest.mark.parametrize(
    ("line", "driver", "cuda", "codes"),
    [
        ("cuda: Optional[str] = '13.0'", (13, 0), "13.0", []),
        ("cuda = '12.8'", (13, 0), "12.8", []),
        ("cuda: Optional[str] = '13.2'", (13, 0), "13.2", ["torch-minor-version"]),
        ("cuda: Optional[str] = '13.0'", (12, 9), "13.0", ["torch-newer-than-driver"]),
        ("cuda: Optional[str] = None", (13, 0), "none", ["torch-without-cuda"]),
        ("cuda: Optional[str] = None", None, "none", []),
        ("raise SystemExit('it is not run')", None, "none", []),
    ],
)
def test_torch_and_driver(
    torch_version: Path, line: str, driver: tuple[int, int] | None, cuda: str, codes: list[str]
) -> None:
    torch_version.write_text(f"__version__ = '2.11.0'\n{line}\nhip: Optional[str] = '6.1'\n")
    facts, findings = tensor_library(_driver(driver))
    assert (facts["version"], facts["cuda"]) == ("2.11.0", cuda)
    assert [finding.code for finding in findings] == codes
    assert tensor_library(_driver(driver, simulated=True))[1] == ()


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", distribution)
    facts, (finding,) = tensor_library(_driver(None))
    assert (facts, finding.code) == ({}, "torch-missing")


@pytest.mark.parametrize("command", ["", "cc -g"])
def test_the_simulators_compiler(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("CC", command)
    facts, findings = simulator()
    assert findings == ()
    assert Path(facts["compiler"].split()[0]).is_file()
    assert facts["version"]


@pytest.mark.parametrize("command", ["no-such-compiler", "'unbalanced"])
def test_without_a_compiler_there_is_no_simulation(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("CC", command)
    facts, (finding,) = simulator()
    assert facts["compiler"] == ""
    assert finding.code == "simulator-compiler-missing"


@pytest.mark.parametrize("command", ["true", "false", "cc --no-such-option"])
def test_what_builds_nothing_is_no_compiler(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """``true --version`` succeeds, as a compiler's does."""
    monkeypatch.setenv("CC", command)
    facts, (finding,) = simulator()
    assert Path(facts["compiler"].split()[0]).is_file()
    assert finding.code == "simulator-compiler-broken"
    assert finding.severity is Severity.WARNING
    assert "CC" in finding.advice
    assert "trunnion-trial" not in finding.summary, "that folder is gone"


def test_elsewhere_there_is_no_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "platform", "darwin")
    assert [finding.code for finding in simulator()[1]] == ["simulator-platform"]


@pytest.fixture
def _cache_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)


@pytest.mark.usefixtures("_cache_is_on")
def test_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)
    folders, findings = caches()
    assert {one["state"] for one in folders.values()} == {"not there yet"}
    assert findings == ()
    kept = tmp_path / "trunnion" / "artifacts"
    kept.mkdir(parents=True)
    kept.chmod(0o700)
    assert caches()[0]["artifacts"] == {"path": str(kept), "state": "usable"}
    kept.chmod(0o777)
    assert "can be written by others" in caches()[0]["artifacts"]["state"]
    assert [finding.code for finding in caches()[1]] == ["artifacts-cache"]
    kept.rmdir()
    kept.symlink_to(tmp_path / "nowhere")
    assert caches()[0]["artifacts"]["state"] == "a link to nothing"


def _link(place: Path) -> Path:
    place.symlink_to(place.with_name("nowhere"))
    return place


def _file(place: Path) -> Path:
    place.write_text("")
    return place / "below"


@pytest.mark.usefixtures("_cache_is_on")
@pytest.mark.parametrize("made", [_link, _file, lambda _: Path("/proc/nowhere")])
def test_a_cache_that_cannot_be_made_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: Callable[[Path], Path]
) -> None:
    """Not even by whom permissions do not bind: in ``/proc`` nobody makes a folder."""
    base = made(tmp_path / "place")
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: base / name)
    folders, findings = caches()
    assert all(one["state"].startswith("cannot be made in /") for one in folders.values())
    assert [one.code for one in findings] == ["simulator-cache", "artifacts-cache"]
    assert all("XDG_CACHE_HOME" in one.advice for one in findings)


def test_what_the_environment_says_of_the_cache_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    assert caches()[0]["artifacts"]["state"] == "turned off"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "moved"))
    assert caches()[0]["artifacts"] == {"path": str(tmp_path / "moved"), "state": "not there yet"}
    monkeypatch.setenv(VARIABLE, "of")
    folders, findings = caches()
    assert VARIABLE in folders["artifacts"]["state"]
    assert [(one.code, VARIABLE in one.advice) for one in findings] == [("artifacts-cache", True)]


def test_looking_at_caches_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "a" / name)
    caches()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("choice", "facts", "summary"),
    [
        (Choice(None, "", "", "none is installed"), ("none", "", "none is installed"), None),
        (
            Choice(object(), "quick", "acme 1", "it is installed"),
            ("quick", "acme 1", "it is installed"),
            None,
        ),
        (
            Choice(None, "quick", "acme 1", "it cannot be used: no", broken=True),
            ("none", "acme 1", "it cannot be used: no"),
            "no call helper is used: acme 1: it cannot be used: no",
        ),
        (
            Choice(None, "", "", "there are several", broken=True, advice="name one"),
            ("none", "", "there are several"),
            "no call helper is used: there are several",
        ),
    ],
)
def test_the_call_helper(
    monkeypatch: pytest.MonkeyPatch, choice: Choice, facts: tuple[str, ...], summary: str | None
) -> None:
    monkeypatch.setattr(module, "installed_choice", lambda: choice)
    found, findings = call_helper()
    assert tuple(found[key] for key in ("used", "distribution", "reason")) == facts
    assert [finding.summary for finding in findings] == ([] if summary is None else [summary])
    assert all(finding.severity is Severity.WARNING for finding in findings)
    assert all(finding.advice.endswith(choice.advice) for finding in findings)
