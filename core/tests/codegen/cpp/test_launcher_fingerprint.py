"""What a launcher is built with is remembered as one answer, and asked for again once it could be another."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import pytest

from trunnion import distributions
from trunnion.codegen.cpp import build as subject
from trunnion.codegen.cpp.build import launcher_fingerprint, runtime_folder
from trunnion.errors import BackendUnavailableError
from trunnion.storage import remembered
from trunnion.storage.stamps import unchanged, witnessed
from trunnion.toolchain import host_compiler, host_headers, host_reading

if TYPE_CHECKING:
    from collections.abc import Callable


class Machine:
    """A machine of its own: a compiler, headers and distributions that a test may change."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch, self.asked = folder, monkeypatch, 0
        self.bin, self.headers, self.site = folder / "bin", folder / "include", folder / "site"
        self.cache = folder / "cache" / "trunnion" / "remembered"
        self.bin.mkdir()
        real = Path(shutil.which("g++") or "").resolve()
        for tool in ("as", "ld"):
            (self.bin / tool).symlink_to(shutil.which(tool) or "")
        shutil.copy(real, self.bin / "g++")
        (folder / "lib").mkdir()  # it finds its own parts beside its folder
        (folder / "lib" / "gcc").symlink_to(real.parent.parent / "lib" / "gcc")
        shutil.copytree(runtime_folder(), self.headers)
        self._install_ffi()

    def _install_ffi(self) -> None:
        found = distributions.distribution_of(host_headers.FFI_DISTRIBUTION)
        place = Path(str(found.locate_file("")))
        (self.site / "tvm_ffi").mkdir(parents=True)
        for name in ("include", "lib"):
            shutil.copytree(place / "tvm_ffi" / name, self.site / "tvm_ffi" / name)
        metadata = Path(distributions.metadata_folder(host_headers.FFI_DISTRIBUTION) or "")
        shutil.copytree(metadata, self.site / metadata.name)
        self.ffi_metadata = self.site / metadata.name

    def another_process(self) -> None:
        """Forget what this process knows."""
        remembered._memory.cache_clear()
        distributions._names.cache_clear()
        host_compiler._identify.cache_clear()
        host_headers._read_ffi.cache_clear()
        host_reading._known_digest.cache_clear()

    def fingerprint(self) -> str:
        """What another process is told."""
        self.another_process()
        return launcher_fingerprint("acme")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Everything was there long ago, and nothing is known yet; how often it is asked is counted."""
    one = Machine(tmp_path, monkeypatch)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    monkeypatch.setattr(remembered, "_SETTLED", -(10**18))
    monkeypatch.setattr(subject, "runtime_folder", lambda: one.headers)
    monkeypatch.setenv("PATH", f"{tmp_path}/first:{one.bin}")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.syspath_prepend(str(one.site))

    def ask(plugin: str, *, cuda: bool, real: Callable[..., remembered.Answer] = subject._ask_fingerprint):
        one.asked += 1
        return real(plugin, cuda=cuda)

    monkeypatch.setattr(subject, "_ask_fingerprint", ask)
    return one


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _dated_back(path: Path, change: Callable[[], object]) -> None:
    """Change a file, and set its times back: what changed when is known to the system alone."""
    before = path.stat()
    change()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def _replaced_compiler(machine: Machine) -> None:
    """One of the same size and date, in its place: its build has another name, as long."""
    path = machine.bin / "g++"
    data = path.read_bytes()
    assert data.count(b"gcc version %s %s") == 1
    _dated_back(path, lambda: path.write_bytes(data.replace(b"gcc version %s %s", b"gcc version %s.%s")))


def _edited_header(machine: Machine) -> None:
    path = machine.headers / "trunnion" / "numbers.hpp"
    text = path.read_text()
    _dated_back(path, lambda: path.write_text(text + "enum { added };\n"))


def _edited_ffi_header(machine: Machine) -> None:
    path = machine.site / "tvm_ffi" / "include" / "tvm" / "ffi" / "c_api.h"
    path.write_text(path.read_text() + "enum { added };\n")


def _shadowing_header(machine: Machine) -> None:
    """One that comes first in the order of the search, for a name that the headers of launchers mention."""
    _put(machine.headers / "dlpack" / "dlpack.h", "#include_next <dlpack/dlpack.h>\nenum { added };\n")


def _upgraded_ffi(machine: Machine) -> None:
    """Another version of the headers, by a distribution of another version."""
    path = machine.site / "tvm_ffi" / "include" / "tvm" / "ffi" / "c_api.h"
    path.write_text(path.read_text().replace("VERSION_PATCH", "VERSION_PATCH 99 //", 1))
    machine.ffi_metadata.rename(machine.site / "apache_tvm_ffi-99.0.0.dist-info")


def _earlier_compiler(machine: Machine) -> None:
    """One that comes first on PATH, and is another."""
    text = f'#!/bin/sh\nexec "{machine.bin}/g++" -DTRUNNION_EARLIER "$@"\n'
    _put(machine.folder / "first" / "g++", text)
    (machine.folder / "first" / "g++").chmod(0o755)


def _changed_cpath(machine: Machine) -> None:
    machine.monkeypatch.setenv("CPATH", str(machine.folder / "nowhere"))


def _named_compiler(machine: Machine) -> None:
    machine.monkeypatch.setenv("CXX", f"{machine.bin}/g++ -DTRUNNION_NAMED")


@pytest.mark.parametrize(
    "change",
    [
        _edited_header,
        _edited_ffi_header,
        _shadowing_header,
        _upgraded_ffi,
        _changed_cpath,
        _earlier_compiler,
        _named_compiler,
        _replaced_compiler,
    ],
)
def test_what_changes_makes_another_fingerprint(machine: Machine, change: Callable[[Machine], None]) -> None:
    first = machine.fingerprint()
    assert machine.fingerprint() == first
    assert machine.asked == 1
    change(machine)
    second = machine.fingerprint()
    assert machine.asked >= 2
    assert second != first


def test_a_toolkit_that_comes_first_is_seen(machine: Machine, tmp_path: Path) -> None:
    """``CUDA_HOME`` counts behind the wheels' headers: it is asked again whatever it says, and says the same."""
    home, later = tmp_path / "cuda", host_headers.find_cuda()
    assert later is not None
    machine.monkeypatch.setattr(host_headers, "_WHEELS", ())
    machine.monkeypatch.setenv("CUDA_HOME", str(home))
    machine.monkeypatch.setattr(host_headers, "_USUAL", (later.folder,))
    first = machine.fingerprint()
    assert machine.fingerprint() == first
    assert machine.asked == 1
    shutil.copytree(later.folder, home / "include", ignore=shutil.ignore_patterns("cccl", "cub*", "nv*"))
    with (home / "include" / "cuda.h").open("a") as file:
        file.write("enum { added };\n")
    assert machine.fingerprint() != first
    assert machine.asked == 2


def test_a_toolchain_that_has_gone_is_not_remembered(machine: Machine) -> None:
    machine.fingerprint()
    (machine.bin / "g++").unlink()
    with pytest.raises(BackendUnavailableError):
        machine.fingerprint()


def test_a_launcher_for_the_cpu_is_built_with_something_else(machine: Machine) -> None:
    first = machine.fingerprint()
    assert launcher_fingerprint("acme", cuda=False) != first


def test_code_that_answers_otherwise_is_asked(machine: Machine) -> None:
    """Two versions of trunnion may share a cache: what one remembers is an answer of its own code."""
    machine.fingerprint()
    (record,) = (one for one in _records(machine.cache) if len(one) > 100)
    modules = (subject, host_compiler, host_headers, host_reading)
    assert {module.__file__ for module in modules} <= {*record}


def test_one_look_at_one_record_tells_that_all_of_it_holds(machine: Machine, monkeypatch) -> None:
    first = machine.fingerprint()
    loaded: list[str] = []

    def load(key: str, real: Callable[[str], object] = remembered._load) -> object:
        loaded.append(key)
        return real(key)

    monkeypatch.setattr(remembered, "_load", load)
    assert machine.fingerprint() == first
    assert len(loaded) == 2  # what is installed, and this


def test_what_is_asked_and_what_is_remembered_were_read_alike(machine: Machine) -> None:
    """What is built between the two was built from what both saw."""
    seen = []
    for _ in range(2):
        with witnessed() as read:
            machine.fingerprint()
        seen.append(frozenset(read))
    assert machine.asked == 1
    assert unchanged(*seen)
    assert {os.fspath(machine.headers / "trunnion" / "numbers.hpp")} <= {path for path, _ in seen[0]}


def _records(folder: Path) -> list[tuple[str, ...]]:
    """The paths of each record, those included where nothing is."""
    found = []
    for file in folder.iterdir():
        record = remembered._load(file.name)
        assert record is not None
        found.append((*record.paths, *record.absent))
    return found
