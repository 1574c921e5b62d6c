"""The driver's version is asked without initialising it: absent, broken, real, simulated."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from trunnion.contract.diagnosis import Severity
from trunnion.toolchain import driver
from trunnion.toolchain.driver import installed_driver

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, object]:
    """A machine whose driver answers what is put into the returned table."""
    answer: dict[str, object] = {}
    monkeypatch.setattr(driver, "_loaded_here", dict)
    monkeypatch.setattr(driver, "inquire", lambda _, seconds: answer)
    monkeypatch.setattr(driver, "_answer", driver._answer.__wrapped__)
    monkeypatch.setattr(driver, "_KERNEL_MODULE", tmp_path / "version")
    monkeypatch.setattr(driver, "_WINDOWS_DEVICE", tmp_path / "dxg")
    return answer


def _module(tmp_path: Path) -> None:
    text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 07:18:58 UTC 2025\n"
    (tmp_path / "version").write_text(text)


def test_a_working_driver(elsewhere: dict[str, object], tmp_path: Path) -> None:
    elsewhere.update(status=0, version=13010, path="/nonexistent/libcuda.so.1")
    _module(tmp_path)
    found = installed_driver()
    assert found.cuda == (13, 1)
    assert found.component.version == "CUDA 13.1"
    assert "580.65.06" in found.component.detail
    assert found.findings == ()
    assert [one.path for one in found.component.candidates if one.chosen] == ["/nonexistent/libcuda.so.1"]


def test_no_driver_is_no_error(elsewhere: dict[str, object]) -> None:
    elsewhere["failure"] = "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"
    found = installed_driver()
    assert found.cuda is None
    (finding,) = found.findings
    assert (finding.severity, finding.code) == (Severity.INFO, "no-driver")
    assert "programs for the CPU run here" in finding.summary


def test_a_library_without_a_kernel_module_is_told(elsewhere: dict[str, object], tmp_path: Path) -> None:
    elsewhere.update(status=0, version=13000, path="/x/libcuda.so.1")
    assert [finding.code for finding in installed_driver().findings] == ["no-kernel-module"]
    (tmp_path / "dxg").touch()
    assert installed_driver().findings == ()


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 999, "version": 0, "path": "/x/libcuda.so.1"},
        {"failure": "OSError: libcuda.so.1: file too short"},
        {"failure": "it ended with status -11"},
    ],
)
def test_a_broken_driver_is_an_error(elsewhere: dict[str, object], answer: dict[str, object]) -> None:
    elsewhere.update(answer)
    (finding,) = installed_driver().findings
    assert (finding.severity, finding.code) == (Severity.ERROR, "broken-driver")


def test_a_kernel_module_without_a_library_is_an_error(elsewhere: dict[str, object], tmp_path: Path) -> None:
    elsewhere["failure"] = "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"
    _module(tmp_path)
    (finding,) = installed_driver().findings
    assert finding.code == "broken-driver"
    assert "580.65.06" in finding.advice


def test_a_file_that_is_no_library_is_met_in_a_process_of_its_own(tmp_path: Path) -> None:
    """The loader itself refuses it; this process loads nothing."""
    (tmp_path / "libcuda.so.1").write_bytes(b"\x7fELF nonsense")
    source = (
        "from trunnion.toolchain.driver import installed_driver\n"
        "found = installed_driver()\n"
        "assert [one.code for one in found.findings] == ['broken-driver'], found\n"
        "assert 'libcuda' not in open('/proc/self/maps').read()\n"
    )
    environment = {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


_FAKE = """
#include <stdlib.h>
int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
int cuInit(unsigned flags) { abort(); }
"""


def test_the_version_is_asked_and_nothing_initialised(tmp_path: Path) -> None:
    """A library that ends the process if ``cuInit`` is called."""
    (tmp_path / "fake.c").write_text(_FAKE)
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", str(tmp_path / "fake.c"), "-o", str(library)], check=True)
    source = (
        "import sys\n"
        "from trunnion.toolchain.driver import installed_driver\n"
        "found = installed_driver()\n"
        "assert found.cuda == (12, 8), found\n"
        "(chosen,) = (one for one in found.component.candidates if one.chosen)\n"
        "assert chosen.origin == 'LD_LIBRARY_PATH' and chosen.path == sys.argv[1], chosen\n"
        "assert 'libcuda' not in open('/proc/self/maps').read()\n"
    )
    environment = {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", source, str(library)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_simulated_driver_is_known_for_what_it_is() -> None:
    source = (
        "from trunnion import sim\n"
        "from trunnion.toolchain.driver import installed_driver\n"
        "sim.start(driver_version=12080)\n"
        "found = installed_driver()\n"
        "assert found.simulated and found.cuda == (12, 8) and found.findings == (), found\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_driver_that_does_not_answer_is_asked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = "#include <unistd.h>\n__attribute__((constructor)) static void hang(void) { pause(); }\n"
    (tmp_path / "hang.c").write_text(source)
    library = str(tmp_path / "libcuda.so.1")
    subprocess.run(["cc", "-shared", "-fPIC", str(tmp_path / "hang.c"), "-o", library], check=True)
    monkeypatch.setattr(driver, "_loaded_here", dict)
    monkeypatch.setattr(driver, "_SECONDS", 0.5)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    asked: list[str] = []
    ask = driver.inquire
    monkeypatch.setattr(driver, "inquire", lambda text, **how: (asked.append(text), ask(text, **how))[1])
    for _ in range(5):
        (finding,) = installed_driver().findings
        assert finding.code == "broken-driver"
        assert "did not answer within 0.5 s" in finding.summary
    assert len(asked) == 1
