"""The probes, on machines where this or that is missing."""

from __future__ import annotations

import ctypes
from importlib import metadata
from pathlib import Path

import pytest

from trunnion_nvrtc import availability
from trunnion_nvrtc.availability import find_library, probe_backend, probe_compiler


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine with nothing installed; what is put into the returned table is installed."""
    installed: dict[str, str] = {}

    monkeypatch.setattr(availability, "version_of", installed.get)
    monkeypatch.setattr(availability, "nvrtc_in_wheels", lambda: ("/nonexistent/libnvrtc.so.13",))
    monkeypatch.setattr(availability, "find_library", lambda _: None)
    monkeypatch.setattr(availability, "is_loaded", lambda _: False)
    return installed


def test_here_it_compiles() -> None:
    found = probe_compiler()
    assert found.usable
    assert metadata.version("cuda-bindings") in found.detail


@pytest.mark.parametrize("probe", [probe_backend, probe_compiler])
def test_without_bindings(bare: dict[str, str], probe: object) -> None:
    assert callable(probe)
    assert probe().usable is False
    assert "pip install 'cuda-bindings==13.*'" in probe().detail
    bare["cuda-bindings"] = "12.9.1"
    assert probe().usable is False
    assert "12.9.1" in probe().detail


def test_without_nvrtc(bare: dict[str, str]) -> None:
    bare["cuda-bindings"] = "13.0.0"
    found = probe_compiler()
    assert not found.usable
    assert "pip install 'nvidia-cuda-nvrtc==13.*'" in found.detail


def test_with_nvrtc_of_a_toolkit(bare: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    bare["cuda-bindings"] = "13.0.0"
    monkeypatch.setattr(availability, "find_library", {"libnvrtc.so.13": "/toolkit/libnvrtc.so.13"}.get)
    found = probe_compiler()
    assert found.usable
    assert "/toolkit/libnvrtc.so.13" in found.detail


def test_the_driver_is_looked_for_and_not_needed(
    bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bare["cuda-bindings"] = "13.0.0"
    assert probe_backend().usable
    assert "launches on the simulated driver alone" in probe_backend().detail
    monkeypatch.setattr(availability, "find_library", {"libcuda.so.1": "/lib/libcuda.so.1"}.get)
    assert "driver: /lib/libcuda.so.1" in probe_backend().detail
    monkeypatch.setattr(availability, "is_loaded", lambda _: True)
    assert "loaded already" in probe_backend().detail


def test_a_wheel_whose_library_is_gone_does_not_count(
    tmp_path: Path, bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bare |= {"cuda-bindings": "13.0.0", "nvidia-cuda-nvrtc": "13.0.88"}
    older, library = tmp_path / "libnvrtc.so.12", tmp_path / "libnvrtc.so.13"
    monkeypatch.setattr(availability, "nvrtc_in_wheels", lambda: (str(older), str(library)))
    older.write_bytes(b"")
    assert not probe_compiler().usable
    library.write_bytes(b"")
    assert probe_compiler().usable
    assert "13.0.88" in probe_compiler().detail


def test_find_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_library("libtrunnion-nowhere.so.1") is None
    found = find_library("libc.so.6")
    assert found is not None
    assert Path(found).is_file()
    library = tmp_path / "lib64" / "libtrunnion-nowhere.so.1"
    library.parent.mkdir()
    library.write_bytes(b"")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert find_library(library.name) == str(library)
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nonexistent:{library.parent}")
    assert find_library(library.name) == str(library)


def test_a_library_that_the_loader_lists_in_a_folder_of_any_name(
    tmp_path: Path, bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a library of the machine's that is none of ours: to ask for a driver must not fail for it."""
    listed = b"\tlibcuda.so.1 (libc6,x86-64) => /opt/my gr\xfcn libs/libcuda.so.1\n"
    (tmp_path / "listed").write_bytes(listed)
    (tmp_path / "ldconfig").write_text(f"#!/bin/sh\nexec cat '{tmp_path}/listed'\n")
    (tmp_path / "ldconfig").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(availability, "find_library", find_library)
    bare["cuda-bindings"] = "13.0.0"
    assert "driver: /opt/my gr\\xfcn libs/libcuda.so.1" in probe_backend().detail


def test_is_loaded() -> None:
    assert availability.is_loaded("libc.so.6")
    assert not availability.is_loaded("libtrunnion-nowhere.so.1")
    assert ctypes.CDLL("libc.so.6")
