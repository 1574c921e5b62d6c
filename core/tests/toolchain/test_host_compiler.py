"""Which C++ compiler is taken, and why another is not."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

import platformdirs
import pytest

from trunnion.errors import BackendUnavailableError
from trunnion.storage import remembered
from trunnion.storage.stamps import witnessed
from trunnion.toolchain import host_compiler as subject
from trunnion.toolchain.host_compiler import compiler_environment, host_compiler, try_compilers

TARGET = f"{platform.machine()}-linux-gnu"


def says(version: str = "gcc version 12.2.0 (Acme 12.2.0-14)", target: str = TARGET) -> str:
    """Return a program that answers as a compiler does."""
    return f"echo 'Target: {target}' >&2; echo 'Thread model: posix' >&2; echo '{version}' >&2"


def refusal() -> str:
    with pytest.raises(BackendUnavailableError) as caught:
        host_compiler("acme")
    error = caught.value
    assert (error.name, error.distribution) == ("acme", "its toolchain")
    assert "apt-get install g++" in error.reason
    assert "dnf install gcc-c++" in error.reason
    return error.reason


def test_a_real_one_is_known(real, monkeypatch) -> None:
    monkeypatch.setenv("CXX", real)
    compiler = host_compiler("acme")
    assert compiler.command == (real,)
    assert compiler.name == f"{Path(real).name} {compiler.version}"
    assert compiler.version in compiler.identity
    assert compiler.machine == platform.machine()
    assert compiler.target.startswith(compiler.machine)


def test_the_first_name_on_path_is_taken(script, only_path) -> None:
    for name, version in [
        ("clang++", "Debian clang version 14.0.6"),
        ("c++", "gcc version 10.2.0"),
        ("g++", "gcc version 9.1.0"),
    ]:
        script(f"bin/{name}", says(version))
        compiler = host_compiler("acme")
        assert compiler.command == (str(only_path / name),)
        assert compiler.identity == version
    assert compiler.name == "g++ 9.1.0"


def test_one_that_does_not_work_is_passed_over(script, only_path) -> None:
    script("bin/g++", "exit 1")
    script("bin/c++", says("gcc version 7.5.0"))
    script("bin/clang++", says("clang version 17.0.6"))
    assert host_compiler("acme").name == "clang++ 17.0.6"
    problems = {trial.named: trial.problem for trial in try_compilers()}
    assert problems == {
        "": "it is not set",
        "g++": "it does not say that it is GCC or Clang",
        "c++": "it is g++ 7.5.0; 8 or newer is needed",
        "clang++": "",
    }


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("gcc version 12.2.0 (Debian 12.2.0-14+deb12u1) ", "g++ 12.2.0"),
        ("gcc version 15.0.1 20250401 (experimental) (GCC)", "g++ 15.0.1"),
        ("gcc version 14 (GCC)", "g++ 14"),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", "clang++ 18.1.3"),
        ("clang version 19.1.0 (https://example.org/llvm.git 0123abc)", "clang++ 19.1.0"),
    ],
)
def test_versions_are_read(script, only_path, version, name) -> None:
    script("bin/g++", says(version))
    compiler = host_compiler("acme")
    assert compiler.name == name
    assert compiler.identity == version.strip()


def test_cxx_comes_first_and_may_hold_arguments(script, only_path, tmp_path, monkeypatch) -> None:
    script("bin/g++", says())
    mine = script("my tools/it's g++", 'test "$1" = "-a b" || exit 3\n' + says("gcc version 13.1.0"))
    monkeypatch.setenv("CXX", f"{shlex.quote(str(mine))} '-a b'")
    compiler = host_compiler("acme")
    assert compiler.command == (str(mine), "-a b")
    assert compiler.name == "g++ 13.1.0"
    monkeypatch.setenv("CXX", shlex.quote(str(mine)))
    assert "it does not say that it is GCC or Clang" in refusal()


def test_cxx_may_be_a_name_on_path_or_relative(script, only_path, tmp_path, monkeypatch) -> None:
    script("bin/mine", says())
    monkeypatch.setenv("CXX", "mine")
    assert host_compiler("acme").command == (str(only_path / "mine"),)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CXX", "bin/mine")
    assert host_compiler("acme").command == (str(only_path / "mine"),)
    monkeypatch.setenv("CXX", "../" + tmp_path.name + "/bin/mine")
    assert host_compiler("acme").command == (str(only_path / "mine"),)


@pytest.mark.parametrize("value", ["", "  ", "\t"])
def test_an_empty_cxx_is_not_set(script, only_path, monkeypatch, value) -> None:
    script("bin/g++", says())
    monkeypatch.setenv("CXX", value)
    assert host_compiler("acme").name == "g++ 12.2.0"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("/nonexistent/g++", "it does not exist"),
        ("no-such-compiler -O2", "it is not on PATH"),
        ("{folder}", "it is a folder"),
        ("{folder}/plain", "it is not executable"),
        ("{folder}/silent", "it does not say that it is GCC or Clang"),
        ("{folder}/failing", "it does not say that it is GCC or Clang"),
        ("{folder}/garbage", "Exec format error"),
        ("{folder}/old", "it is g++ 7.5.0; 8 or newer is needed"),
        ("{folder}/ancient", "it is clang++ 9.0.1; 10 or newer is needed"),
        ("{folder}/cross", "it compiles for riscv64-linux-gnu, this machine is"),
        ("{folder}/windows", "-w64-mingw32, this machine is"),
        ("{folder}/interpreter", "No such file or directory"),
        ("g++ 'unclosed", "it cannot be split into words (no closing quotation)"),
        ("''", "it is not on PATH"),
    ],
)
def test_a_cxx_that_cannot_be_used_is_not_replaced_by_another(
    script, only_path, tmp_path, monkeypatch, value, problem
) -> None:
    script("bin/g++", says())
    script("plain", "").chmod(0o644)
    script("silent", "exit 0")
    script("failing", says() + "; exit 1")
    script("old", says("gcc version 7.5.0"))
    script("ancient", says("clang version 9.0.1"))
    script("cross", says(target="riscv64-linux-gnu"))
    script("windows", says(target=f"{platform.machine()}-w64-mingw32"))
    script("garbage", "").write_bytes(b"\x7fELF nonsense")
    script("interpreter", "").write_text("#!/nonexistent/interpreter\n")
    monkeypatch.setenv("CXX", value.format(folder=tmp_path))
    reason = refusal()
    assert "CXX=" in reason
    assert problem in reason
    assert "mend CXX, or unset it" in reason


def test_without_any_all_that_was_tried_is_told(only_path) -> None:
    reason = refusal()
    for phrase in ("CXX: it is not set", "g++: it is not on PATH", "c++: ", "clang++: ", "name one in CXX"):
        assert phrase in reason


def test_one_that_never_answers_is_given_up(script, only_path, monkeypatch) -> None:
    monkeypatch.setattr(subject, "_SECONDS", 0.2)
    script("bin/g++", f"exec {shutil.which('sleep', path=os.defpath)} 60")
    assert "g++: it did not answer within 0.2 s" in refusal()


def test_it_is_asked_once_until_its_file_changes(script, only_path, tmp_path) -> None:
    count = f"echo x >> '{tmp_path}/asked'; "
    script("bin/g++", count + says("gcc version 12.1.0"))
    first = [host_compiler("acme") for _ in range(3)]
    assert len(set(first)) == 1
    assert (tmp_path / "asked").read_text() == "x\n"
    script("bin/g++", count + says("gcc version 12.2.0 (updated)"))
    assert host_compiler("acme").version == "12.2.0"
    assert (tmp_path / "asked").read_text() == "x\nx\n"


def test_a_failure_may_pass(script, only_path, tmp_path) -> None:
    script("bin/g++", f"test -e '{tmp_path}/ready' || exit 1\n" + says())
    refusal()
    (tmp_path / "ready").touch()
    assert host_compiler("acme").name == "g++ 12.2.0"


def test_the_fingerprint_is_of_the_compiler_and_not_of_its_place(script, only_path, monkeypatch) -> None:
    prints = []
    for name, body, words in [
        ("one", says(), ""),
        ("elsewhere/two", says(), ""),
        ("three", says("gcc version 12.2.0 (Acme 12.2.0-15)"), ""),
        ("one", says(), " -O3"),
    ]:
        path = script(name, body)
        monkeypatch.setenv("CXX", f"{path}{words}")
        prints.append(host_compiler("acme").fingerprint)
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


def test_the_environment_of_a_compiler(tmp_path, monkeypatch) -> None:
    for name in ("LD_RUN_PATH", "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "GCC_COLORS"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", "/kept")
    found = compiler_environment(tmp_path)
    assert (found["LC_ALL"], found["TMPDIR"], found["CPLUS_INCLUDE_PATH"]) == ("C", str(tmp_path), "/kept")
    assert not {"LD_RUN_PATH", "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "GCC_COLORS"} & set(found)


@pytest.fixture
def asked(tmp_path, monkeypatch) -> list[str]:
    """Each command that was asked who it is, by a program that answers as GCC does; nothing is known before."""
    asked: list[str] = []

    def answer(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(command[0])
        said = f"COLLECT_LTO_WRAPPER={wrapper}\nTarget: {TARGET}\ngcc version 12.2.0 (Acme 12.2.0-14)\n"
        return subprocess.CompletedProcess(command, 0, said.encode())

    wrapper = tmp_path / "lto-wrapper"
    wrapper.write_text("of 12.2.0")
    monkeypatch.setattr(subject.subprocess, "run", answer)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    monkeypatch.setattr(remembered, "_SETTLED", -(10**18))
    forget()
    return asked


def forget() -> None:
    """Know no more than another process does."""
    subject._identify.cache_clear()
    remembered._memory.cache_clear()


def test_a_program_is_asked_once_by_all_processes(asked, tmp_path, monkeypatch) -> None:
    compiler = tmp_path / "x86_64-g++-12"
    compiler.write_bytes(b"\x7fELF")
    compiler.chmod(0o700)
    monkeypatch.setenv("CXX", str(compiler))
    with witnessed() as seen:
        for _ in range(3):
            assert host_compiler("acme").name == "g++ 12.2.0"
            forget()
    assert not seen, (
        "what a program is compiled from is another matter: it would differ from what is seen behind it"
    )
    assert asked == [str(compiler)]
    (tmp_path / "lto-wrapper").write_text("of 13.1.0")
    host_compiler("acme")
    assert asked == [str(compiler)] * 2, "what lies beside it is another one"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("ccache", b"\x7fELF", ""), ("g++", b"#!/bin/sh\n", ""), ("g++", b"\x7fELF", " -m64")],
)
def test_what_stands_before_a_compiler_is_asked_by_each_process(
    asked, tmp_path, monkeypatch, name: str, text: bytes, words: str
) -> None:
    program, link = tmp_path / name, tmp_path / "bin-g++"
    program.write_bytes(text)
    program.chmod(0o700)
    link.symlink_to(program)
    monkeypatch.setenv("CXX", f"{link}{words}")
    for number in (1, 2):
        assert host_compiler("acme").name == "g++ 12.2.0"
        forget()
        assert len(asked) == number
