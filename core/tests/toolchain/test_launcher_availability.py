"""The probe, on machines where this or that is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from trunnion.errors import BackendUnavailableError
from trunnion.toolchain import launcher_availability
from trunnion.toolchain.launcher_availability import probe_launchers
from trunnion.toolchain.search import Place
from trunnion.toolchain.torch_release import LEAST_TORCH, refuse_old_torch

if TYPE_CHECKING:
    from pathlib import Path


def _torch(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Have this torch installed, or none, and none imported."""

    def find(name: str) -> str:
        if name == "torch" and not version:
            raise metadata.PackageNotFoundError(name)
        return version if name == "torch" else real(name)

    real = metadata.version
    monkeypatch.setattr(metadata, "version", find)
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def test_here_it_works_and_says_with_what() -> None:
    found = probe_launchers("acme", "trunnion-acme")
    assert found.usable, found.detail
    assert f"apache-tvm-ffi {metadata.version('apache-tvm-ffi')}" in found.detail
    assert f"torch {metadata.version('torch')}" in found.detail
    assert "cuda.h 13.0" in found.detail


@pytest.mark.parametrize(
    ("missing", "advice"),
    [
        ("host_compiler", "apt-get install g++"),
        ("ffi_files", "run: pip install 'apache-tvm-ffi>=0.1.11'"),
        ("cuda_headers", "run: pip install nvidia-cuda-runtime"),
    ],
)
def test_a_part_that_is_missing_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, missing: str, advice: str
) -> None:
    def refuse(plugin: str) -> object:
        assert plugin == "acme"
        raise BackendUnavailableError(plugin, "its toolchain", f"it is missing; {advice}")

    monkeypatch.setattr(f"trunnion.toolchain.host.{missing}", refuse)
    found = probe_launchers("acme", "trunnion-acme")
    assert not found.usable
    assert found.detail == f"it is missing; {advice}"


def test_for_the_cpu_nothing_of_cuda_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(plugin: str) -> object:
        raise BackendUnavailableError(plugin, "its toolchain", "there is no cuda.h; install it")

    assert probe_launchers("acme", "trunnion-acme", ("cuda", "cpu")).unusable == {}
    monkeypatch.setattr("trunnion.toolchain.host.cuda_headers", refuse)
    found = probe_launchers("acme", "trunnion-acme", ("cuda", "cpu"))
    assert found.usable
    assert found.unusable == {"cuda": "there is no cuda.h; install it"}
    assert "cuda.h" not in found.detail
    monkeypatch.setattr("trunnion.toolchain.host.ffi_files", refuse)
    assert not probe_launchers("acme", "trunnion-acme", ("cuda", "cpu")).usable


def test_without_a_compiler_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    found = probe_launchers("acme", "trunnion-acme")
    assert not found.usable
    assert "no C++ compiler can be used" in found.detail


def test_without_torch_it_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    _torch(monkeypatch, "")
    assert probe_launchers("acme", "trunnion-acme").usable
    assert "no torch here: it builds, it cannot call" in probe_launchers("acme", "trunnion-acme").detail
    refuse_old_torch("acme", "trunnion-acme")


@pytest.mark.parametrize("version", ["2.9.1", "2.9.1+cu128", "1.13.1", "2.1.0", "2.2", "unknown"])
def test_a_torch_that_is_too_old(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    _torch(monkeypatch, version)
    found = probe_launchers("acme", "trunnion-acme")
    assert not found.usable
    assert f"torch {version} is installed" in found.detail
    assert "run: pip install 'torch>=2.10'" in found.detail
    with pytest.raises(BackendUnavailableError) as caught:
        refuse_old_torch("acme", "trunnion-acme")
    assert (caught.value.name, caught.value.distribution) == ("acme", "trunnion-acme")
    assert caught.value.reason == found.detail


@pytest.mark.parametrize("version", ["2.10.0", "2.10.0+cpu", "2.10.0a0+git1234567", "2.13.0", "3.0"])
def test_a_torch_that_is_new_enough(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    _torch(monkeypatch, version)
    assert probe_launchers("acme", "trunnion-acme").usable
    refuse_old_torch("acme", "trunnion-acme")


def test_a_torch_that_is_imported_counts_before_one_that_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _torch(monkeypatch, "2.13.0")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.9.0"))
    assert not probe_launchers("acme", "trunnion-acme").usable
    with pytest.raises(BackendUnavailableError, match=r"torch 2\.9\.0 is installed"):
        refuse_old_torch("acme", "trunnion-acme")


def test_the_torch_of_the_tests_has_what_the_least_one_is_named_for() -> None:
    """The version stands for an attribute; where both can be seen, they agree."""
    code = "import torch; print(torch.__version__, hasattr(torch.Tensor, '__dlpack_c_exchange_api__'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    version, has = done.stdout.split()
    assert tuple(map(int, version.split(".")[:2])) >= LEAST_TORCH
    assert has == "True", "without TVM-FFI, which would add what is missing"


def test_the_driver_is_looked_for_and_not_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = tmp_path / "libcuda.so.1"
    monkeypatch.setattr(launcher_availability, "_DRIVER", "libtrunnion-nowhere.so.1")
    monkeypatch.setattr(
        launcher_availability, "loader_places", lambda _: [Place("a test", ""), Place("a test", str(library))]
    )
    assert probe_launchers("acme", "trunnion-acme").usable
    detail = probe_launchers("acme", "trunnion-acme").detail
    assert detail.endswith(
        "no NVIDIA driver here: for CUDA it builds, and launches on the simulated driver alone"
    )
    detail = probe_launchers("acme", "trunnion-acme", ("cpu", "cuda")).detail
    assert detail.endswith("on the simulated driver alone; for cpu it builds and launches")
    library.touch()
    assert f"driver: {library}" in probe_launchers("acme", "trunnion-acme").detail
    monkeypatch.setattr(launcher_availability, "_DRIVER", "libc.so.6")
    assert "driver: loaded already" in probe_launchers("acme", "trunnion-acme").detail


def test_the_probe_imports_neither_torch_nor_tvm_ffi_and_loads_no_driver() -> None:
    code = (
        "import sys; from trunnion.toolchain.launcher_availability import *;"
        "from trunnion.toolchain.torch_release import *;"
        "probe_launchers('acme', 'trunnion-acme'); refuse_old_torch('acme', 'trunnion-acme');"
        "print(sorted({'torch', 'tvm_ffi', 'numpy', 'cuda'} & set(sys.modules)));"
        "print([name for name in ('libcuda', 'libtvm_ffi') if name in open('/proc/self/maps').read()])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"
