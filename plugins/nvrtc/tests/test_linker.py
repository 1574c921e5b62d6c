"""nvJitLink's own edge: what is missing, what it refuses, and what it must never be given."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from trunnion.errors import (
    BackendUnavailableError,
    CompileError,
    CorruptArtifactError,
    DriverError,
    ProgramError,
)
from trunnion.image.cubin import read_cubin
from trunnion.image.ptx import read_ptx
from trunnion_nvrtc.compiler import linker, nvrtc
from trunnion_nvrtc.compiler.linker import LinkInput
from trunnion_nvrtc.compiler.program import Program
from trunnion_nvrtc.compiler.results import NVJITLINK_RESULTS

USES = '__device__ int twice(int); extern "C" __global__ void add(int* p, float q) { p[0] = twice(p[1]) + (int)q; }'
HAS = "__device__ int twice(int x) { return x * 2; } __device__ int shared_counter;"
MODES = {
    "cubin": ("-arch=sm_90a", "-dc"),
    "ltoir": ("-arch=sm_90a", "-dlto"),
    "ptx": ("-arch=compute_90a", "-dc"),
}


def made(source: str, kind: str, name: str = "part", *more: str) -> LinkInput:
    with Program(source) as program:
        program.compile([*MODES[kind], *more])
        return LinkInput(kind, program.get_output(kind).data, name)


@pytest.mark.parametrize(
    ("uses", "has"),
    [("cubin", "cubin"), ("ltoir", "ltoir"), ("ptx", "cubin"), ("cubin", "ptx"), ("ptx", "ptx")],
)
def test_parts_become_one_cubin(uses: str, has: str) -> None:
    result = linker.link([made(USES, uses), made(HAS, has)], "sm_90a")
    (kernel,) = read_cubin(result.data).kernels
    assert kernel.name == "add"
    assert [(p.offset, p.size) for p in kernel.parameters] == [(0, 8), (8, 4)]
    assert result.log == ""


def test_ptx_of_parts() -> None:
    result = linker.link([made(USES, "ltoir"), made(HAS, "ltoir")], "compute_90a", output="ptx")
    info = read_ptx(result.data)
    assert info.target == "sm_90a"
    assert [kernel.name for kernel in info.kernels] == ["add"]


def test_options_reach_the_linker() -> None:
    parts = [made(USES, "ltoir"), made(HAS, "ltoir")]
    plain = linker.link(parts, "sm_90a")
    assert linker.link(parts, "sm_90a") == plain
    verbose = linker.link(parts, "sm_90a", ["-verbose"])
    assert "registers" in verbose.log
    assert linker.link(parts, "sm_90a", ["-lineinfo"]).data != plain.data


def test_a_name_that_nobody_defines() -> None:
    with pytest.raises(CompileError, match="_Z5twicei") as caught:
        linker.link([made(USES, "cubin", 'it\'s "q"\n\0 größe \udc80')], "sm_90a")
    error = caught.value
    assert error.compiler == "nvJitLink {}.{}".format(*linker.version())
    assert (error.arch, error.options) == ("sm_90a", ("-arch=sm_90a",))
    assert "größe" in error.log
    assert "NVJITLINK_ERROR" in error.log


@pytest.mark.parametrize("kind", ["cubin", "ptx", "ltoir"])
def test_a_name_that_two_parts_define(kind: str) -> None:
    """In cubins and PTX nvJitLink calls it a success, and may end the process when the result is fetched."""
    parts = [made(USES, kind, "one"), made(HAS, kind, "two"), made(HAS.replace("2", "3"), kind, "three")]
    with pytest.raises((ProgramError, CompileError)) as caught:
        linker.link(parts, "sm_90a")
    assert "_Z5twicei" in str(caught.value) or "shared_counter" in str(caught.value)


def test_a_name_that_a_ptx_and_a_cubin_define() -> None:
    with pytest.raises(ProgramError, match="both 'one' and 'two' define"):
        linker.link([made(HAS, "ptx", "one"), made(HAS, "cubin", "two")], "sm_90a")


def test_templates_may_stand_in_several_parts() -> None:
    template = "template <class T> __device__ __noinline__ T thrice(T x) { return x * 3; }"
    for kind in MODES:
        parts = [
            made(template + f'extern "C" __global__ void k{i}(int* p) {{ p[0] = thrice(p[1]); }}', kind)
            for i in range(2)
        ]
        names = {kernel.name for kernel in read_cubin(linker.link(parts, "sm_90a").data).kernels}
        assert names == {"k0", "k1"}


def test_a_finished_cubin_is_not_dropped_in_silence() -> None:
    whole = LinkInput("cubin", cubin("__global__ void k() {}"), "whole")
    with pytest.raises(ProgramError, match="finished cubin"):
        linker.link([whole, made(HAS, "cubin")], "sm_90a")


def cubin(source: str, *options: str) -> bytes:
    with Program(source) as program:
        program.compile(["-arch=sm_90a", *options])
        return program.get_cubin().data


@pytest.mark.parametrize("cut", [0, 4, 100, 2000])
def test_a_truncated_cubin_never_reaches_the_library(cut: int) -> None:
    """It would end the process."""
    with pytest.raises(CorruptArtifactError):
        linker.link([LinkInput("cubin", cubin(HAS, "-dc")[:cut], "cut")], "sm_90a")


@pytest.mark.parametrize("data", [b"", b"\0" * 64, b"x" * 64, b"\xedCN\x7f" + b"\0" * 60])
@pytest.mark.parametrize("kind", ["ltoir", "ptx", "cubin"])
def test_garbage(kind: str, data: bytes) -> None:
    with pytest.raises((CompileError, CorruptArtifactError)):
        linker.link([LinkInput(kind, data, "garbage")], "sm_90a")


def test_ptx_with_errors_has_the_assemblers_log() -> None:
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    with pytest.raises(CompileError) as caught:
        linker.link([LinkInput("ptx", (head + ".visible .entry k() { bogus; }\0").encode(), "k")], "sm_90a")
    assert "line 4" in caught.value.log


AFTER_NEWER_PTX = """
from trunnion.errors import CompileError
from trunnion_nvrtc.compiler import linker
from trunnion_nvrtc.compiler.linker import LinkInput
from trunnion_nvrtc.compiler.program import Program

def made(source):
    with Program(source) as program:
        program.compile(["-arch=sm_90a", "-dc"])
        return LinkInput("cubin", program.get_cubin().data, "part")

newer = b".version 99.0\\n.target sm_90\\n.address_size 64\\n"
user = made("__device__ int f(); __global__ void k(int* p) { p[0] = f(); }")
owner = made("__device__ int f() { return 1; }")
printing = made('extern "C" __device__ int printf(const char*, ...); __global__ void k() { printf(""); }')
for parts in ([LinkInput("ptx", newer, "newer")], [user], [user, owner], [printing]):
    try:
        print("linked", len(linker.link(parts, "sm_90a").data) > 1000)
    except CompileError as error:
        print(error.log.replace("\\n", " "))
"""


def test_newer_ptx_and_what_comes_after_it() -> None:
    """In a process of its own: nvJitLink 13.0 calls undefined names a success from then on."""
    done = subprocess.run(
        [sys.executable, "-c", AFTER_NEWER_PTX],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    newer, undefined, whole, printing = done.stdout.splitlines()
    assert "Unsupported .version 99.0" in newer
    assert re.search(
        r"the PTX is of version 99\.0, this nvJitLink reads up to [0-9.]+: install one that", newer
    )
    assert "_Z1fv" in undefined
    assert whole == "linked True"
    # Nobody can tell any more whether the driver has a function: better refused than broken at its first call.
    assert "vprintf" in printing


def test_the_drivers_own_functions_are_no_missing_ones() -> None:
    source = """
    extern "C" __device__ int printf(const char*, ...);
    __global__ void k() { printf("x"); free(malloc(8)); __assertfail("a", "b", 1, "c", 1); }"""
    found = read_cubin(linker.link([made(source, "cubin")], "sm_90a").data)
    assert {"vprintf", "malloc", "free", "__assertfail"} <= set(found.references)


def test_what_is_wrong_before_anything_is_added() -> None:
    part = made(HAS, "cubin")
    with pytest.raises(ProgramError, match="UNRECOGNIZED_ARCH") as caught:
        linker.link([part], "sm_91")
    assert caught.value.field == "target"
    with pytest.raises(ProgramError, match="-bogus") as caught:
        linker.link([part], "sm_90a", ["-bogus"])
    assert caught.value.field == "code.options"
    with pytest.raises(ProgramError, match="compute_90a"):
        linker.link([part], "compute_90a")


def test_another_architecture() -> None:
    with Program(HAS) as program:
        program.compile(["-arch=sm_80", "-dc"])
        other = LinkInput("cubin", program.get_cubin().data, "other")
    with pytest.raises(CompileError, match="other"):
        linker.link([made(USES, "cubin"), other], "sm_90a")


def test_every_status_of_the_bindings_has_a_row() -> None:
    theirs = {int(status): f"NVJITLINK_{status.name}" for status in linker.bindings().Result}
    assert {row.code: row.name for row in NVJITLINK_RESULTS} == theirs
    assert all(row.meaning for row in NVJITLINK_RESULTS)


def test_the_handle_is_destroyed_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    library, alive = linker.bindings(), []
    create, destroy = library.create, library.destroy

    def counted_create(*arguments):
        alive.append(create(*arguments))
        return alive[-1]

    def counted_destroy(handle):
        alive.remove(handle)
        destroy(handle)

    monkeypatch.setattr(library, "create", counted_create)
    monkeypatch.setattr(library, "destroy", counted_destroy)
    linker.link([made(HAS, "cubin")], "sm_90a")
    with pytest.raises(CompileError):
        linker.link([made(USES, "cubin")], "sm_90a")
    assert alive == []


def test_a_failure_that_nobody_here_is_to_blame_for(monkeypatch: pytest.MonkeyPatch) -> None:
    library = linker.bindings()

    def failing(*_):
        raise library.nvJitLinkError(7)

    monkeypatch.setattr(library, "create", failing)
    with pytest.raises(DriverError) as caught:
        linker.link([made(HAS, "cubin")], "sm_90a")
    assert (caught.value.call, caught.value.code_name) == ("nvJitLinkCreate", "NVJITLINK_ERROR_THREADPOOL")


def missing(modules: dict[str, object]) -> str:
    def import_module(name: str) -> object:
        if name not in modules:
            raise ImportError(name)
        return modules[name]

    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(nvrtc, "importlib", SimpleNamespace(import_module=import_module))
        with pytest.raises(BackendUnavailableError) as caught:
            linker.bindings.__wrapped__()
    assert (caught.value.name, caught.value.distribution) == ("nvrtc", "trunnion-nvrtc")
    return caught.value.reason


class _LinkError(Exception):
    pass


def test_without_the_library_it_says_what_to_install() -> None:
    def absent() -> None:
        raise RuntimeError("no such file")

    bindings = SimpleNamespace(__version__="13.3.1")
    library = SimpleNamespace(version=absent, nvJitLinkError=_LinkError)
    assert "pip install 'cuda-bindings" in missing({})
    assert "pip install 'nvidia-nvjitlink==13.*'" in missing(
        {"cuda.bindings": bindings, "cuda.bindings.nvjitlink": library}
    )
    library.version = lambda: (12, 9)
    assert "found nvJitLink 12.9, expected 13.x" in missing(
        {"cuda.bindings": bindings, "cuda.bindings.nvjitlink": library}
    )


def test_the_build_is_told() -> None:
    assert linker.build_id().startswith("{}.{} (".format(*linker.version()))
    assert linker.version()[0] == nvrtc.version()[0]
