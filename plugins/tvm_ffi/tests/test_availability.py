"""The probe, on machines where this or that is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest

from trunnion.errors import BackendUnavailableError
from trunnion_tvm_ffi.availability import LEAST_TORCH, LEAST_TVM_FFI, probe_backend, refuse_old_torch


def _install(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Have nothing installed but what is named, with underscores for hyphens, and no torch imported."""

    def version(name: str) -> str:
        found = versions.get(name.replace("-", "_"))
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def test_here_it_works() -> None:
    found = probe_backend()
    assert found.usable
    assert f"apache-tvm-ffi {metadata.version('apache-tvm-ffi')}" in found.detail
    assert f"torch {metadata.version('torch')}" in found.detail


def test_without_tvm_ffi(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch)
    found = probe_backend()
    assert not found.usable
    assert found.detail == "run: pip install 'apache-tvm-ffi>=0.1.11'"


@pytest.mark.parametrize("version", ["0.1.10", "0.1.8.post2", "0.0.99", "unknown"])
def test_a_tvm_ffi_that_is_too_old(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    _install(monkeypatch, apache_tvm_ffi=version)
    found = probe_backend()
    assert not found.usable
    assert found.detail == f"apache-tvm-ffi {version} is installed, run: pip install 'apache-tvm-ffi>=0.1.11'"


@pytest.mark.parametrize("version", ["0.1.11", "0.1.15.post2", "0.2.0rc1", "1.0"])
def test_a_tvm_ffi_that_is_new_enough(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    _install(monkeypatch, apache_tvm_ffi=version)
    assert probe_backend().usable


def test_the_least_version_is_the_one_that_is_asked_for() -> None:
    wanted = {line.partition(";")[0].strip() for line in metadata.requires("trunnion") or ()}
    assert [line for line in wanted if line.startswith("apache-tvm-ffi")] == [
        f"apache-tvm-ffi>={'.'.join(map(str, LEAST_TVM_FFI))}"
    ]


def test_without_torch_it_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, apache_tvm_ffi="0.1.15")
    assert probe_backend().usable
    assert "no torch here" in probe_backend().detail
    refuse_old_torch()


@pytest.mark.parametrize("version", ["2.9.1", "2.9.1+cu128", "1.13.1", "2.1.0", "2.2"])
def test_a_torch_that_is_too_old(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    _install(monkeypatch, apache_tvm_ffi="0.1.15", torch=version)
    found = probe_backend()
    assert not found.usable
    assert f"torch {version} is installed" in found.detail
    assert "run: pip install 'torch>=2.10'" in found.detail
    with pytest.raises(BackendUnavailableError) as caught:
        refuse_old_torch()
    assert (caught.value.name, caught.value.distribution) == ("tvm_ffi", "trunnion-tvm-ffi")
    assert caught.value.reason == found.detail


@pytest.mark.parametrize("version", ["2.10.0", "2.10.0+cpu", "2.10.0a0+git1234567", "2.13.0", "3.0"])
def test_a_torch_that_is_new_enough(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    _install(monkeypatch, apache_tvm_ffi="0.1.15", torch=version)
    assert probe_backend().usable
    refuse_old_torch()


def test_a_torch_that_is_imported_counts_before_one_that_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _install(monkeypatch, apache_tvm_ffi="0.1.15", torch="2.13.0")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.9.0"))
    assert not probe_backend().usable
    with pytest.raises(BackendUnavailableError, match=r"torch 2\.9\.0 is installed"):
        refuse_old_torch()


def test_the_torch_of_the_tests_has_what_the_least_one_is_named_for() -> None:
    """The version stands for an attribute; where both can be seen, they agree."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import torch; print(torch.__version__, hasattr(torch.Tensor, '__dlpack_c_exchange_api__'))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    version, has = done.stdout.split()
    assert tuple(map(int, version.split(".")[:2])) >= LEAST_TORCH
    assert has == "True", "without TVM-FFI, which would add what is missing"


def test_the_probe_imports_neither_torch_nor_tvm_ffi() -> None:
    code = (
        "import sys; from trunnion_tvm_ffi.availability import *; probe_backend(); refuse_old_torch();"
        "print(sorted({'torch', 'tvm_ffi', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
