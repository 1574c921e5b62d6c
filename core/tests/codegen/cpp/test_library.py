"""What a compiler made is refused, and never run, if it is not whole, for another machine, or of no use."""

from __future__ import annotations

import pytest

from trunnion.codegen.cpp.library import check_library, check_object
from trunnion.errors import CorruptArtifactError
from trunnion.toolchain.host_compilation import HostCompilation, compile_host
from trunnion.toolchain.host_compiler import host_compiler

OURS = "namespace trunnion { int ours() { return 1; } }"
EXPORTED = """
    __attribute__((constructor)) static void run() { *(volatile int *)0 = 1; }
    extern "C" int __tvm_ffi_main() { return 1; }
"""

BROKEN = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "for another machine": lambda data: data[:18] + b"\xf3\x00" + data[20:],
    "text": lambda _: b"/* a linker's script */",
}


def made(tmp_path, text, output, *options):
    wanted = HostCompilation(source="a.cc", text=text, output=output, options=("-fPIC", "a.cc", *options))
    return compile_host(host_compiler("acme"), wanted, tmp_path, "acme")


@pytest.fixture
def an_object(tmp_path):
    return made(tmp_path, OURS, "runtime.o", "-c")


@pytest.fixture
def a_library(tmp_path):
    """A library that would end the process that loads it."""
    return made(tmp_path, EXPORTED, "launcher.so", "-shared")


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_file_is_refused(an_object, a_library, how) -> None:
    check_object(an_object)
    check_library(a_library)
    with pytest.raises(CorruptArtifactError):
        check_object(BROKEN[how](an_object))
    with pytest.raises(CorruptArtifactError):
        check_library(BROKEN[how](a_library))


def test_a_file_without_what_is_called_is_refused(tmp_path) -> None:
    with pytest.raises(CorruptArtifactError, match="defines nothing of what launchers call"):
        check_object(made(tmp_path, "int theirs;", "runtime.o", "-c"))
    with pytest.raises(CorruptArtifactError, match="exports no function"):
        check_library(made(tmp_path, OURS, "launcher.so", "-shared"))


def test_one_is_not_taken_for_the_other(an_object, a_library) -> None:
    with pytest.raises(CorruptArtifactError):
        check_object(a_library)
    with pytest.raises(CorruptArtifactError):
        check_library(an_object)
