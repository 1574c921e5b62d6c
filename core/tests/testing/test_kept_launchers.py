"""What is kept of launchers: for all that it is made from, where they are only used, and no more than fits."""

from __future__ import annotations

import os
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from trunnion import examples
from trunnion.codegen.cpp import build
from trunnion.errors import CompileError, CorruptArtifactError
from trunnion.registry import default_registry
from trunnion.testing import kept_launchers as subject
from trunnion.testing.harness import Harness
from trunnion.testing.kept_launchers import kept_launchers, object_key, object_wanted, trim
from trunnion.testing.machine import synthetic_image
from trunnion.toolchain.host import find_host_toolchain
from trunnion.toolchain.host_compilation import HostCompilation
from trunnion.toolchain.host_reading import files_read

if TYPE_CHECKING:
    from pathlib import Path

COMPILER: Any = SimpleNamespace(fingerprint="g++ 12", command=("/usr/bin/g++",))
WANTED = HostCompilation(
    source="launcher.cc",
    text="int x;",
    output="launcher.so",
    options=(
        *("-O1", "-fPIC", "-shared", "-Wl,-z,defs", "-I/headers", "launcher.cc", "image.s", "runtime.o"),
        *("/lib/libtvm_ffi.so", "-nodefaultlibs", "-lc", "-ffile-prefix-map=/staging=."),
    ),
    inputs={"image.s": b"image", "runtime.o": b"runtime"},
)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[HostCompilation]:
    """The runs of the compiler, of which those of a text with an error are refused."""
    seen: list[HostCompilation] = []

    def compile_host(_compiler: Any, wanted: HostCompilation, _folder: Path, _plugin: str) -> bytes:
        seen.append(wanted)
        if "error" in wanted.text:
            raise CompileError("g++", "error", wanted.text, wanted.options, "x86_64", 1)
        return f"{wanted.output} of {wanted.text}".encode()

    monkeypatch.setattr(build, "launcher_fingerprint", lambda _plugin, cuda: f"headers 1, {cuda}")

    def read_host_object(data: bytes) -> None:
        if not data.startswith(b"launcher.o of "):
            raise CorruptArtifactError("host object", "is not whole")

    monkeypatch.setattr(subject, "read_host_object", read_host_object)
    monkeypatch.setattr(subject, "compile_host", compile_host)
    monkeypatch.setattr(build, "compile_host", compile_host)
    return seen


def built(kept: Path | None, wanted: HostCompilation = WANTED) -> bytes:
    staging: Any = "/staging"
    with kept_launchers(kept):
        return build.compile_host(COMPILER, wanted, staging, "plugin")


def test_of_an_object_that_is_kept_there_is_a_list_of_what_was_read(
    tmp_path: Path, runs: list[HostCompilation]
) -> None:
    listing = replace(WANTED, options=(*WANTED.options, "-MD", "-MF", "launcher.d"))
    for _ in range(2):
        with kept_launchers(tmp_path / "kept"):
            build.compile_host(COMPILER, listing, tmp_path, "plugin")
        assert files_read(tmp_path, ".", "launcher.d") == []
        (tmp_path / "launcher.d").unlink()
    assert outputs(runs) == ["launcher.o", "launcher.so", "launcher.so"]


def outputs(runs: list[HostCompilation]) -> list[str]:
    return [run.output for run in runs]


def test_a_text_is_compiled_once_and_linked_with_each_image(
    tmp_path: Path, runs: list[HostCompilation]
) -> None:
    other = replace(WANTED, inputs={**WANTED.inputs, "image.s": b"other"})
    for wanted in (WANTED, WANTED, other):
        assert built(tmp_path / "kept", wanted) == b"launcher.so of int x;"
    assert outputs(runs) == ["launcher.o", "launcher.so", "launcher.so", "launcher.so"]
    assert runs[0].options == (
        "-O1",
        "-fPIC",
        "-I/headers",
        "launcher.cc",
        "-ffile-prefix-map=/staging=.",
        "-c",
    )
    assert runs[0].inputs == {}
    for run, wanted in zip(runs[1:], (WANTED, WANTED, other), strict=True):
        assert run.inputs == {**wanted.inputs, "launcher.o": b"launcher.o of int x;"}
        assert run.options == tuple("launcher.o" if one == "launcher.cc" else one for one in WANTED.options)


def test_without_a_folder_each_is_built_as_ever(runs: list[HostCompilation]) -> None:
    built(None)
    assert runs == [WANTED]


def test_outside_of_the_block_each_is_built_as_ever(tmp_path: Path, runs: list[HostCompilation]) -> None:
    built(tmp_path / "kept")
    build.compile_host(COMPILER, WANTED, tmp_path, "plugin")
    assert runs[2:] == [WANTED]


def test_what_launchers_share_is_compiled_as_ever(tmp_path: Path, runs: list[HostCompilation]) -> None:
    shared = replace(WANTED, output="runtime.o", options=("-O1", "-c", "launcher.cc"), inputs={})
    built(tmp_path / "kept", shared)
    assert runs == [shared]


def test_where_the_toolchain_is_does_not_count(tmp_path: Path, runs: list[HostCompilation]) -> None:
    options = (
        "/opt/libtvm_ffi.so" if one.endswith(".so") else one.replace("headers", "opt")
        for one in WANTED.options
    )
    for wanted in (WANTED, replace(WANTED, options=tuple(options))):
        built(tmp_path / "kept", wanted)
    assert outputs(runs).count("launcher.o") == 1


def test_the_headers_that_count_are_those_of_its_kind(tmp_path: Path, runs: list[HostCompilation]) -> None:
    cuda = find_host_toolchain("plugin").cuda
    assert cuda is not None
    built(tmp_path / "kept")
    built(tmp_path / "kept", replace(WANTED, options=(f"-I{cuda.folder}", *WANTED.options)))
    assert outputs(runs).count("launcher.o") == 2


def test_what_is_compiled_while_a_header_changes_is_not_kept(
    tmp_path: Path, runs: list[HostCompilation], monkeypatch: pytest.MonkeyPatch
) -> None:
    prints = iter(["one", "two", "two", "two", "two", "two"])
    monkeypatch.setattr(build, "launcher_fingerprint", lambda _plugin, cuda: next(prints))
    for _ in range(3):
        assert built(tmp_path / "kept") == b"launcher.so of int x;"
    made = [name for name in outputs(runs) if name == "launcher.o"]
    assert len(made) == 3, "again for the first, which cannot be kept, and once for the others"


@pytest.mark.parametrize(
    "change",
    [
        {"text": "int y;"},
        {"source": "other.cc", "options": ("other.cc", *WANTED.options[1:])},
        {"options": ("-O2", *WANTED.options[1:])},
        {"options": (*WANTED.options, "-DX")},
    ],
    ids=["text", "source", "option", "another option"],
)
def test_all_that_it_is_made_from_counts(
    tmp_path: Path, runs: list[HostCompilation], change: dict[str, Any]
) -> None:
    built(tmp_path / "kept")
    built(tmp_path / "kept", replace(WANTED, **change))
    assert outputs(runs).count("launcher.o") == 2


def test_the_compiler_and_the_toolchain_count() -> None:
    others = (
        SimpleNamespace(fingerprint="g++ 13", command=COMPILER.command),
        SimpleNamespace(fingerprint=COMPILER.fingerprint, command=("/usr/bin/g++", "-m32")),
    )
    wanted = object_wanted(WANTED)
    keys = {object_key(compiler, wanted, "headers 1") for compiler in (COMPILER, *others)}
    assert len(keys | {object_key(COMPILER, wanted, "headers 2")}) == 4


def test_what_is_refused_is_refused_again(tmp_path: Path, runs: list[HostCompilation]) -> None:
    for _ in range(2):
        with pytest.raises(CompileError):
            built(tmp_path / "kept", replace(WANTED, text="error"))
    assert outputs(runs) == ["launcher.o", "launcher.o"]


def test_what_was_damaged_is_compiled_again(tmp_path: Path, runs: list[HostCompilation]) -> None:
    built(tmp_path / "kept")
    (kept,) = (tmp_path / "kept").glob("*/*/launcher.o")
    kept.write_bytes(b"half")
    built(tmp_path / "kept")
    assert outputs(runs).count("launcher.o") == 2
    assert runs[-1].inputs["launcher.o"] == b"launcher.o of int x;"


def test_what_a_compiler_breaks_once_is_not_kept(
    tmp_path: Path, runs: list[HostCompilation], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(subject, "compile_host", lambda *_: b"launch")
        with pytest.raises(CorruptArtifactError, match="is not whole"):
            built(tmp_path / "kept")
    assert built(tmp_path / "kept") == b"launcher.so of int x;"
    assert outputs(runs) == ["launcher.o", "launcher.so"]


def test_a_folder_that_cannot_be_used_is_no_failure(tmp_path: Path, runs: list[HostCompilation]) -> None:
    (tmp_path / "kept").write_text("a file")
    assert built(tmp_path / "kept") == b"launcher.so of int x;"
    assert outputs(runs) == ["launcher.o", "launcher.so"]


def test_a_launcher_of_a_kept_text_has_the_bytes_of_any_other(tmp_path: Path) -> None:
    program = examples.load("vector_add").program
    spec = default_registry().backend("tvm_ffi")
    source = spec.load_wrapper()(spec).wrap(program.plan())
    digests = []
    for index, kept in enumerate((None, tmp_path / "kept", tmp_path / "kept")):
        staging = tmp_path / str(index)
        staging.mkdir()
        with kept_launchers(kept):
            artifact = spec.load_adapter()(spec).build(source, synthetic_image(program), staging)
        digests.append(artifact.digest)
    assert len(list((tmp_path / "kept").glob("*/*/launcher.o"))) == 1
    assert len(set(digests)) == 1


ENTRIES = "??/" + "?" * 62


def test_those_used_least_recently_go_first(tmp_path: Path, runs: list[HostCompilation]) -> None:
    texts = [f"int x{index};" for index in range(6)]
    for text in texts:
        built(tmp_path, replace(WANTED, text=text))
    for when, entry in enumerate(
        sorted(tmp_path.glob(ENTRIES), key=lambda one: (one / "launcher.o").read_bytes())
    ):
        os.utime(entry, (when, when))
    built(tmp_path, replace(WANTED, text=texts[0]))  # so that it is the one used last
    one = sum(file.stat().st_size for file in next(tmp_path.glob(ENTRIES)).iterdir())
    trim(tmp_path, 6 * one)
    assert len(list(tmp_path.glob(ENTRIES))) == 6
    trim(tmp_path, 5 * one)
    left = {path.read_text() for path in tmp_path.glob("*/*/launcher.o")}
    assert left == {f"launcher.o of {texts[index]}" for index in (0, 5)}


def test_only_programs_that_are_just_used_may_have_been_built_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[bool] = []
    plain = build.compile_host
    made = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(Harness, "build", lambda *_: kept.append(build.compile_host is not plain))
    monkeypatch.setattr(Harness, "load", lambda *_: made)
    nothing: Any = None
    harness = Harness(spec=nothing, machine=nothing, kept=tmp_path)
    harness.build(nothing)
    for one in (harness, replace(harness, kept=None)):
        with one.loaded(nothing):
            pass
    assert kept == [False, True, False]
