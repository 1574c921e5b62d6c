"""What launchers share is compiled once and kept; a launcher is the same with, without, and with a spoilt one."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import struct
from dataclasses import replace
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
from trunnion.storage.stamps import unchanged, witnessed
from trunnion.storage.workshop import Workshop
from trunnion.toolchain.host_compilation import HostCompilation, compile_host
from trunnion.toolchain.host_compiler import host_compiler

pytestmark = pytest.mark.tvm_ffi_abi

SHT_RELA = 4

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


@pytest.fixture(scope="module")
def first_builds():
    """What a first build made and kept, by compiler: a launcher, and the folder of the cache."""
    return {}


@pytest.fixture
def first(build, cache, cxx, first_builds, tmp_path_factory):
    """A cache of this test's own with what a first build keeps; it is compiled once. Return that build's launcher."""
    if cxx not in first_builds:
        data, _ = build("first")
        kept = tmp_path_factory.mktemp("first") / "cache"
        shutil.copytree(cache, kept)
        first_builds[cxx] = data, kept
    else:
        shutil.copytree(first_builds[cxx][1], cache)
    return first_builds[cxx][0]


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


def test_a_spoilt_precompiled_header_is_made_again(build, cache, first) -> None:
    (header,) = precompiled(cache)
    header.write_bytes(header.read_bytes()[:5000])
    again, made = build("again")
    assert made == ("launch_runtime.hpp.gch", "launcher.so")
    assert again == first


def spoil(kept: Path, data: bytes) -> None:
    """Keep something else in a file's place, with the right digest: what nobody sees until it is used."""
    kept.write_bytes(data)
    kept.with_name("sha256").write_text(hashlib.sha256(data).hexdigest())


def test_a_precompiled_header_that_the_compiler_dies_of_is_done_without_and_made_again(
    build, cache, first
) -> None:
    (header,) = precompiled(cache)
    spoil(header, header.read_bytes()[:5000])
    again, made = build("again")
    assert made == ("launcher.so", "launcher.so")
    assert again == first
    assert build("third") == (first, ("launch_runtime.hpp.gch", "launcher.so"))
    assert build("fourth") == (first, ("launcher.so",))


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
        if (poison / "string.h").read_text() != clean:
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


def test_what_is_made_while_a_header_is_edited_and_put_back_is_not_kept(
    build, cache, poison, monkeypatch
) -> None:
    compile_host, header = module.compile_host, poison / "string.h"
    usual, details = header.read_text(), header.stat()

    def compiled(compiler, wanted, folder, plugin):
        header.write_text("#include_next <string.h>\n")
        try:
            return compile_host(compiler, wanted, folder, plugin)
        finally:
            header.write_text(usual)
            os.utime(header, ns=(details.st_atime_ns, details.st_mtime_ns))

    with monkeypatch.context() as patched:
        patched.setattr(module, "compile_host", compiled)
        build("while it is another")
    assert not [*cache.rglob("runtime.o"), *precompiled(cache)]
    found, _ = build("after")
    shutil.rmtree(cache)
    assert build("fresh")[0] == found


def test_what_is_made_while_a_header_is_there_that_was_not_before_is_not_kept(
    build, cache, tmp_path, monkeypatch
) -> None:
    """It is gone again before anybody looks, but the compiler says that it read it."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.setenv("CPATH", str(folder))
    compile_host, intruder = module.compile_host, folder / "stdint.h"

    def compiled(compiler, wanted, staging, plugin):
        intruder.write_text("#include_next <stdint.h>\n")
        try:
            return compile_host(compiler, wanted, staging, plugin)
        finally:
            intruder.unlink()

    with monkeypatch.context() as patched, witnessed() as read:
        patched.setattr(module, "compile_host", compiled)
        build("while it is there")
    assert not [*cache.rglob("runtime.o"), *precompiled(cache)]
    assert (str(intruder), None) in read, "so the program is not kept either"
    with witnessed() as known:
        module.launcher_fingerprint("acme")
    for again in ("after", "with what was kept"):
        with witnessed() as read:
            build(again)
        assert unchanged(known, known | read), "a launcher reads what the key knows"
    assert [*cache.rglob("runtime.o"), *precompiled(cache)]


@pytest.mark.filterwarnings("error")
def test_who_builds_in_the_middle_of_compiling_it_compiles_it_beside(build, cache, monkeypatch) -> None:
    """As a signal's handler does; nothing is lost, and so no warning is due."""
    compile_host, inner = module.compile_host, []

    def compiled(compiler, wanted, folder, plugin):
        if not inner:
            inner.append(())
            inner[:] = build("inner")
        return compile_host(compiler, wanted, folder, plugin)

    monkeypatch.setattr(module, "compile_host", compiled)
    outer, _ = build("outer")
    assert inner[0] == outer
    assert len(list(cache.rglob("runtime.o"))) == 1


def test_a_cache_that_cannot_be_written_to_is_done_without(build, cache, first) -> None:
    cache.rename(cache.with_name("elsewhere"))
    cache.write_text("in the way")
    with pytest.warns(NotKeptWarning, match="what C\\+\\+ launchers share"):
        again, made = build("again")
    assert made == ("runtime.o", "launcher.so")
    assert again == first


def test_a_full_cache_is_done_without(build, cache, first, monkeypatch) -> None:
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
    assert again == first


def test_parts_of_versions_that_nobody_uses_any_more_are_removed(build, cache, first) -> None:
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
    assert len(left - Workshop.names) == 16
    assert left - ours == {f"{index:032x}" for index in range(20)[-14:]}


def with_broken_relocations(data: bytes) -> bytes:
    """Let each entry of the tables for the dynamic loader be of a kind that there is not."""
    broken = bytearray(data)
    (sections,), (count,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
    for index in range(count):
        kind, offset, size = struct.unpack_from("<4xI16xQQ", data, sections + 64 * index)
        if kind == SHT_RELA:
            broken[offset : offset + size] = b"\xff" * size
    return bytes(broken)


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


def test_a_kept_object_that_is_of_no_use_is_compiled_again(build, cache, first) -> None:
    """One that an older version kept: its digest is right."""
    (kept,) = cache.rglob("runtime.o")
    spoil(kept, halved(kept.read_bytes()))
    again, made = build("again")
    assert made == ("runtime.o", "launcher.so")
    assert again == first


@pytest.fixture
def another_object(cxx, tmp_path):
    """An object that is whole, and has one function of ours."""
    wanted = HostCompilation(
        source="a.cc",
        text="namespace trunnion { int of_no_use() { return 1; } }\n",
        output="a.o",
        options=("-c", "-fPIC", "a.cc"),
    )
    folder = tmp_path / "another object"
    folder.mkdir()
    return compile_host(host_compiler("acme"), wanted, folder, "acme")


def test_an_object_with_which_nothing_can_be_linked_is_compiled_again(
    build, cache, first, another_object
) -> None:
    (kept,) = cache.rglob("runtime.o")
    spoil(kept, another_object)
    again, made = build("again")
    assert again == first
    assert made == ("launcher.so", "launcher.so", "runtime.o", "launcher.so")
    assert build("third") == (first, ("runtime.o", "launcher.so")), "it is kept no longer"
    assert build("fourth") == (first, ("launcher.so",))


def test_a_compiler_that_lies_about_the_object_once_is_asked_again(
    build, cache, another_object, monkeypatch
) -> None:
    compile_host, lies = module.compile_host, [another_object]

    def compiled(compiler, wanted, folder, plugin):
        data = compile_host(compiler, wanted, folder, plugin)
        return lies.pop() if wanted.output == "runtime.o" and lies else data

    with monkeypatch.context() as patched:
        patched.setattr(module, "compile_host", compiled)
        found, _ = build("lied to")
    assert build("again")[0] == found


def test_what_is_wrong_with_the_text_is_said_and_nothing_is_forgotten(build, cache, first) -> None:
    with pytest.raises(CompileError, match="no_such_option"):
        build("refused", options=("-Wl,--no_such_option",))
    assert build("again")[1] == ("launcher.so",)


LIES = {
    "a library that nobody has": ("-L.", "-Wl,--no-as-needed", "-lghost"),
    "a symbol that nobody defines": ("-Wl,-z,undefs", "undefined.o"),
}


@pytest.mark.parametrize("lie", [*LIES, "relocations of no kind"])
def test_a_library_that_cannot_be_loaded_is_refused(build, first, monkeypatch, lie) -> None:
    compile_host = module.compile_host

    def compiled(compiler, wanted, folder, plugin):
        if wanted.output != "launcher.so":
            return compile_host(compiler, wanted, folder, plugin)
        for output, text, options in (
            ("libghost.so", "void ghost() {}", ("-shared", "-Wl,-soname,libghost_nowhere.so")),
            ("undefined.o", "void nobody(); void (*here)() = nobody;", ("-c",)),
        ):
            made = HostCompilation(
                source="l.cc", text=text, output=output, options=(*options, "-fPIC", "l.cc")
            )
            compile_host(compiler, made, folder, plugin)
        lied = replace(wanted, options=(*wanted.options, *LIES.get(lie, ())))
        data = compile_host(compiler, lied, folder, plugin)
        if lie not in LIES:
            data = with_broken_relocations(data)
            (folder / wanted.output).write_bytes(data)
        return data

    monkeypatch.setattr(module, "compile_host", compiled)
    with pytest.raises(
        CompileError, match=r"it reported success, and what it made is of no use: .*cannot be loaded"
    ):
        build("broken")
