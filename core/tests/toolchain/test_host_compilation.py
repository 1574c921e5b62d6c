"""One run of the compiler, and every way in which it can fail."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import platform
import shutil
import signal
import time
from pathlib import Path

import pytest
from leak_reading.processes import children

from trunnion.errors import BackendUnavailableError, CompileError, DeviceRequirementError
from trunnion.testing.interruption import interrupting
from trunnion.toolchain.host_compilation import HostCompilation, compile_host, run_host
from trunnion.toolchain.host_compiler import HostCompiler, host_compiler

TEXT = "int one;\nint two;\nint three;\n"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "staging"
    made.mkdir()
    return made


@pytest.fixture
def compiler(real, monkeypatch):
    monkeypatch.setenv("CXX", real)
    return host_compiler("acme")


@pytest.fixture
def fake(script):
    """A compiler that is a program of the shell."""

    def make(body: str) -> HostCompiler:
        path = script("fake compiler", body)
        return HostCompiler((str(path),), "g++", "12.2.0", "gcc version 12.2.0", "x86_64-linux-gnu")

    return make


def wanted(text: str = TEXT, **others) -> HostCompilation:
    given = {"options": ("-c", "unit.cc"), "source": "unit.cc", "output": "unit.o", "text": text}
    return HostCompilation(**{**given, **others})


def test_the_bytes_that_were_made_are_returned(compiler, folder) -> None:
    made = compile_host(compiler, wanted(), folder, "acme")
    assert made.startswith(b"\x7fELF")
    assert made == (folder / "unit.o").read_bytes()


@pytest.mark.parametrize(
    "name",
    ["with space", "quote'\"s", "$(touch x)", "a;b&c", "-dash", "名前", "new\nline", "a=b", "@x", "%s"],
)
def test_the_folder_may_have_any_name(compiler, tmp_path, name) -> None:
    folder = tmp_path / name
    folder.mkdir()
    found = wanted('#include "beside.h"\nint f() { return X; }', inputs={"beside.h": b"#define X 1\n"})
    options = (f"-ffile-prefix-map={folder}=.", *found.options)
    assert compile_host(compiler, wanted(found.text, inputs=found.inputs, options=options), folder, "acme")
    assert {path.name for path in folder.iterdir()} == {"unit.cc", "unit.o", "beside.h"}
    assert {path.name for path in tmp_path.iterdir()} == {name}


def test_without_a_path_it_finds_its_parts_where_it_was_found(compiler, folder, monkeypatch) -> None:
    """Programs are looked for in the system's folders then, the linker too."""
    monkeypatch.delenv("PATH")
    options = ("-shared", "-fPIC", "unit.cc")
    assert compile_host(compiler, wanted(output="unit.so", options=options), folder, "acme")


def test_temporary_files_stay_in_the_folder(fake, folder) -> None:
    made = compile_host(fake('printf %s "$TMPDIR $LC_ALL $PWD" > unit.o'), wanted(), folder, "acme")
    assert made.decode() == f"{folder} C {folder}"


def test_the_arguments_arrive_as_they_are(fake, folder) -> None:
    odd = ("a b", "'", '"', "$HOME", "", "*", "\\", "名")
    made = compile_host(fake('printf "%s|" "$@" > unit.o'), wanted(options=odd), folder, "acme")
    assert made.decode().split("|") == [*odd, "-o", "unit.o", ""]


def test_nothing_is_read_from_the_caller(fake, folder) -> None:
    assert compile_host(fake("cat > unit.o"), wanted(), folder, "acme") == b""


def refusal(compiler: HostCompiler, asked: HostCompilation, folder: Path) -> CompileError:
    with pytest.raises(CompileError) as caught:
        compile_host(compiler, asked, folder, "acme")
    return caught.value


def test_an_error_has_all_that_is_known(compiler, folder) -> None:
    text = "int one;\nint f() { return nonsense; }\nint g() { return worse; }\n"
    error = refusal(compiler, wanted(text), folder)
    assert (error.compiler, error.arch, error.line) == (compiler.name, platform.machine(), 2)
    assert (error.source, error.options) == (text, ("-c", "unit.cc", "-o", "unit.o"))
    assert "nonsense" in error.log
    assert "worse" in error.log
    assert "\x1b" not in error.log, "no colours"
    assert "> 2 | int f() { return nonsense; }" in str(error)
    assert "  3 | int g()" in error.numbered_source()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('int one;\n\n#include "broken.h"\nint four;\n', 3),
        ("\n#include <no/such/header.h>\n", 2),
        ("int f(int unused) { }\n#warning first\nint x = y;\n", 3),
        ("void g();\nvoid f() { g(1); }\n", 2),
        ("\n\n\nint f() {", 4),
        ("template <class T> int f() { return T::x; }\n\nint y = f<int>();\n", 1),
        ("#define BAD nonsense\n\nint x = BAD;\n", 3),
        ('#line 90 "elsewhere.cc"\nint x = y;\n', 0),
    ],
)
def test_the_first_line_that_is_complained_of_is_found(compiler, folder, text, line) -> None:
    asked = wanted(text, inputs={"broken.h": b"\n\nint x = nonsense;\n"})
    error = refusal(compiler, asked, folder)
    if "#define BAD" in text:
        assert error.line in {1, 3}, "where the macro is written, or where it is used"
    else:
        assert error.line == line, error.log


def test_a_source_that_another_file_includes_is_known(compiler, folder) -> None:
    options = ("-c", "-I.", "outer.cc")
    asked = wanted("int one;\nint x = y;\n", options=options, inputs={"outer.cc": b"#include <unit.cc>\n"})
    assert refusal(compiler, asked, folder).line == 2


def test_a_text_that_is_not_utf8_ends_in_a_typed_error_or_compiles(compiler, folder) -> None:
    assert compile_host(compiler, wanted("// \udcff \ud800\nint x;\n"), folder, "acme")
    refusal(compiler, wanted("int \ud800;\n"), folder)


def test_bytes_of_a_log_that_are_no_text_are_spelled_out(fake, folder) -> None:
    error = refusal(fake(r"printf 'unit.cc:2:1: error: \377\n' >&2; exit 1"), wanted(), folder)
    assert r"error: \xff" in error.log
    assert error.line == 2


def test_a_killed_compiler_is_told(fake, folder) -> None:
    error = refusal(fake("echo so far; kill -9 $$"), wanted(), folder)
    assert error.log.startswith("so far\n")
    assert "ended by SIGKILL" in error.log
    assert "memory may have run out" in error.log


def test_success_without_a_result_is_a_failure(fake, folder) -> None:
    assert "made nothing" in refusal(fake("exit 0"), wanted(), folder).log
    assert "made nothing" in refusal(fake("mkdir unit.o"), wanted(), folder).log


def test_what_was_there_before_is_no_result(fake, folder) -> None:
    (folder / "unit.o").write_bytes(b"stale")
    assert "made nothing" in refusal(fake("exit 0"), wanted(), folder).log


def ended(process: int) -> bool:
    """Whether a process runs no more; nobody may have asked for its status yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("status", [0, 3])
def test_what_a_compiler_leaves_behind_is_not_waited_for(fake, folder, status) -> None:
    """The server of a compiler cache, say, may keep open what the compiler prints into."""
    sleep, seconds = shutil.which("sleep"), 60
    body = f"echo so far; {sleep} {seconds} & echo $! > part; echo made > unit.o; exit {status}"
    before = time.monotonic()
    if status:
        assert "so far" in refusal(fake(body), wanted(seconds=seconds), folder).log
    else:
        made = run_host(fake(body), wanted(seconds=seconds), folder, "acme")
        assert (made.data, made.log) == (b"made\n", "so far\n")
    assert time.monotonic() - before < seconds / 2
    os.kill(int((folder / "part").read_text()), signal.SIGKILL)


def test_one_that_takes_too_long_ends_with_all_its_parts(fake, folder) -> None:
    sleep = shutil.which("sleep")
    body = f"echo so far; {sleep} 600 & echo $! > part; echo $$ > whole; wait"
    error = refusal(fake(body), wanted(seconds=1), folder)
    assert error.log.startswith("so far\n")
    assert "did not end within 1 s" in error.log
    for name in ("part", "whole"):
        process = int((folder / name).read_text())
        while not ended(process):  # a signal is sent before it arrives
            os.sched_yield()


def test_an_interrupt_ends_the_compiler(fake, folder, monkeypatch) -> None:
    import subprocess

    def interrupted(self, *args, **kwargs):
        while not (folder / "whole").exists() or not (folder / "whole").read_text().endswith("\n"):
            os.sched_yield()
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compile_host(fake(f"echo $$ > whole; exec {shutil.which('sleep')} 600"), wanted(), folder, "acme")
    assert ended(int((folder / "whole").read_text()))


def test_an_interrupt_at_any_place_leaves_no_process_and_no_descriptor(fake, folder) -> None:
    """Ctrl-C wherever it may strike in what starts a compiler, waits for it and takes up what it made."""
    compiler = fake("echo log; echo made > unit.o")
    gc.collect()  # what earlier tests left is not to be closed among these
    (processes, descriptors), at = held(), 1
    while interrupted(lambda: compile_host(compiler, wanted(), folder, "acme"), at):
        more_processes, more_descriptors = held()
        assert not more_processes - processes, f"place {at}"
        assert not more_descriptors - descriptors, f"place {at}"
        at += 1
    assert at > 50


def held() -> tuple[set[str], set[str]]:
    """Return the children and the descriptors of this process."""
    return children(), {link.name for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}


def of_compilation(frame) -> bool:
    mine = ("host_compilation.py", "storage", "subprocess.py", "contextlib.py", "selectors.py")
    # What is raised in __del__, and in what that calls, is raised to nobody.
    finalizing = "__del__" in {one.f_code.co_name for one in (frame, frame.f_back) if one is not None}
    return not finalizing and any(part in frame.f_code.co_filename for part in mine)


def interrupted(act, place) -> bool:
    """Press Ctrl-C at a place, counted from 1; return whether there was such a place."""
    strike = functools.partial(signal.raise_signal, signal.SIGINT)
    with contextlib.suppress(KeyboardInterrupt), interrupting(of_compilation, place, strike) as interruption:
        act()
    return interruption.struck


def test_a_compiler_that_is_gone_is_unavailable(fake, folder) -> None:
    compiler = fake("")
    Path(compiler.command[0]).unlink()
    with pytest.raises(BackendUnavailableError) as caught:
        compile_host(compiler, wanted(), folder, "acme")
    assert caught.value.name == "acme"
    assert compiler.command[0] in caught.value.reason
    assert "apt-get install g++" in caught.value.reason


@pytest.mark.parametrize(
    "said",
    [
        "gcc: fatal error: cannot execute 'cc1plus': execvp: No such file or directory",
        "gcc: error trying to exec 'cc1plus': execvp: No such file or directory",
    ],
)
def test_a_compiler_of_c_alone_is_unavailable(fake, folder, said) -> None:
    with pytest.raises(BackendUnavailableError) as caught:
        compile_host(fake(f'echo "{said}" >&2; exit 1'), wanted(), folder, "acme")
    assert "cannot compile C++" in caught.value.reason
    assert "apt-get install g++" in caught.value.reason


def test_a_source_that_speaks_of_that_is_only_wrong(compiler, folder) -> None:
    refusal(compiler, wanted("#error x: fatal error: cannot execute 'cc1plus'\n"), folder)


@pytest.mark.parametrize("place", ["missing", "file"])
def test_a_folder_that_cannot_be_written_to_is_told(compiler, tmp_path, place) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DeviceRequirementError) as caught:
        compile_host(compiler, wanted(), tmp_path / place, "acme")
    assert str(tmp_path / place) in caught.value.got
    assert "TMPDIR" in caught.value.hint


def test_a_disk_that_is_full_before_is_told(compiler, folder) -> None:
    (folder / "image.bin").symlink_to("/dev/full")
    with pytest.raises(DeviceRequirementError, match="No space left on device"):
        compile_host(compiler, wanted(inputs={"image.bin": b"x"}), folder, "acme")


def test_a_folder_that_goes_while_it_compiles_is_told(fake, folder) -> None:
    with pytest.raises(DeviceRequirementError):
        compile_host(fake('rm -r "$PWD"; exit 1'), wanted(), folder, "acme")


def test_a_disk_that_is_full_meanwhile_is_told(fake, folder, monkeypatch) -> None:
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trunnion.toolchain.host_compilation.os.fsync", full)
    with pytest.raises(DeviceRequirementError, match="No space left on device"):
        compile_host(fake("echo 'final link failed'; exit 1"), wanted(), folder, "acme")
