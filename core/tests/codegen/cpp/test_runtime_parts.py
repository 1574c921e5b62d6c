"""What launchers share is compiled once and kept; a launcher is the same with, without, and with a spoilt one."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from pathlib import Path

import platformdirs
import pytest

from trunnion import examples
from trunnion.codegen.cpp import build as module
from trunnion.codegen.cpp.build import build_launcher
from trunnion.codegen.cpp.emitter import emit_launcher
from trunnion.codegen.cpp.library import check_library
from trunnion.errors import CompileError, DeviceRequirementError
from trunnion.storage.refusals import NotKeptWarning

pytestmark = pytest.mark.tvm_ffi_abi

_TEXT = emit_launcher(examples.load("vector_add").program.plan())
_REFUSE_STALE = ("-Winvalid-pch", "-Werror=invalid-pch")


@pytest.fixture
def cache(cxx, tmp_path, monkeypatch):
    """A cache of this test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: folder / name)
    return folder


@pytest.fixture
def build(cache, tmp_path, embedded, monkeypatch):
    """Build the launcher of vector add; return its bytes and the names of what was compiled for it."""
    built = []

    def compiled(compiler, wanted, folder, plugin, *, run=module.compile_host):
        built.append(wanted.output)
        return run(compiler, wanted, folder, plugin)

    monkeypatch.setattr(module, "compile_host", compiled)

    def make(name: str, options=()):
        built.clear()
        folder = tmp_path / name
        folder.mkdir()
        data = build_launcher(
            _TEXT, embedded(b"image"), ("vector_add",), folder, plugin="acme", options=options
        )
        return data, tuple(built)

    return make


def precompiled(cache):
    return sorted(cache.rglob("*.gch"))


def test_what_is_shared_is_compiled_once(build, cache) -> None:
    first, made = build("first", _REFUSE_STALE)
    assert made == ("runtime.o", "launch_runtime.hpp.gch", "launcher.so")
    second, made = build("second", _REFUSE_STALE)
    assert made == ("launcher.so",), "the compiler refused the precompiled header"
    assert first == second


def test_a_launcher_is_the_same_without_the_precompiled_header(build, cache, monkeypatch) -> None:
    with_it, _ = build("with")
    monkeypatch.setattr(module, "_PRECOMPILES", frozenset())
    without, made = build("without")
    assert made == ("launcher.so",)
    assert with_it == without


def test_a_spoilt_precompiled_header_is_made_again(build, cache) -> None:
    whole, _ = build("first")
    (header,) = precompiled(cache)
    header.write_bytes(header.read_bytes()[:5000])
    again, made = build("again")
    assert made == ("launch_runtime.hpp.gch", "launcher.so")
    assert again == whole


def test_a_precompiled_header_that_the_compiler_dies_of_is_done_without(build, cache) -> None:
    whole, _ = build("first")
    (header,) = precompiled(cache)
    data = header.read_bytes()
    header.write_bytes(data[:5000])
    header.with_name("sha256").write_text(hashlib.sha256(data[:5000]).hexdigest())
    again, made = build("again")
    assert made == ("launcher.so", "launcher.so")
    assert again == whole


@pytest.fixture
def poison(tmp_path, monkeypatch):
    """Let a header of the system's own name come first, as long as CPATH says so."""
    folder = tmp_path / "poison"
    folder.mkdir()
    (folder / "string.h").write_text(
        "#pragma once\n#include_next <string.h>\n__attribute__((used)) static const int poisoned = 12345;\n"
    )
    monkeypatch.setenv("CPATH", str(folder))
    return folder


def test_what_an_environment_brought_goes_with_it(build, cache, poison, monkeypatch) -> None:
    poisoned, _ = build("poisoned")
    monkeypatch.delenv("CPATH")
    clean, made = build("clean")
    assert made == ("runtime.o", "launch_runtime.hpp.gch", "launcher.so")
    shutil.rmtree(cache)
    assert build("fresh")[0] == clean != poisoned


def test_a_header_of_the_system_that_changes_is_compiled_anew(build, cache, poison) -> None:
    first, _ = build("first")
    (poison / "string.h").write_text("#include_next <string.h>\n")
    second, made = build("second")
    assert made == ("runtime.o", "launch_runtime.hpp.gch", "launcher.so")
    assert second != first


def test_what_is_made_while_a_header_changes_is_not_kept(build, cache, poison, monkeypatch) -> None:
    compile_host = module.compile_host
    clean = "#include_next <string.h>\n"

    def compiled(compiler, wanted, folder, plugin):
        made = compile_host(compiler, wanted, folder, plugin)
        (poison / "string.h").write_text(clean)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(module, "compile_host", compiled)
        build("while it changes")
    assert not list(cache.rglob("runtime.o"))
    found, made = build("after")
    assert made == ("runtime.o", "launcher.so"), "only what was made after it changed may be kept"
    shutil.rmtree(cache)
    assert build("fresh")[0] == found


def test_a_cache_that_cannot_be_written_to_is_done_without(build, cache) -> None:
    whole, _ = build("first")
    cache.rename(cache.with_name("elsewhere"))
    cache.write_text("in the way")
    with pytest.warns(NotKeptWarning, match="what C\\+\\+ launchers share"):
        again, made = build("again")
    assert made == ("runtime.o", "launcher.so")
    assert again == whole


def test_a_full_cache_is_done_without(build, cache, monkeypatch) -> None:
    whole, _ = build("first")
    shutil.rmtree(cache)
    compile_host, write = module.compile_host, Path.write_bytes

    def compiled(compiler, wanted, folder, plugin):
        if folder.is_relative_to(cache):
            raise DeviceRequirementError("a folder that C++ can be compiled in", f"{folder} is full")
        return compile_host(compiler, wanted, folder, plugin)

    def written(path, data):
        if path.is_relative_to(cache):
            raise OSError(errno.ENOSPC, "no space left on device")
        return write(path, data)

    monkeypatch.setattr(module, "compile_host", compiled)
    monkeypatch.setattr(Path, "write_bytes", written)
    with pytest.warns(NotKeptWarning, match="make room on that disk"):
        again, made = build("again")
    assert made == ("runtime.o", "launcher.so")
    assert again == whole


def test_parts_of_versions_that_nobody_uses_any_more_are_removed(build, cache) -> None:
    build("first")
    kept = cache / "trunnion" / "launchers"
    ours = {one.name for one in kept.iterdir()}
    for index in range(20):
        old = kept / f"{index:032x}"
        old.mkdir()
        (old / "runtime.o").write_bytes(b"old")
        os.utime(old, (index, index))
    build("used")
    shutil.rmtree(next(one.parent for one in kept.glob("*/runtime.o") if one.parent.name in ours))
    build("again")
    left = {one.name for one in kept.iterdir()}
    assert ours <= left
    assert len(left) == 16
    assert left - ours == {f"{index:032x}" for index in range(20)[-14:]}


def halved(data: bytes) -> bytes:
    return data[: len(data) // 2]


@pytest.mark.parametrize("output", ["runtime.o", "launcher.so"])
def test_what_a_compiler_breaks_once_is_not_kept(build, cache, monkeypatch, output) -> None:
    """It reports success, and what it made is of no use: the next call is right all the same."""
    compile_host, breaking = module.compile_host, [output]

    def compiled(compiler, wanted, folder, plugin):
        data = compile_host(compiler, wanted, folder, plugin)
        return halved(data) if wanted.output in breaking else data

    monkeypatch.setattr(module, "compile_host", compiled)
    with pytest.raises(CompileError, match="it reported success, and what it made is of no use: "):
        build("broken")
    assert not list(cache.rglob("runtime.o")) or output == "launcher.so"
    breaking.clear()
    whole, _ = build("whole")
    check_library(whole)


def test_a_kept_object_that_is_of_no_use_is_compiled_again(build, cache) -> None:
    """One that an older version kept: its digest is right."""
    whole, _ = build("first")
    (kept,) = cache.rglob("runtime.o")
    kept.write_bytes(halved(kept.read_bytes()))
    kept.with_name("sha256").write_text(hashlib.sha256(kept.read_bytes()).hexdigest())
    again, made = build("again")
    assert made == ("runtime.o", "launcher.so")
    assert again == whole
