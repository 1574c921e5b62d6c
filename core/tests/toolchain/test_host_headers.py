"""Where the headers of a launcher are found, and which are refused."""

from __future__ import annotations

import importlib
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import pytest

from trunnion.errors import BackendUnavailableError
from trunnion.storage import remembered
from trunnion.toolchain import host_headers, search
from trunnion.toolchain.host_headers import cuda_headers, cuda_places, ffi_files, find_ffi

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine with neither wheels nor toolkits: those of a test are all that there is."""
    for name in ("CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(search.site, "getsitepackages", lambda: [str(tmp_path / "site")])
    monkeypatch.setattr(search.site, "ENABLE_USER_SITE", False)
    monkeypatch.setattr(host_headers, "_USUAL", (str(tmp_path / "usual"),))
    return tmp_path


def put(folder: Path, version: int | str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cuda.h").write_text(f"#ifndef CUDA_H\n#  define  CUDA_VERSION {version}\n#endif\n")
    return str(folder)


def test_those_of_this_environment_are_found() -> None:
    found = cuda_headers("acme")
    assert Path(found.folder, "cuda.h").is_file()
    assert found.version >= host_headers.LEAST_CUDA


def test_the_order_of_the_search(bare, monkeypatch) -> None:
    places = []
    places.append(put(bare / "usual", 12080))
    places.append(put(bare / "toolkit/include", 12080))
    (bare / "bin").mkdir()
    (bare / "toolkit/bin").mkdir()
    (bare / "toolkit/bin/nvcc").write_text("#!/bin/sh\n")
    (bare / "toolkit/bin/nvcc").chmod(0o755)
    (bare / "bin/nvcc").symlink_to(bare / "toolkit/bin/nvcc")
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(name, str(bare / name))
        places.append(put(bare / name / "include", 12090))
    (targets,) = host_headers._TARGETS["x86_64"]
    monkeypatch.setattr(host_headers.platform, "machine", lambda: "x86_64")
    monkeypatch.setenv("CONDA_PREFIX", str(bare / "conda"))
    places.append(put(bare / f"conda/targets/{targets}/include", 13000))
    places.append(put(bare / "site/nvidia/cuda_runtime/include", 12080))
    places.append(put(bare / "site/nvidia/cu13/include", 13010))
    for place in reversed(places):
        found = cuda_headers("acme")
        assert found.folder == place
        (Path(place) / "cuda.h").unlink()
    with pytest.raises(BackendUnavailableError):
        cuda_headers("acme")


def test_old_ones_are_passed_over_with_a_reason(bare, monkeypatch) -> None:
    old = put(bare / "site/nvidia/cuda_runtime/include", 12060)
    mute = put(bare / "site/nvidia/cu13/include", "UNKNOWN")
    monkeypatch.setenv("CUDA_HOME", str(bare / "home"))
    good = put(bare / "home/include", 12080)
    assert cuda_headers("acme").folder == good
    notes = {place.path: place.note for place in cuda_places()}
    assert notes[old] == "it is of CUDA 12.6; 12.8 or newer is needed"
    assert notes[mute] == "its cuda.h does not say its version"
    Path(good, "cuda.h").unlink()
    assert {place.path: place.note for place in cuda_places()}[good] == "it holds no cuda.h"
    with pytest.raises(BackendUnavailableError) as caught:
        cuda_headers("acme")
    assert f"{old}: it is of CUDA 12.6" in caught.value.reason
    assert "pip install nvidia-cuda-runtime" in caught.value.reason
    assert caught.value.name == "acme"


def test_headers_that_change_are_read_again(bare) -> None:
    folder = put(bare / "usual", 12080)
    assert cuda_headers("acme").version == (12, 8)
    put(bare / "usual", " 13000")
    assert cuda_headers("acme").version == (13, 0)
    assert cuda_headers("acme").folder == folder


def test_the_distribution_is_found_without_being_imported() -> None:
    found = ffi_files("acme")
    assert found.distribution == metadata.version(host_headers.FFI_DISTRIBUTION)
    assert found.version >= host_headers.LEAST_FFI
    for header in ("tvm/ffi/c_api.h", "tvm/ffi/extra/c_env_api.h", "dlpack/dlpack.h"):
        assert any(Path(folder, header).is_file() for folder in found.folders)
    assert Path(found.library).name == "libtvm_ffi.so"
    assert Path(found.library).is_file()


def install(folder: Path, files: dict[str, str]) -> None:
    """Install a distribution of TVM-FFI's name."""
    details = folder / "apache_tvm_ffi-9.8.7.dist-info"
    details.mkdir(parents=True)
    (details / "METADATA").write_text("Metadata-Version: 2.1\nName: apache-tvm-ffi\nVersion: 9.8.7\n")
    (details / "RECORD").write_text("".join(f"{name},,\n" for name in files))
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def header(version: tuple[int, int, int]) -> str:
    parts = zip(("MAJOR", "MINOR", "PATCH"), version, strict=True)
    return "".join(f"#define TVM_FFI_VERSION_{part} {number}\n" for part, number in parts)


def layout(version: tuple[int, int, int] = (0, 1, 11)) -> dict[str, str]:
    return {
        "pack/3rdparty/dlpack/include/dlpack/dlpack.h": "",
        "pack/headers/include/dlpack/dlpack.h": "",
        "pack/api/tvm/ffi/c_api.h": header(version),
        "pack/lib/libtvm_ffi.so": "",
        "pack/lib/libtvm_ffi_testing.so": "",
    }


def test_another_layout_is_understood(tmp_path, monkeypatch) -> None:
    install(tmp_path, layout())
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = ffi_files("acme")
    assert found.folders == (str(tmp_path / "pack/api"), str(tmp_path / "pack/headers/include"))
    assert found.library == str(tmp_path / "pack/lib/libtvm_ffi.so")
    assert (found.version, found.distribution) == ((0, 1, 11), "9.8.7")


@pytest.mark.parametrize(
    ("missing", "problem"),
    [
        ("pack/lib/libtvm_ffi.so", "without libtvm_ffi.so"),
        ("pack/api/tvm/ffi/c_api.h", "without tvm/ffi/c_api.h"),
    ],
)
def test_a_part_that_is_missing_is_named(tmp_path, monkeypatch, missing, problem) -> None:
    install(tmp_path, layout())
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    (tmp_path / missing).unlink()
    with pytest.raises(BackendUnavailableError, match=problem):
        ffi_files("acme")


@pytest.fixture
def another_process(tmp_path, monkeypatch) -> Callable[[], None]:
    """Forget what this process knows; what it keeps for others is this test's own, and every file is an old one."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    monkeypatch.setattr(remembered, "_SETTLED", -(10**18))

    def forget() -> None:
        remembered._memory.cache_clear()
        host_headers._read_ffi.cache_clear()

    forget()
    return forget


def test_another_process_reads_no_list_of_files(tmp_path, monkeypatch, another_process) -> None:
    install(tmp_path / "site", layout())
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    found = ffi_files("acme")
    another_process()
    monkeypatch.setattr(host_headers, "distribution_of", lambda name: pytest.fail("it is read again"))
    assert ffi_files("acme") == found


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ("pack/api/tvm/ffi/c_api.h", header((0, 2, 0))),
        ("apache_tvm_ffi-9.8.7.dist-info/METADATA", "Name: apache-tvm-ffi\nVersion: 9.8.8\n"),
        ("apache_tvm_ffi-9.8.7.dist-info/RECORD", "pack/api/tvm/ffi/c_api.h,,\n"),
        ("pack/lib/libtvm_ffi.so", None),
        ("nearer/include/dlpack/dlpack.h", ""),
    ],
)
def test_another_process_finds_what_has_changed(
    tmp_path, monkeypatch, another_process, changed, text
) -> None:
    site = tmp_path / "site"
    install(site, {**layout(), "nearer/include/dlpack/dlpack.h": ""})
    if not text:
        (site / "nearer/include/dlpack/dlpack.h").unlink()
    monkeypatch.setattr(sys, "path", [str(site)])
    found = find_ffi()
    another_process()
    if text is None:
        (site / changed).unlink()
    else:
        (site / changed).write_text(text)
    now = find_ffi()
    assert now != found
    another_process()
    shutil.rmtree(tmp_path / "cache")
    assert now == find_ffi()


@pytest.mark.parametrize("version", [(0, 1, 10), (0, 0, 99)])
def test_an_old_one_is_refused(tmp_path, monkeypatch, version) -> None:
    install(tmp_path, layout(version))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(BackendUnavailableError) as caught:
        ffi_files("acme")
    assert f"of version {'.'.join(map(str, version))}; 0.1.11 or newer is needed" in caught.value.reason
    assert "pip install 'apache-tvm-ffi>=0.1.11'" in caught.value.reason


def test_a_header_without_a_version_is_refused(tmp_path, monkeypatch) -> None:
    install(tmp_path, {**layout(), "pack/api/tvm/ffi/c_api.h": "int x;"})
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert "is of no known version" in str(find_ffi())


def test_without_the_distribution(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(BackendUnavailableError, match="apache-tvm-ffi is not installed") as caught:
        ffi_files("acme")
    assert "pip install" in caught.value.reason
    install(tmp_path, layout())
    importlib.invalidate_caches()
    assert ffi_files("acme").distribution == "9.8.7"


def test_the_least_version_is_the_one_that_the_extra_asks_for() -> None:
    asked = [line for line in metadata.requires("trunnion") or () if line.startswith("apache-tvm-ffi")]
    least = {line.partition(">=")[2].partition(";")[0].strip() for line in asked}
    assert least == {".".join(map(str, host_headers.LEAST_FFI))}
