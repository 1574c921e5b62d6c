"""The probe, on machines where this or that is missing."""

from __future__ import annotations

from importlib import metadata

import pytest

from trunnion_tvm_ffi.availability import LEAST_TVM_FFI, probe_backend


def _install(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Have nothing installed but what is named, with underscores for hyphens."""

    def version(name: str) -> str:
        found = versions.get(name.replace("-", "_"))
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(metadata, "version", version)


def test_here_it_works() -> None:
    found = probe_backend()
    assert found.usable
    assert metadata.version("apache-tvm-ffi") in found.detail


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
