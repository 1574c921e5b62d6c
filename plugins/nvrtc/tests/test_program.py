"""`Program`: NVRTC with typed results, and every way in which it can fail."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import platformdirs
import pytest

from trunnion.errors import CompileError, DriverError, LifecycleError, ProgramError
from trunnion.storage import remembered
from trunnion.storage.stamps import witnessed
from trunnion_nvrtc.compiler import nvrtc
from trunnion_nvrtc.compiler import program as subject
from trunnion_nvrtc.compiler.outputs import OUTPUTS, CompiledOutput
from trunnion_nvrtc.compiler.program import Program, build_id
from trunnion_nvrtc.compiler.results import NVRTC_RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = "template <class T> __global__ void scale(T* x) { x[0] *= 2; }"
REAL = "--gpu-architecture=sm_90a"
VIRTUAL = "--gpu-architecture=compute_90a"


def test_missing_builtins_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    bindings = nvrtc.bindings()
    status = bindings.nvrtcResult.NVRTC_ERROR_BUILTIN_OPERATION_FAILURE
    monkeypatch.setattr(bindings, "nvrtcCompileProgram", lambda *_: (status,))
    with (
        pytest.raises(DriverError, match="libnvrtc-builtins") as caught,
        Program("") as program,
    ):
        program.compile()
    assert caught.value.code_name == "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_program_that_was_never_made_is_deleted_without_a_word() -> None:
    """Arguments that do not fit are refused before ``__init__`` begins."""
    with pytest.raises(TypeError, match="bogus"):
        Program("", bogus=1)  # type: ignore[call-arg]  # that is the test
    gc.collect()


def test_a_failure_names_call_code_and_meaning() -> None:
    with pytest.raises(DriverError) as caught, Program("") as program:
        program.get_lowered_name("k")
    error = caught.value
    assert error.call == "nvrtcGetLoweredName"
    assert error.code_name == "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION"
    assert error.code == 9
    assert error.explanation


def test_the_build_is_named_exactly() -> None:
    version, build = build_id().split()
    assert version.split(".")[:2] == [str(number) for number in nvrtc.version()]
    assert len(version.split(".")) == 3
    assert build.startswith("CL-")


@pytest.fixture
def fresh_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have nothing known of any build, by this process or before it, and forget what the test makes known."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    forget()
    yield
    forget()


def forget() -> None:
    """Know no more than another process does."""
    subject._loaded_build.cache_clear()
    remembered._memory.cache_clear()


def test_the_build_is_asked_once_for_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_build: None
) -> None:
    asked = []
    monkeypatch.setattr(subject, "_asked_build", lambda: asked.append(1) or f"build {len(asked)}")
    library = tmp_path / "libnvrtc.so.13"
    library.write_text("")
    monkeypatch.setattr(subject, "is_loaded", lambda _: True)
    monkeypatch.setattr(subject, "_loaded_library", lambda: str(library))
    monkeypatch.setattr(remembered, "_SETTLED", -(10**18))
    with witnessed() as seen:
        first = build_id()
    assert not seen, "what a program is compiled from is another matter"
    for another in (subject._loaded_build.cache_clear, forget):
        another()
        assert build_id() == first == "build 1"
    library.write_text("another")
    subject._loaded_build.cache_clear()
    assert build_id() == "build 2"
    monkeypatch.setattr(subject, "_loaded_library", lambda: None)
    for number in (3, 4):
        subject._loaded_build.cache_clear()
        assert build_id() == f"build {number}", "of no known file it is asked each time"


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_build: None) -> dict[str, Path]:
    """Two places of a wheel's NVRTC that nobody has loaded: it would be loaded from the one under ``"loaded"``."""
    places = [tmp_path / name / "libnvrtc.so.13" for name in ("first", "second")]
    where = {"first": places[0], "second": places[1], "loaded": places[1]}
    for place in places:
        place.parent.mkdir()
    places[1].write_text("one")
    monkeypatch.setattr(subject, "is_loaded", lambda _: False)
    monkeypatch.setattr(subject, "nvrtc_in_wheels", lambda: tuple(map(str, places)))
    monkeypatch.setattr(subject, "_loaded_library", lambda: str(where["loaded"]))
    monkeypatch.setattr(remembered, "_SETTLED", -(10**18))
    return where


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What grows each time that NVRTC is loaded."""
    loaded: list[int] = []
    monkeypatch.setattr(subject, "bindings", lambda: loaded.append(1))
    monkeypatch.setattr(subject, "_asked_build", lambda: f"build {len(loaded)}")
    return loaded


def test_what_nobody_loaded_is_known_without_loading_it(wheels: dict[str, Path], loads: list[int]) -> None:
    assert build_id() == "build 1"
    forget()
    assert build_id() == "build 1"
    assert len(loads) == 1


@pytest.mark.parametrize("change", ["another build", "another that comes before"])
def test_what_lies_in_a_wheel_is_loaded_once_it_is_another(
    wheels: dict[str, Path], loads: list[int], change: str
) -> None:
    assert build_id() == "build 1"
    forget()
    if change == "another build":
        wheels["second"].write_text("another one")
    else:
        wheels["first"].write_text("new")
        wheels["loaded"] = wheels["first"]
    assert build_id() == "build 2"


def test_one_that_the_loader_found_is_loaded_each_time(
    wheels: dict[str, Path], loads: list[int], tmp_path: Path
) -> None:
    wheels["loaded"] = tmp_path / "libnvrtc.so.13"
    wheels["loaded"].write_text("of a toolkit")
    for number in (1, 2):
        forget()
        build_id()
        assert len(loads) == number


def test_what_is_loaded_counts_whatever_lies_in_wheels(
    wheels: dict[str, Path], loads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert build_id() == "build 1"
    other = wheels["first"].with_name("elsewhere")
    other.write_text("another one")
    wheels["loaded"] = other
    forget()
    monkeypatch.setattr(subject, "is_loaded", lambda _: True)
    assert build_id() == "build 2"


@pytest.mark.parametrize(
    ("lines", "there"),
    [
        (
            "7f00-7f01 r--p 00000000 fe:00 {inode}   {path}\n7f01-7f02 r-xp 00001000 fe:00 {inode} {path}\n",
            True,
        ),
        ("7f00-7f01 r--p 00000000 fe:00 {inode} {path} (deleted)\n", False),
        ("7f00-7f01 r--p 00000000 fe:00 1 {path}\n", False),
        (
            "7f00-7f01 r--p 00000000 fe:00 {inode} {path}\n7f00-7f01 r--p 00000000 fe:00 2 /x/libnvrtc.so.12\n",
            False,
        ),
        ("7f00-7f01 r--p 00000000 fe:00 {inode} /x/libnvrtc-builtins.so.13\n", False),
    ],
)
def test_the_file_that_it_was_loaded_from_is_known_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, there: bool
) -> None:
    library = tmp_path / "a b" / "libnvrtc.so.13"
    library.parent.mkdir()
    library.write_text("")
    text = lines.format(inode=library.stat().st_ino, path=library)
    monkeypatch.setattr(subject.Path, "read_text", lambda *_: text)
    assert subject._loaded_library() == (str(library) if there else None)


def test_the_library_of_this_process_is_known() -> None:
    build_id()
    assert "libnvrtc.so" in (subject._loaded_library() or "")


def test_a_program_gives_what_the_library_gives() -> None:
    with Program(SOURCE, "mine.cu", [("unused.h", "")]) as program:
        program.add_name_expression("scale<float>")
        result = program.compile([REAL, "--std=c++20"])
        assert (result.code, result.code_name, result.succeeded) == (0, "NVRTC_SUCCESS", True)
        assert program.get_log() == result.log == ""
        assert program.get_lowered_name("scale<float>") == "_Z5scaleIfEvPT_"
        cubin, ptx = program.get_cubin(), program.get_ptx()
        assert cubin == CompiledOutput("cubin", cubin.data)
        assert cubin.data.startswith(b"\x7fELF")
        assert cubin.size == len(cubin.data)
        assert ".target sm_90a" in ptx.text
        assert ptx.data == ptx.text.encode() + b"\0"
        assert program.get_pch_status().name == "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED"


def test_the_log_is_there_on_success_and_names_the_file() -> None:
    with Program("__global__ void k() { int unused; }", "mine.cu") as program:
        assert program.get_log() == ""
        assert program.compile([REAL]).log.startswith("mine.cu(1): warning")
        assert program.get_log().startswith("mine.cu(1): warning")


def test_intermediate_code() -> None:
    for option, kind in (("--dlink-time-opt", "ltoir"), ("-dlto", "ltoir"), ("--optix-ir", "optixir")):
        for arch in (REAL, VIRTUAL):
            with Program(SOURCE) as program:
                program.compile([arch, option])
                get = program.get_ltoir if kind == "ltoir" else program.get_optixir
                assert get().kind == kind
                assert get().size > 500
                assert get() == program.get_output(kind)
                for other in {row.kind for row in OUTPUTS} - {kind}:
                    with pytest.raises(ProgramError, match=f"there is no {other}"):
                        program.get_output(other)


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ((VIRTUAL,), "cubin", "compute_90a, a virtual architecture; compile for sm_90a"),
        (("-arch=compute_80",), "cubin", "compile for sm_80"),
        ((), "cubin", "compile first"),
        ((REAL,), "ltoir", "--dlink-time-opt"),
        ((REAL,), "optixir", "--optix-ir"),
        ((REAL, "-dlto"), "cubin", "-dlto"),
        ((REAL, "-dlto"), "ptx", "-dlto"),
    ],
)
def test_an_output_that_is_not_there_is_explained(options: tuple[str, ...], kind: str, said: str) -> None:
    """NVRTC calls the size of what is not there, 0, a success."""
    with Program(SOURCE) as program:
        program.compile(options)
        with pytest.raises(ProgramError) as caught:
            program.get_output(kind)
    assert said in caught.value.message
    assert caught.value.field == "options"


def test_every_output_is_fetched_by_the_call_of_its_row() -> None:
    for row in OUTPUTS:
        for name in (f"nvrtcGet{row.call}", f"nvrtcGet{row.call}Size"):
            assert hasattr(nvrtc.bindings(), name)
    with pytest.raises(LookupError), Program("") as program:
        program.get_output("sass")


@pytest.mark.parametrize("status", [row for row in NVRTC_RESULTS if row.code not in {0, 5, 6, 10}])
def test_every_status_becomes_an_error(monkeypatch: pytest.MonkeyPatch, status) -> None:
    answer = nvrtc.bindings().nvrtcResult(status.code)
    monkeypatch.setattr(nvrtc.bindings(), "nvrtcCompileProgram", lambda *_: (answer,))
    with pytest.raises(DriverError) as caught, Program("") as program:
        program.compile()
    error = caught.value
    assert (error.call, error.code, error.code_name) == ("nvrtcCompileProgram", status.code, status.name)
    assert error.explanation == status.meaning != ""


def test_what_the_source_or_an_option_is_to_blame_for() -> None:
    with Program("oops", "mine.cu") as program:
        with pytest.raises(CompileError, match="oops") as refused:
            program.compile([REAL])
        assert refused.value.options == (REAL,)
        assert refused.value.arch == REAL.partition("=")[2]
        assert f"refused the source for {refused.value.arch}\n" in str(refused.value)
        assert not program.run([REAL]).succeeded
        with pytest.raises(ProgramError, match="--bogus"):
            program.compile(["--bogus"])
    with Program(SOURCE) as program:
        program.add_name_expression("absent")
        with pytest.raises(CompileError, match="absent"):
            program.compile([REAL])


def test_a_name_that_was_not_asked_for() -> None:
    with Program(SOURCE) as program:
        program.compile([REAL])
        with pytest.raises(DriverError) as caught:
            program.get_lowered_name("scale<float>")
        assert caught.value.code_name == "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID"
        with pytest.raises(DriverError) as caught:
            program.add_name_expression("scale<float>")
        assert caught.value.code_name == "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION"


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\rb", "a\0b", "\udc80", "a\u2028b"])
def test_a_hostile_name_never_reaches_the_library(name: str) -> None:
    with Program(SOURCE) as program, pytest.raises(ProgramError):
        program.add_name_expression(name)


def test_quotes_in_a_name_are_an_error_of_the_source() -> None:
    for name in ('"', "'", 'scale<float>" int', "scale<float>); int evil(", "/*"):
        with Program(SOURCE) as program:
            program.add_name_expression(name)
            with pytest.raises(CompileError):
                program.compile([REAL])


def test_a_closed_program() -> None:
    program = Program(SOURCE)
    program.compile([REAL])
    program.close()
    program.close()
    for use in (
        program.compile,
        program.get_ptx,
        program.get_pch_status,
        lambda: program.get_lowered_name("scale<float>"),
        lambda: program.add_name_expression("scale<float>"),
    ):
        with pytest.raises(LifecycleError):
            use()


def test_a_program_closes_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    destroyed: list[int] = []
    destroy = nvrtc.bindings().nvrtcDestroyProgram

    def counted(handle):
        destroyed.append(1)
        return destroy(handle)

    monkeypatch.setattr(nvrtc.bindings(), "nvrtcDestroyProgram", counted)
    program = Program(SOURCE)
    del program
    assert destroyed == [1]
    with pytest.raises(ZeroDivisionError), Program(SOURCE):
        raise ZeroDivisionError
    assert destroyed == [1, 1]
    with pytest.raises(ProgramError):
        Program("\0")
    assert destroyed == [1, 1]
