"""A library that cannot be loaded is refused, and nothing of one is run."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from trunnion.codegen.cpp import relocations as subject
from trunnion.codegen.cpp.relocations import check_relocations
from trunnion.errors import CorruptArtifactError, DeviceRequirementError
from trunnion.toolchain.host_compilation import HostCompilation, compile_host
from trunnion.toolchain.host_compiler import host_compiler

DEADLY = "__attribute__((constructor)) static void run() { *(volatile int *)0 = 1; }\n"


@pytest.fixture
def folder(tmp_path):
    """A folder of a name that no list of paths can hold."""
    made = tmp_path / "a folder: with 'signs'"
    made.mkdir()
    return made


@pytest.fixture
def needed(tmp_path):
    """A library that is in every process that loads the other."""
    return made(tmp_path, "int there() { return 1; }\n", "libneeded.so")


def made(folder: Path, text: str, output: str, *options: str) -> Path:
    wanted = HostCompilation(
        source="l.cc", text=text, output=output, options=("-shared", "-fPIC", "l.cc", *options)
    )
    compile_host(host_compiler("acme"), wanted, folder, "acme")
    return folder / output


def test_one_that_can_be_loaded_is_taken_and_not_run(folder, needed) -> None:
    text = f"{DEADLY}int there();\nint (*here)() = there;\n"
    made(folder, text, "some.so", str(needed), "-Wl,-soname,some.so")
    check_relocations(folder, "some.so", str(needed))


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("int nobody();\nint (*here)() = nobody;\n", (), "undefined symbol: .*nobody"),
        ("int nobody();\nint here() { return nobody(); }\n", (), "undefined symbol: .*nobody"),
        ("int x;\n", ("-Wl,--no-as-needed", "GHOST"), "libghost_nowhere.so => not found"),
    ],
)
def test_one_that_misses_something_is_refused(folder, needed, text, options, said) -> None:
    ghost = made(folder, "int ghost;\n", "libghost.so", "-Wl,-soname,libghost_nowhere.so")
    made(folder, text, "some.so", *(str(ghost) if one == "GHOST" else one for one in options))
    with pytest.raises(CorruptArtifactError, match=rf"some\.so: cannot be loaded: .*{said}"):
        check_relocations(folder, "some.so", str(needed))


def test_what_is_no_library_is_refused(folder, needed) -> None:
    (folder / "some.so").write_bytes(b"\x7fELF")
    with pytest.raises(CorruptArtifactError, match="be preloaded"):
        check_relocations(folder, "some.so", str(needed))


def test_what_the_loader_says_of_every_program_is_not_laid_to_it(folder, needed, monkeypatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/nonexistent/library.so")
    monkeypatch.setenv("LD_DEBUG", "libs")
    made(folder, "int x;\n", "some.so")
    check_relocations(folder, "some.so", str(needed))


@pytest.fixture
def noexec(monkeypatch):
    """What a folder that is mounted noexec says is said for each here; return what is preloaded then."""
    preloaded = []
    run, statvfs = subject.subprocess.run, os.statvfs

    def watched(*args, env, **named):
        preloaded.extend(env["LD_PRELOAD"].split())
        return run(*args, env=env, **named)

    def mounted(path):
        return SimpleNamespace(f_flag=statvfs(path).f_flag | os.ST_NOEXEC)

    monkeypatch.setattr(os, "statvfs", mounted)
    monkeypatch.setattr(subject.subprocess, "run", watched)
    return preloaded


def test_where_no_code_is_loaded_from_files_it_is_looked_at_in_memory(folder, needed, noexec) -> None:
    """The folder is at fault there, and no source."""
    made(folder, "int there();\nint (*here)() = there;\n", "some.so", str(needed), "-Wl,-soname,some.so")
    check_relocations(folder, "some.so", str(needed))
    assert "./some.so" not in noexec
    made(folder, "int nobody();\nint (*here)() = nobody;\n", "other.so")
    with pytest.raises(
        CorruptArtifactError, match=r"other\.so: cannot be loaded: .*undefined symbol: .*nobody"
    ):
        check_relocations(folder, "other.so", str(needed))


def test_where_there_are_no_files_in_memory_either_the_folder_is_named(
    folder, needed, noexec, monkeypatch
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    made(folder, "int x;\n", "some.so")
    with pytest.raises(DeviceRequirementError, match="mounted noexec; set TMPDIR"):
        check_relocations(folder, "some.so", str(needed))
    assert not noexec


def test_no_other_program_is_started(folder, needed, tmp_path, monkeypatch) -> None:
    """One that glibc's loader does not start would run, whatever the variables say."""
    assert subject._program() == str(Path("/proc/self/exe").readlink())
    other = made(tmp_path, "int x;\n", "no_program.so")  # it names no loader, as a static program does not
    monkeypatch.setattr(Path, "readlink", lambda _: other)
    assert subject._program.__wrapped__() is None


def test_what_this_process_has_for_all_libraries_is_not_missing(folder, needed, tmp_path) -> None:
    """Libraries of a sanitizer are such ones: they are preloaded, and may be hidden from children."""
    other = made(tmp_path, 'extern "C" int only_here() { return 1; }\n', "libother.so")
    made(folder, 'extern "C" int only_here();\nint (*uses)() = only_here;\n', "some.so")
    with pytest.raises(CorruptArtifactError, match="only_here"):
        check_relocations(folder, "some.so", str(needed))
    ctypes.CDLL(str(other), mode=ctypes.RTLD_GLOBAL)
    check_relocations(folder, "some.so", str(needed))
