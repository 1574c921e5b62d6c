"""Requests of several parts and languages: how they become one image, and which contradictions are refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import pytest

from trunnion.contract.compiler import CompileRequest, DeviceImage, ImageParameter
from trunnion.contract.spec import Target
from trunnion.errors import (
    BackendUnavailableError,
    CompileError,
    CorruptArtifactError,
    ProgramError,
)
from trunnion.image.cubin import read_cubin
from trunnion.image.ptx import read_ptx
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelSignature
from trunnion_nvrtc.compiler import linker, program
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_nvrtc.compiler.device_runtime import device_runtime_digest
from trunnion_nvrtc.compiler.program import Program
from trunnion_nvrtc.compiler.request import Mode, read_request

ADD = 'extern "C" __global__ void add(const float* a, float* b, int n) { if (n) b[0] = a[0]; }'
CALLS = '__device__ int twice(int); extern "C" __global__ void calls(int* p) { p[0] = twice(p[1]); }'
TWICE = "__device__ int twice(int x) { return x * 2; } template <class T> __global__ void other(T* t) { t[0] = 1; }"
PTX = """
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 result) _Z5twicei (.param .b32 x);
.visible .entry assembled(.param .u64 p, .param .u32 n) { ret; }
"""


def request(
    *code: DeviceCode, kernels: tuple[tuple[str, int], ...] = (), target: str = "sm_90a", **named: Any
) -> CompileRequest:
    return CompileRequest(
        code=code,
        kernels=tuple(KernelSignature(name, (), part) for name, part in kernels),
        target=Target.parse(target),
        options=named,
    )


def build(*code: DeviceCode, **more: Any) -> DeviceImage:
    return NvrtcCompiler().compile(request(*code, **more))


def cuda(source: str, *options: str, **more: Any) -> DeviceCode:
    return DeviceCode("cuda", source, options=options, **more)


def made(source: str, kind: str, *options: str, arch: str = "sm_90a") -> DeviceCode:
    with Program(source) as compiled:
        compiled.compile([f"-arch={arch}", *options])
        output = compiled.get_output(kind)
    return DeviceCode("ptx", output.text) if kind == "ptx" else DeviceCode(kind, output.data)


def refused(*code: DeviceCode, **more: Any) -> ProgramError:
    with pytest.raises(ProgramError) as caught:
        build(*code, **more)
    return caught.value


# Outputs ------------------------------------------------------------------------------------------------------------


def test_a_virtual_architecture_gives_ptx() -> None:
    image = build(cuda(ADD), kernels=(("add", 0),), target="compute_90a")
    assert (image.kind, image.target) == ("ptx", Target("cuda", "compute_90a"))
    assert image.data.endswith(b"}\n\0") or image.data.endswith(b"\0")
    assert read_ptx(image.data).target == "sm_90a"
    assert image.kernels[0].parameters == build(cuda(ADD), kernels=(("add", 0),)).kernels[0].parameters
    assert set(image.toolchain) == {"nvrtc"}


def test_what_the_backend_loads_decides() -> None:
    both = request(cuda(ADD), kernels=(("add", 0),))
    for target, accepts, kind in (
        ("sm_90a", (), "cubin"),
        ("sm_90a", ("ptx", "cubin"), "cubin"),
        ("sm_90a", ("ptx",), "ptx"),
        ("compute_90a", ("ptx", "cubin"), "ptx"),
    ):
        asked = CompileRequest(
            code=both.code, kernels=both.kernels, target=Target.parse(target), accepts=accepts
        )
        assert NvrtcCompiler().compile(asked).kind == kind


def test_ptx_is_assembled_or_taken_as_it_is() -> None:
    code = DeviceCode("ptx", PTX.replace(".extern", "//"))
    image = build(code, kernels=(("assembled", 0),))
    assert image.kind == "cubin"
    assert image.kernels[0].parameters == (ImageParameter(0, 0, 8), ImageParameter(1, 8, 4))
    assert set(image.toolchain) == {"nvjitlink"}
    whole = build(code, kernels=(("assembled", 0),), target="compute_90a")
    assert (whole.kind, whole.data) == ("ptx", code.source.encode() + b"\0")
    assert whole.kernels == image.kernels
    assert build(code, maxrregcount=64, lineinfo=True).data != image.data


def test_a_cubin_is_taken_as_it_is() -> None:
    code = made(ADD, "cubin")
    image = build(code, kernels=(("add", 0),))
    assert image.data == code.source
    assert [p.size for p in image.kernels[0].parameters] == [8, 8, 4]
    assert (image.toolchain, image.headers_read, image.log) == ({}, (), "")


@pytest.mark.parametrize(
    ("arch", "target", "runs"),
    [
        ("sm_80", "sm_80", True),
        ("sm_80", "sm_89", True),
        ("sm_89", "sm_80", False),
        ("sm_80", "sm_90", False),
        ("sm_90a", "sm_90", False),
        ("sm_90", "sm_90a", True),
        ("sm_100f", "sm_103a", True),
        ("sm_100f", "sm_103", True),
        ("sm_103f", "sm_100a", False),
        ("sm_100a", "sm_103a", False),
    ],
)
def test_which_cubin_runs_where(arch: str, target: str, runs: bool) -> None:
    code = made(ADD, "cubin", arch=arch)
    if runs:
        build(code, kernels=(("add", 0),), target=target)
    else:
        assert "does not run" in refused(code, kernels=(("add", 0),), target=target).message


@pytest.mark.parametrize(
    ("arch", "target", "runs"),
    [
        ("compute_80", "sm_90a", True),
        ("compute_80", "compute_90a", True),
        ("compute_90", "sm_89", False),
        ("compute_90a", "sm_90", False),
        ("compute_90a", "sm_100a", False),
        ("compute_100f", "sm_103a", True),
        ("compute_100f", "sm_103", True),
        ("compute_100f", "compute_103f", True),
    ],
)
def test_which_ptx_can_be_compiled_for_what(arch: str, target: str, runs: bool) -> None:
    code = made(ADD, "ptx", arch=arch)
    if runs:
        build(code, kernels=(("add", 0),), target=target)
    else:
        assert "cannot be compiled" in refused(code, kernels=(("add", 0),), target=target).message


def test_finished_code_goes_by_exact_names() -> None:
    for code in (made(TWICE + ADD, "ptx", arch="compute_80"), made(TWICE + ADD, "cubin")):
        error = refused(code, kernels=(("other<float>", 0),))
        assert error.field == "kernels[0].name"
        assert "'add'" in error.message


def test_code_that_is_not_whole() -> None:
    for code in (
        DeviceCode("cubin", b"\x7fELF"),
        DeviceCode("cubin", b""),
        DeviceCode("ptx", "garbage"),
        DeviceCode("ptx", ""),
        DeviceCode("ptx", PTX + ".visible .entry open() {"),
    ):
        with pytest.raises(CorruptArtifactError):
            build(code)


# Links --------------------------------------------------------------------------------------------------------------

KERNELS = (("other<float>", 1), ("calls", 0))


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ((), Mode.LTO),
        (("-dlto",), Mode.LTO),
        (("-dlto", "--gen-opt-lto"), Mode.LTO),
        (("-dc",), Mode.RELOCATABLE),
        (("-rdc=true",), Mode.RELOCATABLE),
        (("-G",), Mode.RELOCATABLE),
    ],
)
def test_parts_are_linked(options: tuple[str, ...], mode: Mode) -> None:
    code = (cuda(CALLS, *options), cuda(TWICE, *options))
    assert read_request(request(*code)).mode is mode
    image = build(*code, kernels=KERNELS)
    assert [kernel.name for kernel in image.kernels] == ["other<float>", "calls"]
    assert image.kernels[0].symbol == "_Z5otherIfEvPT_"
    assert [len(kernel.parameters) for kernel in image.kernels] == [1, 1]
    assert not read_cubin(image.data).relocatable
    assert set(image.toolchain) == {"nvrtc", "nvjitlink"}
    assert build(*code, kernels=KERNELS) == image


def test_parts_become_ptx() -> None:
    image = build(cuda(CALLS), cuda(TWICE), kernels=KERNELS, target="compute_90a")
    assert image.kind == "ptx"
    assert {kernel.name for kernel in read_ptx(image.data).kernels} == {"calls", "_Z5otherIfEvPT_"}
    assert "virtual" not in refused(cuda(CALLS), cuda(TWICE, "-dc"), target="compute_90a").message


def test_one_part_may_be_optimised_at_link_time_too() -> None:
    for options in (("-dlto",), ("-dc",)):
        image = build(cuda(ADD, *options), kernels=(("add", 0),))
        assert "nvjitlink" in image.toolchain
    assert "nvjitlink" not in build(cuda(ADD, "-dw"), kernels=(("add", 0),)).toolchain


def test_parts_in_every_language() -> None:
    code = (
        cuda(CALLS),
        DeviceCode("ptx", PTX),
        made(TWICE, "cubin", "-dc"),
    )
    image = build(*code, kernels=(("assembled", 1), ("calls", 0)))
    assert [kernel.symbol for kernel in image.kernels] == ["assembled", "calls"]
    alone = build(made(TWICE + ADD, "cubin", "-dc"), kernels=(("add", 0),))
    assert not read_cubin(alone.data).relocatable
    with pytest.raises(ProgramError, match="finished cubin"):
        build(cuda(CALLS), made(TWICE, "cubin"))


def test_a_name_is_looked_for_in_its_own_part_only() -> None:
    one, two = (f"template <int> __global__ void k(int* p) {{ p[0] = {i}; }}" for i in range(2))
    image = build(cuda(one), cuda(two), kernels=(("k<1>", 0), ("k<2>", 1)))
    assert [kernel.symbol for kernel in image.kernels] == ["_Z1kILi1EEvPi", "_Z1kILi2EEvPi"]
    with pytest.raises(CompileError, match="other"):
        build(cuda(CALLS), cuda(TWICE), kernels=(("other<float>", 0),))
    assert refused(cuda(ADD), kernels=(("add", 1),)).field == "kernels"


@pytest.mark.parametrize("options", [(), ("-dc",)])
def test_kernels_that_could_not_be_told_apart(options: tuple[str, ...]) -> None:
    static = 'static __global__ void k(int* p) {{ p[0] = {}; }} extern "C" __global__ void k{}(int* p) {{ p[0] = 0; }}'
    code = tuple(cuda(static.format(i, i), *options) for i in range(2))
    assert "'k'" in refused(*code, kernels=(("k", 0), ("k", 1))).message
    assert "static" in refused(*code, kernels=(("k", 1),)).message


@pytest.mark.parametrize("options", [(), ("-dc",)])
def test_what_two_parts_define(options: tuple[str, ...]) -> None:
    with pytest.raises((ProgramError, CompileError), match="add"):
        build(cuda(ADD, *options), cuda(ADD, *options), kernels=(("add", 0),))


def test_a_name_that_no_part_defines() -> None:
    with pytest.raises(CompileError, match="_Z5twicei") as caught:
        build(cuda(CALLS), cuda(ADD))
    assert caught.value.compiler.startswith("nvJitLink")


def test_messages_tell_parts_apart() -> None:
    code = (cuda(ADD), cuda("\noops", name="x.cu"), cuda("__global__ void w() { int unused; }"))
    with pytest.raises(CompileError) as caught:
        build(*code)
    assert caught.value.log.startswith("x.cu(2): error")
    assert caught.value.line == 2
    image = build(code[0], code[2])
    assert image.log.startswith("1/kernel.cu(1): warning")


def test_equal_sources_in_two_parts() -> None:
    source = "namespace { __device__ int x; } __global__ void NAME(int* p) { p[0] = x++; }"
    code = tuple(cuda(source, defines=(("NAME", name),)) for name in ("a", "b"))
    image = build(*code, kernels=(("a", 0), ("b", 1)))
    assert [kernel.symbol for kernel in image.kernels] == ["_Z1aPi", "_Z1bPi"]


# Options ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "named", "field"),
    [
        ((cuda(ADD, "-dw"), cuda(TWICE)), {}, "code[0].options"),
        ((cuda(ADD), cuda(TWICE, "-rdc=false")), {}, "code[1].options"),
        ((cuda(ADD, "-dc", "-dw"),), {}, "code.options"),
        ((cuda(ADD, "-dlto", "-rdc=false"),), {}, "code.options"),
        ((cuda(ADD, "--gen-opt-lto"),), {}, "code.options"),
        ((cuda(ADD, "-dlto"), DeviceCode("ptx", PTX)), {}, "code[0].options"),
        ((cuda(ADD, "--ftz=true"), cuda(TWICE)), {}, "code[1].options"),
        ((cuda(ADD, "--bogus"), cuda(TWICE)), {}, "code[0].options"),
        ((cuda(ADD), cuda(TWICE, defines=(("A B", None),))), {}, "code[1].defines[0]"),
        ((cuda(ADD), DeviceCode("ptx", PTX, options=("--std=c++20",))), {}, "code[1].options"),
        ((DeviceCode("ptx", PTX, defines=(("A", "1"),)),), {}, "code.defines"),
        ((DeviceCode("ptx", PTX, includes=(("A", "1"),)),), {}, "code.includes"),
        ((DeviceCode("cubin", b"", options=("-lineinfo",)),), {}, "code.options"),
        ((DeviceCode("ptx", PTX),), {"std": "c++20"}, "options.std"),
        ((DeviceCode("cubin", b""),), {"lineinfo": True}, "options.generate-line-info"),
        ((cuda(ADD),), {"bogus": 1}, "options"),
    ],
)
def test_options_that_mean_nothing_or_contradict(
    code: tuple[DeviceCode, ...], named: dict[str, Any], field: str
) -> None:
    assert refused(*code, **named).field == field


INSTEAD = "say --relocatable-device-code=true in place of --dlink-time-opt, which compiles each on its own"
OTHER_OPTIONS = [
    ((cuda(ADD, "-ftz=true"), cuda(TWICE)), "sm_90a", "say --relocatable-device-code=true, which compiles"),
    ((cuda(ADD, "-dlto", "-ftz=true"), cuda(TWICE, "-rdc=true")), "sm_90a", INSTEAD),
    (
        (cuda(ADD, "-dlto", "-ftz=true"), cuda(TWICE)),
        "compute_90",
        f"{INSTEAD}, for 'sm_90': of parts PTX is made by --dlink-time-opt alone",
    ),
]


@pytest.mark.parametrize(("code", "target", "said"), OTHER_OPTIONS)
def test_where_parts_have_other_options_what_is_to_be_done_can_be_done(
    code: tuple[DeviceCode, ...], target: str, said: str
) -> None:
    assert said in refused(*code, target=target).message
    apart = (cuda(ADD, "-ftz=true", "-rdc=true"), cuda(TWICE, "-rdc=true"))
    assert build(*apart, target=target.replace("compute", "sm")).kind == "cubin"


EARLY = ["--Ofast-compile=min", "--device-stack-protector=true", "--optimization-info=inline"]


@pytest.mark.parametrize("word", EARLY)
def test_what_is_lost_where_parts_are_optimised_together_is_refused(word: str) -> None:
    name = word.partition("=")[0]
    for code, target, said in (
        ((cuda(CALLS, word), cuda(TWICE)), "sm_90a", "say --relocatable-device-code=true, which compiles"),
        ((cuda(ADD, "-dlto", word),), "sm_90a", INSTEAD),
        ((cuda(CALLS), cuda(TWICE, word)), "compute_90a", "for 'sm_90a': of parts PTX is made by"),
    ):
        message = refused(*code, target=target).message
        assert f"got {name}, of which nothing comes" in message
        assert said in message
    late = made(TWICE, "ltoir", "-dlto")
    assert refused(cuda(CALLS, word), late).message.endswith("leave it out")


# NVRTC goes on with the third, whatever the process compiles next.
@pytest.mark.parametrize("word", EARLY[:2])
def test_what_would_be_lost_there_acts_where_parts_are_compiled_apart(word: str) -> None:
    code = (
        "__device__ int twice(int); __device__ int sum(int* x) { return x[0] + x[1]; } __global__ void k(int* p) {"
        "int x[64]; for (int i = 0; i < 64; ++i) x[i * p[0] % 64] = i; p[1] = twice(sum(x + p[2])); }"
    )
    plain, other = (
        build(cuda(code, *options), cuda(TWICE), relocatable_device_code=True) for options in ((), (word,))
    )
    assert (plain.data, plain.log) != (other.data, other.log)


def test_what_says_the_default_is_no_loss() -> None:
    build(cuda(CALLS), cuda(TWICE), Ofast_compile="0", device_stack_protector=False)


def test_where_parts_cannot_be_compiled_apart_nothing_is_said_of_that() -> None:
    ptx = DeviceCode("ptx", PTX, options=("-ftz=true",)), DeviceCode("ptx", PTX, name="other.ptx")
    late = cuda(ADD, "-ftz=true"), made(TWICE, "ltoir", "-dlto")
    for code in (ptx, late):
        message = refused(*code).message
        assert message.endswith("have the same options (in nvJitLink's words): give all of them the same")


def test_options_that_contradict_parts_say_which_to_leave_out() -> None:
    assert refused(cuda(ADD, "-dlto"), DeviceCode("ptx", PTX)).message.endswith("leave out --dlink-time-opt")
    message = refused(cuda(ADD), cuda(TWICE, "-rdc=false")).message
    assert message.endswith("leave out --relocatable-device-code=false and --device-w")


def test_ptx_that_is_taken_as_it_is_takes_no_options() -> None:
    code = DeviceCode("ptx", PTX, options=("-lineinfo",))
    assert "as it is" in refused(code, target="compute_90").message
    assert "cubin" in refused(made(ADD, "cubin"), target="compute_90").message
    assert refused(cuda(ADD, "-dc"), target="compute_90").field == "target"


@pytest.mark.parametrize(
    "word", ["--maxrregcount=24", "-Xptxas=-O0", "-Xptxas=-v", "--device-stack-protector=true"]
)
def test_what_the_assembler_reads_is_refused_where_there_is_none(word: str) -> None:
    for parts in ((cuda(ADD, word),), (cuda(CALLS, word, "-dlto"), cuda(TWICE))):
        error = refused(*parts, target="compute_90a")
        assert error.field.endswith(".options")
    error = refused(cuda(ADD, word), target="compute_90a")
    assert "which the assembler reads" in error.message
    assert error.message.endswith("leave it out, or use 'sm_90a'")
    assert build(cuda(ADD, word)).data != build(cuda(ADD)).data


@pytest.mark.parametrize("word", ["--split-compile=4", "-jtd=3", "--Ofast-compile=min", "-lineinfo"])
def test_what_makes_other_ptx_is_no_matter_of_the_assembler(word: str) -> None:
    cases = "".join(f"case {3 * index}: p[0] = {index}.5f * p[1]; break;" for index in range(20))
    source = (
        "__device__ __noinline__ float half(float* p) { for (int i = 0; i < 64; ++i) p[i ^ 3] *= i; return p[2]; }"
        f"__global__ void k(float* p, int n) {{ p[2] = half(p + n); switch (n) {{ {cases} }} }}"
    )
    plain, other = (build(cuda(source, *options), target="compute_90a") for options in ((), (word,)))
    assert plain.data != other.data
    build(cuda(ADD), target="compute_90a", device_stack_protector=False)


def test_the_callers_options_go_where_they_mean_something() -> None:
    code = (cuda(CALLS + "static_assert(__cplusplus == 202002L);"), made(TWICE, "cubin", "-dc"))
    build(*code, std="c++20")
    ptx = DeviceCode("ptx", PTX)
    job = read_request(request(cuda(CALLS), ptx, std="c++20", lineinfo=True))
    assert [sorted(part.options) for part in job.parts] == [
        ["generate-line-info", "std"],
        ["generate-line-info"],
    ]
    assert job.linker_options() == ("-lineinfo",)
    taken = DeviceCode("ptx", PTX, options=("-lineinfo",))
    assert read_request(request(taken, lineinfo=False)).linker_options() == ()


def test_options_act_through_the_link() -> None:
    source = 'extern "C" __global__ void k(float* p) { p[0] = sqrtf(p[1]) / p[2]; }'
    plain = build(cuda(source), cuda(TWICE)).data
    for named in ({"use_fast_math": True}, {"prec_div": False}, {"lineinfo": True}, {"Xptxas": "-O0"}):
        assert build(cuda(source), cuda(TWICE), **named).data != plain


@pytest.mark.parametrize("exact", ["--ftz=false", "--prec-sqrt=true", "--prec-div=true", "--fmad=false"])
def test_what_is_exact_of_fast_math_is_so_through_the_link_too(exact: str) -> None:
    source = 'extern "C" __global__ void k(float* p) { p[0] = sqrtf(p[1]) / p[2] + p[3] * p[4]; }'
    fast, whole, late = (
        re.findall(rb"\t(\S+\.f32) ", build(cuda(source, *options), target="compute_90a").data)
        for options in (("-use_fast_math",), ("-use_fast_math", exact), ("-use_fast_math", exact, "-dlto"))
    )
    assert whole == late != fast


# Surroundings -------------------------------------------------------------------------------------------------------


def test_the_surroundings_name_the_linker_where_there_is_a_link() -> None:
    compiler = NvrtcCompiler()
    linked = {"nvjitlink": linker.build_id(), "libcudadevrt.a": device_runtime_digest()}
    assert compiler.environment(request(cuda(ADD))) == {}
    assert compiler.environment(request(cuda(ADD), cuda(TWICE))) == linked
    assert compiler.environment(request(DeviceCode("ptx", PTX))) == linked
    assert compiler.environment(request(DeviceCode("ptx", PTX), target="compute_90")) == {}


WITHOUT_LINKER = """
import cuda.pathfinder
find = cuda.pathfinder.load_nvidia_dynamic_lib

def hidden(name):
    if name == "nvJitLink":
        raise cuda.pathfinder.DynamicLibNotFoundError("no such file")
    return find(name)

cuda.pathfinder.load_nvidia_dynamic_lib = hidden
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import BackendUnavailableError
from trunnion.model.code import DeviceCode
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
one = DeviceCode("cuda", "__device__ int a;")
two = DeviceCode("cuda", "__device__ int b;")
print(NvrtcCompiler().compile(CompileRequest(code=(one,), kernels=(), target=Target("cuda", "sm_90a"))).kind)
try:
    NvrtcCompiler().compile(CompileRequest(code=(one, two), kernels=(), target=Target("cuda", "sm_90a")))
except BackendUnavailableError as error:
    print(error.reason)
"""


def test_without_the_linker_only_links_fail_and_say_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LINKER],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    kind, reason = done.stdout.splitlines()
    assert kind == "cubin"
    assert "pip install 'nvidia-nvjitlink==13.*'" in reason


def test_finished_code_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    code = made(ADD, "cubin")

    def absent() -> None:
        raise BackendUnavailableError("nvrtc", "trunnion-nvrtc", "is not there")

    monkeypatch.setattr(program, "bindings", absent)
    monkeypatch.setattr(linker, "bindings", absent)
    assert build(code, kernels=(("add", 0),)).data == code.source
    with pytest.raises(BackendUnavailableError):
        build(cuda(ADD))
